"""Figures: what is drawn, and what is not, where the axes end, and tables as text."""

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from calib import reliability_table
from calib.pages.show import table
from calib.plots import COLOURS, confidence_histogram, label, log_axis, reliability_diagram

TABLE = reliability_table([0.55, 0.65, 0.68, 0.95, 0.96, 0.97], [1, 0, 1, 1, 1, 0], bins=10)  # three bins are filled


@pytest.fixture
def ax():
    plt.style.use("calib.paper")
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


def counts(ax):
    """The second axis, on top: its texts by place."""
    (top,) = [child for child in ax.child_axes]
    return dict(zip(top.get_xticks().round(3).tolist(), [text.get_text() for text in top.get_xticklabels()]))


def points(ax):
    """Mean confidence and accuracy of the bins that are drawn."""
    (container,) = ax.containers
    return np.transpose(container.lines[0].get_data())


def test_a_reliability_diagram_draws_the_filled_bins_and_no_other(ax):
    reliability_diagram(ax, TABLE)
    expected = [[0.55, 1], [0.665, 0.5], [0.96, 2 / 3]]
    np.testing.assert_allclose(points(ax), expected)
    assert counts(ax) == {0.55: "1", 0.65: "2", 0.95: "3"}


def test_a_count_stands_over_the_visible_part_of_its_bin(ax):
    reliability_diagram(ax, reliability_table([0.6, 0.9], [1, 1], bins=[0, 0.8, 1]), start=0.5)
    assert counts(ax) == {0.65: "1", 0.9: "1"}


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_the_axes_hold_all_that_can_occur(ax, start):
    reliability_diagram(ax, TABLE, start=start)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert start - 0.1 < left < start and 1 < right < 1.1 and -0.1 < bottom < 0 and 1 < top < 1.1
    assert (ax.get_aspect() == 1) == (start == 0)


def test_bins_are_drawn_in_the_colour_that_is_asked_for(ax):
    reliability_diagram(ax, TABLE, COLOURS["oracle"])
    assert ax.containers[0].lines[0].get_color() == COLOURS["oracle"]


def test_large_counts_in_narrow_bins_are_turned_and_others_are_not():
    confidence = np.repeat(np.arange(0.025, 1, 0.05), 1000)
    crowded = reliability_table(confidence, np.ones(len(confidence)), bins=20)
    for binned, rotation in ((crowded, 90), (TABLE, 0)):
        fig, (ax, _) = plt.subplots(1, 2, figsize=(7.2, 3.9))
        reliability_diagram(ax, binned)
        (top,) = ax.child_axes
        assert {text.get_rotation() for text in top.get_xticklabels()} == {rotation}
        plt.close(fig)


def test_a_histogram_shows_counts_mean_confidence_and_accuracy(ax):
    confidence_histogram(ax, TABLE, start=0.5)
    assert [bar.get_height() for bar in ax.patches] == [0, 0, 0, 0, 0, 1, 2, 0, 0, 3]
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["1", "2", "3"]
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["mean confidence 0.793", "accuracy 0.667"]


def test_the_style_has_no_small_text_and_no_wide_figure(ax):
    reliability_diagram(ax, TABLE)
    label(ax, "here", (0.5, 0.5))
    fig = ax.figure
    assert fig.get_figwidth() <= 7.2
    texts = [text for text in fig.findobj(matplotlib.text.Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 10


def test_colours_are_dark_enough_for_text_on_white():
    for colour in COLOURS.values():
        channels = np.array(matplotlib.colors.to_rgb(colour))
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 4.5  # WCAG 2, level AA


@pytest.mark.parametrize(
    ("offset", "sides"), [((5, 0), ("left", "center")), ((-5, 2), ("right", "bottom")), ((0, -4), ("center", "top"))]
)
def test_a_label_lies_on_the_side_of_its_offset(ax, offset, sides):
    text = label(ax, "here", (0.5, 0.5), offset)
    assert (text.get_ha(), text.get_va()) == sides


def test_a_logarithmic_axis_has_plain_numbers_and_no_other_ticks(ax):
    log_axis(ax.xaxis, [0.25, 1, 1000])
    assert ax.get_xscale() == "log" and ax.get_yscale() == "linear"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.25", "1", "1,000"]
    assert len(ax.get_xticks(minor=True)) == 0


def test_a_table_is_markdown_with_minus_signs():
    text = table("lr", ["Change of", "Value"], [["ResNet-8", "-0.5 [-1, 1e-3]"], ["C", "- to +"]]).data
    cell = "-0.5 [-1".replace("-", "\N{MINUS SIGN}")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert rows[0] == ["Change of", "Value"] and rows[2:] == [["ResNet-8", f"{cell}, 1e-3]"], ["C", "- to +"]]
    assert [set(side) for side in rows[1]] == [{":", "-"}] * 2 and rows[1][0][0] == rows[1][1][-1] == ":"


@pytest.mark.parametrize(("heads", "rows"), [(["", "b"], []), (["a", "b"], [[1]]), (["a"], [])])
def test_a_table_without_a_head_or_with_a_short_row_is_refused(heads, rows):
    with pytest.raises(ValueError, match="expected 2 cells"):
        table("lr", heads, rows)

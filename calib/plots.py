"""Figures: one palette, one reliability diagram, one way to label points and axes."""

from itertools import pairwise

import numpy as np

COLOURS = {"t1": "#c04f00", "fitted": "#0072b2", "oracle": "#007f5c", "other": "#a8397f", "neutral": "#595959"}
"""One colour per meaning in every figure, those of Okabe and Ito (2008) made dark enough for text on white.

``t1`` is always T = 1, ``fitted`` a temperature fitted to hard labels, ``oracle`` one fitted to votes; ``other`` and
``neutral`` are for what is none of these.
"""

DASHED = (0, (4, 3))
"""Line style of references: the diagonal, a limit, a slope to compare with."""


def reliability_diagram(ax, table, colour=COLOURS["fitted"], start=0.0):
    """Draw accuracy against mean confidence, bin by bin, with counts and 95% Wilson intervals.

    A bar spans each bin's distance between mean confidence and accuracy: below the diagonal the classifier is
    overconfident. Grey lines are bin edges, the numbers on top are counts. Empty bins are not drawn.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    table : calib.reliability.ReliabilityTable
    colour : str, optional
    start : float
        Where the axis of confidence starts: with K classes no confidence is below 1/K. At 0 both axes have one scale.

    Returns
    -------
    matplotlib.axes.Axes
    """
    filled = table.filled
    confidence, accuracy = table.confidence[filled], table.accuracy[filled]
    errors = np.clip([accuracy - table.low[filled], table.high[filled] - accuracy], 0, None)
    ax.plot([0, 1], [0, 1], color=COLOURS["neutral"], linewidth=1, linestyle=DASHED, zorder=1)
    ax.vlines(table.edges, 0, 1, color="#dddddd", linewidth=0.7, zorder=0)
    ax.vlines(confidence, confidence, accuracy, color=colour, alpha=0.25, linewidth=7, zorder=2)
    ax.errorbar(confidence, accuracy, errors, fmt="o", color=colour, markersize=5, elinewidth=1, capsize=2, zorder=3)
    ax.grid(visible=False, axis="x")
    margin = 0.03 * (1 - start)
    ax.set(xlim=(start - margin, 1 + margin), ylim=(-0.03, 1.03), aspect="equal" if start == 0 else "auto")
    ax.set(xlabel="mean confidence in bin", ylabel="accuracy in bin")
    _counts_on_top(ax, table, start)
    return ax


def _counts_on_top(ax, table, start):
    """A second axis above, with the count of each filled bin over the visible part of the bin."""
    filled = table.filled
    centres = (np.maximum(table.edges[:-1], start) + table.edges[1:])[filled] / 2
    texts = [f"{count:,}" for count in table.counts[filled]]
    width = 72 * ax.figure.get_figwidth() / ax.get_subplotspec().get_gridspec().ncols  # of a panel, in points
    distances = 0.85 * width * np.diff(centres) / (1 - start)
    needed = [3.4 * len(a + b) + 4 for a, b in pairwise(texts)]
    top = ax.secondary_xaxis("top")
    top.set_xticks(centres, texts, rotation=90 if (distances < needed).any() else 0)
    top.tick_params(length=0, pad=1)
    top.spines["top"].set_visible(False)
    top.set_xlabel("examples in bin", fontsize=10)


def confidence_histogram(ax, table, colour=COLOURS["fitted"], start=0.0):
    """Draw the count of each bin of a reliability table, with mean confidence and accuracy as lines.

    Parameters and result as in `reliability_diagram`.
    """
    filled = table.filled
    widths = np.diff(table.edges.astype(float))
    bars = ax.bar(table.edges[:-1], table.counts, widths, align="edge", color=colour, alpha=0.35, edgecolor=colour)
    halo = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    ax.bar_label(bars, [f"{count:,}" if count else "" for count in table.counts], fontsize=10, padding=3, bbox=halo)
    for values, style, name in ((table.confidence, "-", "mean confidence"), (table.accuracy, ":", "accuracy")):
        mean = np.average(values[filled], weights=table.counts[filled])
        ax.axvline(mean, color=colour, linestyle=style, linewidth=1.5, label=f"{name} {mean:.3f}")
    ax.legend(loc="upper left" if mean > (1 + start) / 2 else "upper right", handlelength=1.5, labelcolor=colour)
    ax.grid(visible=False, axis="x")
    ax.margins(y=0.25)
    ax.set(xlim=(start - 0.01, 1.01), xlabel="confidence", ylabel="examples")
    return ax


def label(ax, text, xy, offset=(6, 0), colour=COLOURS["neutral"], **options):
    """Write a label beside a point, on the side to which the offset (in points) leads.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    text : str
    xy : tuple of float
        The point; in data coordinates, or as `options` say, for example ``xycoords=ax.get_xaxis_transform()``.
    offset : tuple of float
        Distance to the right and upwards, in points.
    colour : str, optional
    **options
        Further arguments of `matplotlib.axes.Axes.annotate`.
    """
    right, up = offset
    defaults = {
        "ha": "left" if right > 0 else "right" if right < 0 else "center",
        "va": "bottom" if up > 0 else "top" if up < 0 else "center",
        "fontsize": 10,
    }
    return ax.annotate(text, xy, offset, textcoords="offset points", color=colour, **defaults | options)


def log_axis(axis, ticks):
    """Make an axis logarithmic, with plain numbers at these ticks and none between.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        ``ax.xaxis`` or ``ax.yaxis``.
    ticks : sequence of float
    """
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_ticks(ticks, [f"{tick:,g}" if tick < 1000 else f"{tick:,.0f}" for tick in ticks])
    axis.set_ticks([], minor=True)

"""The comparison with the published record: by kind of number, and nothing escapes it."""

import re
import subprocess

import jupytext
import nbformat
import numpy as np
import pytest
from typer.testing import CliRunner

from calib.__main__ import app
from calib.data import load_soft_labels
from calib.pages import record as results
from calib.pages.execute import clean
from calib.pages.origin import digest
from calib.pages.runs import load_runs
from calib.pages.verify import TOLERANCES, compare, unlike_results, unlike_source
from calib.softlabels.gap import soft_label_gap
from calib.softlabels.study import Study
from conftest import ROOT
from measure.variation import SETTINGS, numbers


@pytest.mark.parametrize(
    ("run", "name", "published", "fresh", "within"),
    [
        ("gap/x", "n", 5000, 5000, True),
        ("gap/x", "n", 5000, 5001, False),
        ("gap/x", "n", 5000, 5000.0, False),
        ("gap/x", "at_bound", "none", "upper", False),
        ("gap/x", "flag", True, False, False),
        ("gap/x", "T_hard", 2.5, 2.5 * (1 + 9e-8), True),
        ("gap/x", "T_hard", 2.5, 2.5 * (1 + 2e-7), False),
        ("gap/x", "gap", 0.002, 0.002 + 2e-7, False),
        ("gap/x", "ece_hard", 0.011, 0.011 + 9e-8, True),
        ("gap/x", "gap", 0.002, 0.002 + 9e-8, False),
        ("gap/x", "gap", 0.002, 0.002 + 1.9e-8, True),
        ("gap/x", "gap", 1e-5, 1e-5 + 9e-9, True),
        ("gap/x", "gap", 1e-5, 1e-5 + 2e-8, False),
        ("gap/x", "gap", 0.002, None, False),
        ("gap/x", "gap", None, 0.002, False),
        ("what-temperature-does", "temperature", 3.0, 3.0 + 1e-6, True),
        ("what-temperature-does", "temperature", 3.0, 3.0 + 1e-5, False),
        ("what-temperature-does", "n", 500, 501, False),
        ("what-temperature-does", "n_test", 10000, 10001, False),
        ("what-temperature-does", "matrix_few", 0.99371, 1.00575, False),
    ],
)
def test_a_number_may_differ_by_the_tolerance_of_its_kind(run, name, published, fresh, within):
    sides = [{run: {} if value is None else {name: value}} for value in (published, fresh)]
    (difference,) = compare(*sides, single={"what-temperature-does"})
    assert difference.within is within


def test_a_difference_is_measured_by_the_published_number():
    (difference,) = compare({"one": {"a": 2.0}}, {"one": {"a": 8.0}})
    assert difference.size == 3.0


def test_make_verify_ends_as_the_comparison_ends():
    """Nothing around the command swallows its exit code."""
    command = ["make", "--no-print-directory", "-n", "verify"]  # `make test` would have it name the folder last
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    *_, last = planned.strip().splitlines()
    assert re.fullmatch(r"\S+/python -m calib verify", last), last


def test_every_name_of_either_side_is_compared():
    found = compare({"one": {"a": 1, "b": 2.0}, "two": {"c": 1}}, {"one": {"a": 1, "d": 2.0}, "three": {"e": 1}})
    assert [(d.run, d.name) for d in found] == [("one", "a"), ("one", "b"), ("one", "d"), ("three", "e"), ("two", "c")]
    assert [d.within for d in found] == [True, False, False, False, False]


def test_what_other_processors_change_is_within_the_tolerances():
    largest = results.load(ROOT / "book/measured/variation.json")["largest"]
    assert set(largest) == set(SETTINGS) - {"as it is"}
    for sizes in largest.values():
        assert set(sizes) == set(TOLERANCES)
        assert all(size <= TOLERANCES[kind] for kind, size in sizes.items())


@pytest.mark.record
def test_the_torch_chapter_is_verified_with_the_instructions_of_the_oldest_processor(tmp_path):
    """Trained in single precision, a hundred of its numbers moved, three of them beyond any digit shown."""
    pages = ("what-temperature-does", "temperature-relatives")
    fresh = results.merge(numbers(page, "baseline", tmp_path) for page in pages)
    published = results.load(ROOT / "book/published/results.json")
    differences = compare({run: published[run] for run in fresh}, fresh, single={"what-temperature-does"})
    assert max(difference.size for difference in differences) > 0, "the setting changes nothing"
    assert [(d.name, d.published, d.fresh) for d in differences if not d.within] == []


@pytest.mark.data
@pytest.mark.parametrize("order", [lambda rng, n: rng.permutation(n), lambda rng, n: np.arange(n)[::-1]])
def test_another_order_of_the_sums_stays_within_the_tolerance_of_computed_numbers(order):
    data = load_soft_labels("chaosnli-s", "roberta-base", 0)
    plain = data.validation
    again = plain.select(order(np.random.default_rng(0), len(plain)))
    first, second = (
        soft_label_gap(Study(validation, data.soft, overlap_declared=True)) for validation in (plain, again)
    )
    for name in ("T_hard", "brier_hard", "gap"):
        assert first[name] == pytest.approx(second[name], rel=TOLERANCES["double"], abs=TOLERANCES["double"])


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("notebooks", "_build/status", "book/published"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "notebooks/runs.yaml").write_text("one: {notebook: one}\n")
    (tmp_path / "notebooks/one.py").write_text(SOURCE)
    for folder, pages in (("book/published", "book/published"), ("_build", "book/notebooks")):
        results.save({"one": {"ece": 0.25, "n": 8}}, tmp_path / folder / "results.json")
        write_page(tmp_path / pages)
    results.save({"fresh": True}, tmp_path / "_build/status/one.json")
    return tmp_path


SOURCE = """\
# %% [markdown]
# # One
#
# The ECE is {glue:text}`one/ece:.3f` on {glue:text}`one/n:d` rows.

# %%
"""


def write_page(folder, text="# One\n\nThe ECE is 0.250 on 8 rows.", shown="| T | 1.2298 |", ece=0.25, caption="n = 8"):
    """What running the source gives, or something else."""
    cell = nbformat.v4.new_code_cell("", metadata={"tags": []})
    for name, value in (("ece", ece), ("n", 8)):
        metadata = {"scrapbook": {"name": f"one/{name}", "mime_prefix": "application/papermill.record/"}}
        cell.outputs.append(nbformat.v4.new_output("display_data", {results.GLUE: repr(value)}, metadata=metadata))
    cell.outputs.append(nbformat.v4.new_output("display_data", {"text/markdown": shown}))
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text), cell])
    page.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    page = clean(page)
    cell.metadata["mystnb"] = {"image": {"alt": "A curve."}, "figure": {"caption": caption, "name": "fig-one"}}
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(page, folder / "one.ipynb")


def verify():
    return CliRunner().invoke(app, ["verify"])


def test_the_same_numbers_are_verified(checkout):
    result = verify()
    assert result.exit_code == 0, result.output
    assert (
        "All 2 numbers of the build are those of the published record, and its 1 pages say the same." in result.output
    )


def test_a_last_digit_may_be_rounded_the_other_way(checkout):
    write_page(checkout / "book/notebooks", shown="| T | 1.2297 |")
    assert verify().exit_code == 0


PUBLISHED_ELSE = {
    "a number in the text": {"text": "# One\n\nThe ECE is 0.251 on 8 rows."},
    "a count in the text": {"text": "# One\n\nThe ECE is 0.250 on 9 rows."},
    "a word in the text": {"text": "# One\n\nThe ECE was 0.250 on 8 rows."},
    "a text cut short": {"text": "# One"},
    "a number in a table": {"shown": "| T | 1.2398 |"},
    "the sign of a number": {"shown": "| T | \N{MINUS SIGN}1.2298 |"},
    "the power of a number": {"shown": "| T | 1.2298e3 |"},
    "a number in a caption": {"caption": "n = 7"},
    "a recorded number": {"ece": 0.26, "text": "# One\n\nThe ECE is 0.260 on 8 rows."},
}


@pytest.mark.parametrize("changed", PUBLISHED_ELSE.values(), ids=PUBLISHED_ELSE)
def test_what_a_published_page_says_is_verified(checkout, changed):
    write_page(checkout / "book/published", **changed)
    result = verify()
    assert result.exit_code == 1 and "texts differ from the published record" in result.output
    assert "one, " in result.output


NO_RESULTS = {
    "nothing": ("{}", "expected numbers, found none"),
    "a run of nothing": ('{"one": {}}', "expected numbers, found none"),
    "null": ('{"one": {"ece": null}}', "one/ece: expected one number or string"),
    "infinity": ('{"one": {"ece": Infinity}}', "Infinity is no number"),
    "a name that stands twice": ('{"one": {"ece": 0.5, "ece": 0.25, "n": 8}}', "'ece' stands twice"),
    "a list": ('{"one": [0.25]}', "one: expected names and values"),
    "half a file": ('{"one": {"ece": 0.2', "expected JSON"),
}


@pytest.mark.parametrize(("content", "message"), NO_RESULTS.values(), ids=NO_RESULTS)
def test_what_is_no_result_is_not_verified_not_even_by_its_like(checkout, content, message):
    for folder in ("book/published", "_build"):
        (checkout / folder / "results.json").write_text(content)
    result = verify()
    assert result.exit_code == 1 and message in result.output, result.output


@pytest.mark.record
@pytest.mark.parametrize("run", load_runs(ROOT / "notebooks/runs.yaml").values(), ids=lambda run: run.name)
def test_every_published_page_shows_the_published_numbers(run):
    """Its text is that of its source with its numbers, these are in the results, and its digest is in the status."""
    path, status = ROOT / f"book/published/{run.name}.ipynb", results.load(ROOT / "book/published/status.json")
    page = nbformat.read(path, as_version=4)
    assert unlike_source(page, jupytext.read(ROOT / run.source)) is None
    assert unlike_results(page, results.load_numbers(ROOT / "book/published/results.json")) is None
    assert status[run.name]["page"] == digest(path)


def test_a_number_beyond_its_tolerance_is_named_with_both_values(checkout):
    results.save({"one": {"ece": 0.26, "n": 8}}, checkout / "_build/results.json")
    result = verify()
    assert result.exit_code == 1
    assert "one/ece: published 0.25, now 0.26 (double)" in result.output
    assert "1 of 2 numbers differ" in result.output


def test_a_page_that_was_not_freshly_run_is_not_verified(checkout):
    results.save({"fresh": False}, checkout / "_build/status/one.json")
    result = verify()
    assert result.exit_code == 1 and "not freshly run: one" in result.output

"""Numbers named once: recorded in a notebook, read back, saved."""

import json

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat import v4

from calib.pages import record as results


@pytest.fixture
def executed():
    """Run functions inside IPython, and return the notebook that would be left: one cell for each."""
    InteractiveShell.instance()

    def run(*cells):
        notebook = v4.new_notebook(cells=[v4.new_markdown_cell("# Title")])
        for cell in cells:
            with capture_output() as captured:
                print("some text")
                cell()
            outputs = [v4.new_output("stream", text=captured.stdout)]
            for shown in captured.outputs:
                outputs.append(v4.new_output("display_data", data=shown.data, metadata=shown.metadata))
            notebook.cells.append(v4.new_code_cell(outputs=outputs))
        return v4.reads(v4.writes(notebook))

    yield run
    InteractiveShell.clear_instance()


def test_what_is_recorded_is_collected_as_plain_python(executed):
    notebook = executed(
        lambda: results.record("six-examples", temperature=np.float64(1.234567890123456), n=np.int32(6), good=np.True_),
        lambda: results.record("gap/cifar10h/resnet110/0/paper", gap=1e-300, name=np.str_("résumé"), T_hard=2),
        lambda: results.record("six-examples", accuracy=np.float32(0.1)),
    )
    collected = results.collect(notebook)
    assert collected == {
        "six-examples": {"temperature": 1.234567890123456, "n": 6, "good": True, "accuracy": float(np.float32(0.1))},
        "gap/cifar10h/resnet110/0/paper": {"gap": 1e-300, "name": "résumé", "T_hard": 2},
    }
    assert {type(value) for run in collected.values() for value in run.values()} == {float, int, bool, str}


def test_glued_values_carry_the_key_and_text_that_prose_asks_for(executed):
    notebook = executed(lambda: results.record("a-run", ece=np.float32(0.25)), lambda: results.glue(title="a page"))
    shown = [cell.outputs[1] for cell in notebook.cells[1:]]
    assert [output.metadata.scrapbook.name for output in shown] == ["a-run/ece", "title"]
    assert [output.data[results.GLUE] for output in shown] == ["0.25", "'a page'"], "never np.float32(0.25)"


def test_values_of_one_page_are_not_collected(executed):
    assert results.collect(executed(lambda: results.glue(dataset="ChaosNLI", n=3))) == {}


def test_a_name_recorded_twice_must_keep_its_value(executed):
    def first():
        results.record("run", ece=0.1)

    assert results.collect(executed(first, first)) == {"run": {"ece": 0.1}}
    with pytest.raises(ValueError, match=r"^run/ece: recorded twice, as 0.1 and as 0.2"):
        results.collect(executed(first, lambda: results.record("run", ece=0.2)))


def test_pages_may_share_a_run_but_no_name_with_two_values():
    merged = results.merge([{"run": {"n": 1}}, {"run": {"n": 1, "ece": 0.1}, "other": {}}])
    assert merged == {"run": {"n": 1, "ece": 0.1}, "other": {}}
    with pytest.raises(ValueError, match=r"^run/n: recorded by two pages, as 1 and as 2"):
        results.merge([{"run": {"n": 1}}, {"run": {"n": 2}}])
    with pytest.raises(ValueError, match=r"as 1 and as 1.0"):
        results.merge([{"run": {"n": 1}}, {"run": {"n": 1.0}}])


def test_record_returns_plain_values_and_shows_nothing_outside_a_notebook(capsys):
    assert results.record("run", n=np.int64(3), share=0.5) == {"n": 3, "share": 0.5}
    results.glue(n=np.int64(3))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "value, message",
    [
        (np.nan, "a finite number, got nan"),
        (np.float32("inf"), "a finite number, got inf"),
        (-np.inf, "a finite number, got -inf"),
        (np.array([1.0, 2.0]), "one number or string, got ndarray"),
        ([1.0], "one number or string, got list"),
        (None, "one number or string, got NoneType"),
        (1j, "one number or string, got complex"),
        (np.datetime64("2026-11-29"), "one number or string, got date"),
    ],
    ids=str,
)
def test_what_is_no_single_finite_number_is_refused_by_name(value, message):
    with pytest.raises(ValueError, match=f"^run/ece: expected {message}"):
        results.record("run", n=1, ece=value)
    with pytest.raises(ValueError, match=f"^ece: expected {message}"):
        results.glue(ece=value)


def test_a_refused_record_shows_none_of_its_values(executed):
    def cell():
        with pytest.raises(ValueError):
            results.record("run", good=1, bad=np.nan)

    assert results.collect(executed(cell)) == {}


def test_saved_results_load_again_in_one_order(tmp_path):
    path = tmp_path / "results.json"
    results.save({"b": {"y": 0.1, "x": 1}, "a": {"name": "é"}}, path)
    assert results.load(path) == {"a": {"name": "é"}, "b": {"x": 1, "y": 0.1}}
    again = path.read_bytes()
    results.save({"a": {"name": "é"}, "b": {"x": 1, "y": 0.1}}, path)
    assert path.read_bytes() == again
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "results.json"
    results.save({"run": {"n": 1}}, path)
    with pytest.raises(ValueError):
        results.save({"run": {"n": float("nan")}}, path)
    assert json.loads(path.read_text()) == {"run": {"n": 1}}
    assert list(tmp_path.iterdir()) == [path]

"""Running one notebook: checked parameters, whole output or none, the same bytes every time."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

from calib.pages import record as results
from calib.pages.edition import reuse
from calib.pages.execute import NotebookError, clean, execute
from calib.pages.origin import digest

ROOT = Path(__file__).parents[2]

NOTEBOOK = """\
# %% [markdown]
# # Title {glue:text}`local:d`
#
# The value is {glue:text}`small/value:.2f`, that of another page {glue:text}`other.ipynb::key:d`.

# %% tags=["parameters"]
scale = 2.0

# %%
import numpy as np
import matplotlib.pyplot as plt
from calib.pages.show import show
from calib.pages.record import glue, record

print("one")
print("two")
record("small", value=np.float64(scale) * 3, count=np.int64(7), name="text", flag=np.bool_(True))
glue(local=1)

# %%
fig, ax = plt.subplots()
ax.plot([0, scale])
show(fig, "fig-small", f"Up to {scale}.", f"A line up to {scale}.")
"""


@pytest.fixture
def notebook(tmp_path):
    folder = tmp_path / "a folder with ö"
    folder.mkdir()
    path = folder / "small.py"
    path.write_text(NOTEBOOK, encoding="utf-8")
    return path


def test_numbers_and_figures_come_out_and_nothing_else_does(notebook, tmp_path):
    output, numbers = tmp_path / "out" / "page.ipynb", tmp_path / "numbers.json"
    expected = {"small": {"value": 9.0, "count": 7, "name": "text", "flag": True}}
    assert execute(notebook, output, {"scale": 3.0}, numbers) == expected
    assert results.load(numbers) == expected
    assert [path.name for path in output.parent.iterdir()] == ["page.ipynb"]

    text = output.read_text(encoding="utf-8")
    assert str(tmp_path) not in text and "papermill" not in text.replace("papermill.record", "")
    page = nbformat.read(output, as_version=4)
    assert [cell.id for cell in page.cells] == [f"cell-{i}" for i in range(len(page.cells))]
    assert page.cells[0].source.startswith("# Title 1\n")
    assert "The value is 9.00, that of another page {glue:text}`other.ipynb::key:d`." in page.cells[0].source
    figure = page.cells[-1]
    assert figure.metadata.mystnb.image.alt == "A line up to 3.0."
    assert figure.metadata.mystnb.figure == {"name": "fig-small", "caption": "Up to 3.0."}
    assert page.cells[-2].outputs[0].text == "one\ntwo\n"
    defaults, injected = page.cells[1:3]
    assert defaults.metadata.tags == ["parameters", "hide-input"] and "scale = 3.0" in injected.source

    again = tmp_path / "again.ipynb"
    execute(notebook, again, {"scale": 3.0})
    assert again.read_bytes() == output.read_bytes()


def test_it_runs_under_the_c_locale_from_another_folder(notebook, tmp_path):
    environment = {**os.environ, "LC_ALL": "C"}
    command = [
        sys.executable,
        "-m",
        "calib",
        "run",
        str(notebook),
        "-o",
        "page.ipynb",
        "--numbers",
        "n.json",
        "-p",
        "scale=1.5",
    ]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert json.loads((tmp_path / "n.json").read_text())["small"]["value"] == 4.5


def test_the_kernel_is_this_interpreter_whatever_else_has_its_name(notebook, tmp_path, monkeypatch):
    spec = tmp_path / "elsewhere/kernels/python3/kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["/bin/false"], "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "elsewhere"))
    text = NOTEBOOK.replace('print("two")', 'import sys; record("small", python=sys.executable)')
    notebook.write_text(text, encoding="utf-8")
    assert execute(notebook, tmp_path / "page.ipynb")["small"]["python"] == sys.executable


def test_figures_are_drawn_in_the_style_of_the_book_alone(notebook, tmp_path):
    (tmp_path / "matplotlibrc").write_text("figure.figsize: 2, 1\naxes.facecolor: red\nsavefig.dpi: 20\n")
    pages = []
    for name, changed in (
        ("plain", {}),
        ("own", {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc"), "MPLBACKEND": "pdf"}),
    ):
        command = [sys.executable, "-m", "calib", "run", str(notebook), "-o", f"{name}.ipynb"]
        subprocess.run(command, cwd=tmp_path, env={**os.environ, **changed}, check=True)
        pages.append((tmp_path / f"{name}.ipynb").read_bytes())
    assert pages[0] == pages[1] and b"image/png" in pages[0]


def test_the_commit_is_that_of_the_checkout_or_none(tmp_path, monkeypatch):
    from calib.pages import provenance

    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "c"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    own = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    assert provenance.circumstances()["commit"] == (own or None)
    (tmp_path / "inside/calib").mkdir(parents=True)  # an environment inside of another repository
    monkeypatch.setattr(provenance, "CHECKOUT", tmp_path / "inside")
    assert provenance.circumstances()["commit"] is None and provenance.circumstances()["changed"] is False


def test_an_unknown_parameter_is_an_error_that_lists_the_known_ones(notebook, tmp_path):
    with pytest.raises(NotebookError, match=r"small.py: unknown parameter scael; its parameters are scale"):
        execute(notebook, tmp_path / "page.ipynb", {"scael": 1})
    assert not (tmp_path / "page.ipynb").exists()


def test_a_lost_parameters_tag_is_an_error(notebook, tmp_path):
    notebook.write_text(NOTEBOOK.replace(' tags=["parameters"]', ""), encoding="utf-8")
    with pytest.raises(NotebookError, match='expected a cell tagged "parameters"'):
        execute(notebook, tmp_path / "page.ipynb")


def test_a_failing_cell_is_named_and_leaves_the_last_good_page(notebook, tmp_path):
    output, numbers = tmp_path / "page.ipynb", tmp_path / "numbers.json"
    output.write_text("last good page")
    notebook.write_text(NOTEBOOK.replace('print("two")', "undefined_name"), encoding="utf-8")
    with pytest.raises(NotebookError) as caught:
        execute(notebook, output, numbers=numbers)
    first, last = str(caught.value).splitlines()[0], str(caught.value).splitlines()[-1]
    assert first == last and "small.py: cell 2 failed with NameError: name 'undefined_name' is not defined" in first
    assert "\x1b" not in str(caught.value)
    assert output.read_text() == "last good page" and not numbers.exists()
    assert not list(tmp_path.glob(".run-*"))


def test_a_cell_that_warns_is_an_error_in_the_book_and_kept_elsewhere(notebook, tmp_path):
    text = NOTEBOOK.replace('print("two")', "import warnings; warnings.warn('this is old')")
    notebook.write_text(text, encoding="utf-8")
    with pytest.raises(NotebookError, match=r"small.py: cell 2 warns, and a page shows no warnings"):
        execute(notebook, tmp_path / "page.ipynb")
    assert not (tmp_path / "page.ipynb").exists()
    execute(notebook, tmp_path / "page.ipynb", warnings=True)
    assert "this is old" in (tmp_path / "page.ipynb").read_text(encoding="utf-8")


def test_whatever_a_cell_writes_to_its_error_stream_is_refused(notebook, tmp_path):
    notebook.write_text(
        NOTEBOOK.replace('print("two")', "import sys; print('a remark', file=sys.stderr)"), encoding="utf-8"
    )
    with pytest.raises(NotebookError, match="cell 2 warns"):
        execute(notebook, tmp_path / "page.ipynb")


def test_the_peak_of_memory_is_that_of_the_kernel(notebook, tmp_path):
    """The program that runs the notebook stays far below what the notebook takes."""
    notebook.write_text(NOTEBOOK.replace('print("two")', "held = b'1' * 600_000_000"), encoding="utf-8")
    command = ["run", notebook, "-o", tmp_path / "page.ipynb", "--status", tmp_path / "status.json"]
    subprocess.run([sys.executable, "-m", "calib", *command], cwd=ROOT, check=True, capture_output=True)
    assert 600 < results.load(tmp_path / "status.json")["peak_mb"] < 1000


def test_how_a_run_came_about_is_kept(notebook, tmp_path):
    (tmp_path / "data.csv").write_bytes(b"1,2\n")
    status = tmp_path / "status.json"
    execute(notebook, tmp_path / "page.ipynb", {"scale": 3.0}, status=status, data={"data.csv": tmp_path / "data.csv"})
    found = results.load(status)
    assert found["parameters"] == {"scale": 3.0} and found["fresh"] is True
    assert found["data"] == {"data.csv": hashlib.sha256(b"1,2\n").hexdigest()}
    assert 0.5 < found["seconds"] < 60 and 30 < found["peak_mb"] < 2000
    assert found["versions"]["numpy"] == np.__version__


@pytest.mark.parametrize("role", ["small/absent:.2f", "small/name:.2f"])
def test_a_number_that_was_not_recorded_or_cannot_be_formatted_is_an_error(notebook, tmp_path, role):
    notebook.write_text(NOTEBOOK.replace("small/value:.2f", role), encoding="utf-8")
    with pytest.raises(NotebookError, match="small.py: no number"):
        execute(notebook, tmp_path / "page.ipynb")
    assert not (tmp_path / "page.ipynb").exists()


def test_a_kernel_that_dies_is_named_with_its_cell(notebook, tmp_path):
    notebook.write_text(NOTEBOOK.replace('print("two")', "import os; os._exit(3)"), encoding="utf-8")
    with pytest.raises(NotebookError, match=r"small.py: the kernel died in cell \d"):
        execute(notebook, tmp_path / "page.ipynb")


def test_a_cell_that_takes_too_long_is_named_with_the_limit(notebook, tmp_path):
    notebook.write_text(NOTEBOOK.replace('print("two")', "import time; time.sleep(60)"), encoding="utf-8")
    with pytest.raises(
        NotebookError, match=r"small.py: cell \d took longer than 2 s; give it more with --cell-seconds"
    ):
        execute(notebook, tmp_path / "page.ipynb", cell_seconds=2)
    assert not (tmp_path / "page.ipynb").exists()


def test_a_cell_that_shows_too_much_is_named_with_its_size(notebook, tmp_path):
    notebook.write_text(NOTEBOOK.replace('print("two")', 'print("x" * 30_000_000)'), encoding="utf-8")
    with pytest.raises(NotebookError, match=r"small.py: cell \d shows 30 MB, expected at most 20 in one cell"):
        execute(notebook, tmp_path / "page.ipynb")
    assert not (tmp_path / "page.ipynb").exists()


def test_a_number_recorded_twice_names_the_notebook(notebook, tmp_path):
    text = NOTEBOOK.replace('print("two")', 'record("small", value=1)')
    notebook.write_text(text, encoding="utf-8")
    with pytest.raises(NotebookError, match=r"small.py: small/value: recorded twice"):
        execute(notebook, tmp_path / "page.ipynb")


def test_the_source_is_never_the_output(notebook):
    with pytest.raises(NotebookError, match=r"expected an output that ends in .ipynb"):
        execute(notebook, notebook)
    assert notebook.read_text(encoding="utf-8") == NOTEBOOK


def fake_page(folder, name, **values):
    """An executed notebook that recorded values under the run `name`."""
    cell = nbformat.v4.new_code_cell("record(...)")
    for key, value in values.items():
        metadata = {"scrapbook": {"name": f"{name}/{key}", "mime_prefix": "application/papermill.record/"}}
        cell.outputs.append(nbformat.v4.new_output("display_data", {results.GLUE: repr(value)}, metadata=metadata))
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), cell])
    page.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(clean(page), folder / f"{name}.ipynb")


def test_a_published_page_says_so_and_keeps_its_numbers(tmp_path):
    fake_page(tmp_path / "record", "run", value=1.5)
    page = digest(tmp_path / "record/run.ipynb")
    results.save({"run": {"seconds": 2.0, "fresh": True, "page": page}}, tmp_path / "record/status.json")
    targets = tmp_path / "pages/run.ipynb", tmp_path / "run.json", tmp_path / "status.json"
    reuse(tmp_path / "record/run.ipynb", *targets, "no data.")
    page = nbformat.read(tmp_path / "pages/run.ipynb", as_version=4)
    assert "published run, not a fresh one: no data." in page.cells[1].source
    assert results.load(tmp_path / "run.json") == {"run": {"value": 1.5}}
    status = results.load(tmp_path / "status.json")
    assert (status["seconds"], status["fresh"]) == (2.0, False)
    fake_page(tmp_path / "record", "run", value=1.75)
    with pytest.raises(NotebookError, match="run.ipynb: changed since it was published"):
        reuse(tmp_path / "record/run.ipynb", *targets, "no data.")


# -- the notebooks of the book on a perturbed input give other numbers


def test_other_logits_give_other_numbers_in_the_six_examples(tmp_path):
    logits = [[3.0, 1.0, 0.0], [2.5, 1.0, 0.0], [3.0, 0.5, 0.0], [1.5, 2.0, 0.0], [0.5, 0.0, 1.5], [2.0, 2.5, 0.0]]
    numbers = execute(ROOT / "notebooks/six-examples.py", tmp_path / "page.ipynb", {"logits": logits})["six-examples"]
    assert numbers["accuracy"] == pytest.approx(4 / 6)
    assert numbers["temperature"] != pytest.approx(1.22975, abs=1e-3)
    assert numbers["nll_t1"] != pytest.approx(0.82278, abs=1e-4)
    assert numbers["ece4_fitted"] != pytest.approx(0.380, abs=1e-3)


@pytest.mark.data
def test_another_split_gives_other_numbers_in_the_sst2_section(tmp_path):
    published = results.load(ROOT / "book/published/results.json")["sst2-isolated-fit"]
    parameters = {"split_key": "another-key", "n_random_splits": 50}
    numbers = execute(ROOT / "notebooks/sst2-isolated-fit.py", tmp_path / "page.ipynb", parameters)["sst2-isolated-fit"]
    for name in ("temperature", "audit_nll_t1", "audit_nll_fitted", "calibration_brier_t1"):
        assert numbers[name] != pytest.approx(published[name], abs=1e-6), name
    assert sum(numbers[f"{pool}_correct"] for pool in ("exploration", "calibration", "audit")) == 794

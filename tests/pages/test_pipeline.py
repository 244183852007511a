"""The pipeline runs again exactly what depends on a change. Dry runs of Snakemake on a copy of the built book."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from calib.pages.runs import load_runs

ROOT = Path(__file__).parents[2]
RUNS = load_runs(ROOT / "notebooks/runs.yaml")
EVERYTHING = {*RUNS, "results", "site"}

pytestmark = [pytest.mark.data, pytest.mark.site]


@pytest.fixture
def book(tmp_path):
    """A copy of the checkout with its build, times of change kept."""
    copy = tmp_path / "book ö"
    parts = [
        "_build",
        "_config.yml",
        "_toc.yml",
        "Snakefile",
        "book",
        "calib",
        "notebooks",
        "requirements.txt",
    ]
    copy.mkdir()
    for part in [*parts, ".snakemake"]:
        source = ROOT / part
        shutil.copytree(source, copy / part) if source.is_dir() else shutil.copy2(source, copy / part)
    return copy


def planned(book, **environment):
    """Names of the runs and rules that a build would execute now."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nolock", "--rerun-incomplete", "--dry-run"]
    env = {**os.environ, "CALIB_DATA": str(Path(os.environ.get("CALIB_DATA", ROOT / "data")).resolve()), **environment}
    done = subprocess.run(command, cwd=book, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(
        r"^Job \d+: (run|keep|write|build) +(?:the )?([\w-]+)", done.stdout + done.stderr, flags=re.MULTILINE
    )
    return {"results" if verb == "write" else name for verb, name in found}


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_nothing_runs_where_nothing_changed(book):
    assert planned(book) == set()


def test_a_touched_file_is_no_change(book):
    (book / "notebooks/six-examples.py").touch()
    assert planned(book) == set()


def test_a_changed_notebook_runs_alone(book):
    edit(book / "notebooks/sst2-isolated-fit.py", "## Take-aways", "## Take-aways again")
    assert planned(book) == {"sst2-isolated-fit", "can-you-trust-the-numbers", "results", "site"}


def test_an_older_notebook_put_back_is_a_change_too(book):
    path = book / "notebooks/six-examples.py"
    edit(path, "## Take-aways", "## Take-aways again")
    os.utime(path, (0, 0))
    assert planned(book) == {"six-examples", "can-you-trust-the-numbers", "results", "site"}


def test_what_reads_the_numbers_of_a_run_runs_after_it(book):
    edit(book / "notebooks/soft-label-gap.py", "## Take-aways", "## Take-aways again")
    after = {run for run, entry in RUNS.items() if "soft-label-gap" in entry.after}
    assert len(after) == 3 and planned(book) == {"soft-label-gap", *after, "results", "site"}


def test_a_changed_parameter_runs_its_run(book):
    edit(
        book / "notebooks/runs.yaml",
        "notebook: six-examples",
        "notebook: six-examples\n  parameters: {grid_size: 1501}",
    )
    assert planned(book) == {"six-examples", "can-you-trust-the-numbers", "results", "site"}


def test_a_new_measurement_runs_the_page_that_shows_it(book):
    with (book / "book/measured/speed.json").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert planned(book) == {"can-you-trust-the-numbers", "results", "site"}


@pytest.mark.parametrize("path", ["calib/scores.py", "calib/data/registry.toml", "requirements.txt"])
def test_a_changed_package_pin_or_lock_runs_everything(book, path):
    with (book / path).open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    assert planned(book) == EVERYTHING


@pytest.mark.parametrize("path", ["book/glossary.md", "book/references.bib", "book/_static/book.css", "_config.yml"])
def test_changed_prose_builds_the_site_alone(book, path):
    with (book / path).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert planned(book) == {"site"}


@pytest.mark.record
def test_missing_data_bring_the_published_runs_and_say_so(book, tmp_path):
    (tmp_path / "empty").mkdir()
    expected = {run for run in RUNS if bool(RUNS[run].data)}
    assert planned(book, CALIB_DATA=str(tmp_path / "empty")) == {*expected, "results", "site"}


def test_where_data_and_the_published_run_are_missing_the_build_says_so(book, tmp_path):
    (tmp_path / "empty").mkdir()
    (book / "book/published/sst2-isolated-fit.ipynb").unlink()
    with pytest.raises(AssertionError, match="error: data are missing for .*sst2-isolated-fit.*`make data`"):
        planned(book, CALIB_DATA=str(tmp_path / "empty"))


def test_strict_refuses_to_build_without_data(book, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(AssertionError, match="STRICT is set and data are missing for: sst2-isolated-fit"):
        planned(book, CALIB_DATA=str(tmp_path / "empty"), STRICT="1")


@pytest.mark.record
def test_a_data_file_that_changed_is_not_taken_for_the_registered_one(book, tmp_path):
    source = Path(os.environ.get("CALIB_DATA", ROOT / "data")).resolve()
    other = tmp_path / "other"
    shutil.copytree(source, other, ignore=shutil.ignore_patterns("*.zip"))
    path = other / "sst2/distilbert-sst2-validation-logits.csv"
    path.chmod(0o644)
    edit(path, "4.7004594802856445", "4.7")
    runs = planned(book, CALIB_DATA=str(other))
    assert {"sst2-isolated-fit", "binning-sensitivity"} <= runs and "six-examples" not in runs

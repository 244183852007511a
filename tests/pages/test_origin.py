"""What is shown is what was made, from what is here now: whatever writes into a build after it, or takes from it."""

import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from calib.pages import origin
from calib.pages import record as results
from calib.pages.origin import site_problem
from conftest import ALONE, ROOT, build, start


def value_shown(book, name):
    page = (book / f"_build/html/notebooks/{name}.html").read_text(encoding="utf-8")
    return results.load(book / "_build/results.json")[name]["value"], page


def running(book, pattern):
    """Process numbers of what runs in a book, by a part of the command line."""
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in found if os.path.realpath(f"/proc/{pid}/cwd") == os.path.realpath(book)]


@pytest.mark.skipif(not os.path.exists("/proc/self/cwd"), reason="needs /proc")
@pytest.mark.parametrize("survivor", ["a run", "the site"])
def test_a_job_that_outlives_its_scheduler_publishes_nothing_old(small_book, survivor):
    """The scheduler alone is killed, a notebook edited, the book built again: the old job must not have the last word."""
    notebook = small_book / "notebooks/two.py"
    slow = notebook.read_text(encoding="utf-8").replace("time.sleep(0.2)", "time.sleep(6)")
    notebook.write_text(slow if survivor == "a run" else slow.replace("time.sleep(6)", ""), encoding="utf-8")
    first = start(small_book, *ALONE)
    job = "calib run notebooks/two.py" if survivor == "a run" else "jupyter-book build"
    deadline = time.monotonic() + 60
    while not running(small_book, job):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)
    for pid in running(small_book, "snakemake --cores"):
        os.kill(pid, signal.SIGKILL)
    first.wait(timeout=10)
    assert running(small_book, job)  # it goes on without its scheduler
    notebook.write_text(notebook.read_text(encoding="utf-8").replace("scale = 3", "scale = 5"), encoding="utf-8")
    output = build(small_book)
    assert "a job of a build that was killed is still at work; waiting" in output
    time.sleep(1)
    value, page = value_shown(small_book, "two")
    assert value == 7.5 and "Its value is 7.50." in page
    build(small_book)
    assert value_shown(small_book, "two") == (value, page)


def test_an_output_of_other_files_is_not_used(small_book):
    """What a run left from an older notebook is put back, dates and all the scheduler knows unchanged."""
    build(small_book)
    outputs = [
        small_book / path for path in ("book/notebooks/two.ipynb", "_build/results/two.json", "_build/status/two.json")
    ]
    old = [path.read_bytes() for path in outputs]
    notebook = small_book / "notebooks/two.py"
    notebook.write_text(notebook.read_text(encoding="utf-8").replace("scale = 3", "scale = 5"), encoding="utf-8")
    build(small_book)
    for path, content in zip(outputs, old):
        date = path.stat().st_mtime
        path.write_bytes(content)
        os.utime(path, (date, date))
    checked = start(small_book, "-m", "calib", "check", "two=" + results.load(outputs[2])["made_from"][::-1])
    assert "two.ipynb was made from other files; run `make book` again" in checked.communicate(timeout=60)[0]
    output = build(small_book)
    assert "run two: done" in output and "run one" not in output
    assert value_shown(small_book, "two")[0] == 7.5


def edit_number(path):
    text = path.read_text(encoding="utf-8")
    assert "4.5" in text
    path.write_text(text.replace("4.5", "4.6"), encoding="utf-8")


RUN = SimpleNamespace(page="two.ipynb", numbers="two.json", status="status.json")
CHANGES = {
    "a number in an executed notebook": ("two.ipynb", edit_number),
    "a truncated notebook": ("two.ipynb", lambda path: path.write_bytes(path.read_bytes()[:20])),
    "a number in a result": ("two.json", edit_number),
    "a truncated status": ("status.json", lambda path: path.write_bytes(path.read_bytes()[:50])),
    "a number in a page": ("html/two.html", edit_number),
    "a deleted page": ("html/one.html", lambda path: path.unlink()),
    "a page that nothing made": ("html/three.html", lambda path: path.write_text("4.6")),
    "a truncated page": ("html/search.html", lambda path: path.write_text("<html>")),
    "an image, style or script": ("html/_static/book.css", lambda path: path.write_text("")),
}


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """What a small build leaves, and a function that names all problems with it."""
    monkeypatch.chdir(tmp_path)
    Path("two.ipynb").write_text('{"cells": ["a number: 4.5"]}')
    Path("two.json").write_text('{"two": {"value": 4.5}}')
    results.save(origin.seal("abc", RUN.page, RUN.numbers), RUN.status)
    Path("html/_static").mkdir(parents=True)
    for name in ("one.html", "two.html", "search.html", "_static/book.css"):
        Path("html", name).write_text(f"{name}: 4.5")
    origin.seal_site("html", "html.json")
    return lambda: [origin.problem(RUN, "abc"), origin.site_problem("html", "html.json")]


@pytest.mark.parametrize(("name", "change"), CHANGES.values(), ids=CHANGES)
def test_what_was_changed_in_a_build_is_noticed_and_named(outputs, name, change):
    assert outputs() == [None, None]
    change(Path(name))
    (found,) = filter(None, outputs())
    assert found.startswith(f"{name} is ")


def test_what_was_made_from_other_files_or_never_ended_is_nothing_to_speak_of(outputs):
    assert origin.problem(RUN, "other") == ""
    Path("two.ipynb").unlink()
    assert origin.problem(RUN, "abc") == ""
    Path("html.json").unlink()
    assert origin.site_problem("html", "html.json") == "html is not whole"


def test_what_was_changed_in_a_build_is_rebuilt(small_book):
    build(small_book)
    whole = results.load(small_book / "_build/html.json")
    edit_number(small_book / "book/notebooks/two.ipynb")
    (small_book / "_build/html/notebooks/one.html").unlink()
    output = build(small_book)
    assert "book/notebooks/two.ipynb is not what the run wrote: two runs again" in output
    assert "_build/html/notebooks/one.html is not what the build wrote: the site is built again" in output
    assert results.load(small_book / "_build/html.json") == whole
    assert site_problem(small_book / "_build/html", small_book / "_build/html.json") is None
    assert "again" not in build(small_book)


def test_the_command_that_checks_outputs_names_what_was_edited(small_book):
    build(small_book)
    status = small_book / "_build/status/one.json"
    edit = small_book / "_build/results/one.json"
    edit.write_text(edit.read_text(encoding="utf-8").replace("3.0", "3.1"), encoding="utf-8")
    checked = start(small_book, "-m", "calib", "check", f"one={results.load(status)['made_from']}")
    assert "error: _build/results/one.json is not what the run wrote" in checked.communicate(timeout=60)[0]
    assert checked.returncode == 1 and not status.exists()


def test_the_real_build_is_sealed():
    if not (ROOT / "_build/html.json").exists():
        pytest.skip("the site is not built: make book")
    assert site_problem(ROOT / "_build/html", ROOT / "_build/html.json") is None

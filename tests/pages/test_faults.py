"""Builds that are killed, doubled, or short of room: a clear error, or the right site by the next build. No record is lost.

The whole chain runs on a small book of its own: two notebooks, one prose page, the project's Snakefile and extension.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from test_execute import fake_page

from calib.data import data_folder
from calib.pages import record as results
from calib.pages.edition import publish, restore
from calib.pages.execute import NotebookError
from calib.pages.origin import seal
from conftest import ALONE, build, fill, killed_at, start


@pytest.fixture
def book(small_book):
    return small_book


def kill(process, after):
    """Kill a process and all that it started after some seconds; False where it had ended before."""
    time.sleep(after)
    running = process.poll() is None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return running


def made(book):
    """What a build makes: executed notebooks, numbers, and the text of the pages."""
    files = [*book.glob("book/notebooks/*.ipynb"), *book.glob("_build/results*/*.json"), book / "_build/results.json"]
    texts = {str(path.relative_to(book)): path.read_bytes() for path in files if path.exists()}
    for page in book.glob("_build/html/**/*.html"):
        texts[str(page.relative_to(book))] = page.read_bytes()
    return texts


def test_a_build_killed_at_random_moments_ends_right_and_never_shows_a_wrong_number(book):
    started = time.monotonic()
    build(book)
    seconds, reference = time.monotonic() - started, made(book)
    assert "Its value is 4.50." in (book / "book/notebooks/two.ipynb").read_text(encoding="utf-8")
    rng, killed, attempts = random.Random(7), 0, 6
    for attempt in range(attempts):  # one kill in each sixth of a build
        if attempt % 2 == 0:  # from the start; else where the kill left it
            shutil.rmtree(book / "_build", ignore_errors=True)
            shutil.rmtree(book / "book/notebooks", ignore_errors=True)
        killed += kill(start(book, *ALONE), 0.3 + 0.9 * seconds * (attempt + rng.random()) / attempts)
        for name, content in made(book).items():
            if not name.endswith(".html"):
                assert content == reference[name], name
    assert killed >= 4
    build(book)
    assert made(book) == reference
    leftovers = [str(path) for path in [*book.rglob("*.part"), *book.rglob(".download-*")]]
    assert leftovers == []


def test_a_second_build_waits_for_the_first_and_a_killed_one_leaves_no_lock(book):
    first, second = start(book, *ALONE), start(book, *ALONE)
    outputs = [process.communicate(timeout=120)[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], outputs
    assert sum("another build is at work in this folder; waiting" in output for output in outputs) == 1
    assert sum("run one" in output for output in outputs) == 1
    sleeper = start(book, "book/_tools/alone.py", "_build/.lock", "sleep", "60")
    assert kill(sleeper, 0.5)
    (book / ".snakemake/locks").mkdir(exist_ok=True)  # what a killed build of Snakemake's own locking leaves
    (book / ".snakemake/locks/0.output.lock").write_text(str(book / "_build/results.json"))
    edited = (book / "notebooks/one.py").read_text(encoding="utf-8").replace("scale = 2", "scale = 4")
    (book / "notebooks/one.py").write_text(edited, encoding="utf-8")
    output = build(book)
    assert "waiting" not in output and "run one: done in" in output and "steps left" in output
    assert results.load(book / "_build/results.json")["one"]["value"] == 6.0


def test_the_traceback_of_a_failing_cell_ends_the_build_and_the_last_good_site_stays(book):
    build(book)
    before = made(book)
    edited = (book / "notebooks/two.py").read_text(encoding="utf-8").replace("time.sleep(0.2)", "1 / 0")
    (book / "notebooks/two.py").write_text(edited, encoding="utf-8")
    process = start(book, *ALONE)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 1
    assert "ZeroDivisionError" in "\n".join(output.splitlines()[-8:])
    assert "notebooks/two.py: cell 2 failed with ZeroDivisionError: division by zero" in output
    after = made(book)
    assert {name: after[name] for name in before if name.endswith(".html")} == {
        name: text for name, text in before.items() if name.endswith(".html")
    }


def test_a_full_disk_is_an_error_and_the_last_page_stays(book, small_disk):
    page = small_disk / "page.ipynb"
    page.write_text("the last good page")
    fill(small_disk)
    process = start(book, "-m", "calib", "run", "notebooks/one.py", "-o", page)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert output.startswith("error: ") and "No space left on device" in output.splitlines()[0], output
    assert page.read_text() == "the last good page"


def test_a_full_disk_does_not_cost_the_record(tmp_path, small_disk):
    numbers = pages(tmp_path, first=1.5)
    publish(["first"], tmp_path / "pages", numbers, tmp_path / "status", small_disk / "record")
    numbers = pages(tmp_path, first=2.5)
    fill(small_disk)
    with pytest.raises(OSError, match="No space left"):
        publish(["first"], tmp_path / "pages", numbers, tmp_path / "status", small_disk / "record")
    restore(small_disk / "record")
    assert results.load(small_disk / "record/results.json") == {"first": {"value": 1.5}}


def test_a_whole_book_is_built_where_the_home_cannot_be_written(book):
    caches = {"XDG_CACHE_HOME": str(book / "cache"), "MPLCONFIGDIR": str(book / "cache")}
    build(book, HOME="/proc/nowhere", **caches)
    assert (book / "_build/html/index.html").exists()


def test_a_checkout_that_cannot_be_written_is_an_error_in_one_line(book):
    build(book)
    if subprocess.run(["mount", "--bind", "-o", "ro", book, book], capture_output=True).returncode:
        pytest.skip("mounting a folder read-only needs root")
    try:
        output = start(book, *ALONE).communicate(timeout=60)[0]
    finally:
        subprocess.run(["umount", book], check=True)
    assert len(output.strip().splitlines()) == 1
    assert output.startswith("error: a build writes into") and "Read-only file system" in output


@pytest.fixture
def read_only_data(tmp_path):
    """The real data, in a folder that nobody can write."""
    folder = tmp_path / "data"
    folder.mkdir()
    mount = ["mount", "--bind", "-o", "ro", data_folder(), folder]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a folder read-only needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.data
def test_complete_data_in_a_folder_that_cannot_be_written_are_used_as_they_are(book, read_only_data):
    with pytest.raises(OSError, match="Read-only"):
        (read_only_data / "x").write_text("x")
    process = start(book, "-m", "calib", "data", CALIB_DATA=str(read_only_data))
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and "files are in" in output, output


# -- the published record


def pages(folder, **values):
    """A build with a page per value; returns its results.json."""
    for name, value in values.items():
        fake_page(folder / "pages", name, value=value)
        (folder / "status").mkdir(exist_ok=True)
        status = {"fresh": True, "changed": False} | seal(None, folder / f"pages/{name}.ipynb")
        results.save(status, folder / f"status/{name}.json")
    results.save({name: {"value": value} for name, value in values.items()}, folder / "results.json")
    return folder / "results.json"


def test_a_renewal_of_the_record_killed_at_any_step_is_whole_or_did_not_happen(tmp_path):
    first = pages(tmp_path, one=1.5, two=2.5)
    arguments = [tmp_path / "pages", first, tmp_path / "status", tmp_path / "record"]
    publish(["one", "two"], *arguments)
    old = {path.name: path.read_bytes() for path in (tmp_path / "record").iterdir()}
    pages(tmp_path, one=3.5, two=4.5)
    shutil.copytree(tmp_path / "record", tmp_path / "kept")
    publish(["one", "two"], *arguments)
    new = {path.name: path.read_bytes() for path in (tmp_path / "record").iterdir()}
    assert old != new
    outcomes = []
    for step in range(1, 200):
        shutil.rmtree(tmp_path / "record")
        shutil.copytree(tmp_path / "kept", tmp_path / "record")
        ended = killed_at(step, publish, ["one", "two"], *arguments)
        restore(tmp_path / "record")
        found = {path.name: path.read_bytes() for path in (tmp_path / "record").iterdir()}
        assert found in (old, new), step
        assert not list(tmp_path.glob(".record-*"))
        outcomes.append(found == new)
        if ended:
            break
    assert ended and outcomes[-1] and 10 < outcomes.count(False), outcomes
    assert sorted(outcomes) == outcomes


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "pages/two.ipynb").unlink(), "two.ipynb: expected a run of two, found none"),
        (lambda folder: results.save({"fresh": False}, folder / "status/two.json"), "two: expected a fresh run"),
        (
            lambda folder: results.save({"fresh": True, "changed": True}, folder / "status/two.json"),
            "two: ran from files that are not committed",
        ),
        (
            lambda folder: results.save({"one": {"value": 1.5}}, folder / "results.json"),
            "expected the numbers of the pages",
        ),
        (
            lambda folder: fake_page(folder / "pages", "two", value=2.75),
            "two.ipynb: changed since its run wrote it",
        ),
    ],
    ids=[
        "a page is missing",
        "a page was not freshly run",
        "not committed",
        "numbers of another build",
        "a page that was edited",
    ],
)
def test_the_record_is_renewed_only_from_a_complete_fresh_committed_build(tmp_path, break_it, message):
    numbers = pages(tmp_path, one=1.5, two=2.5)
    break_it(tmp_path)
    with pytest.raises(NotebookError, match=message):
        publish(["one", "two"], tmp_path / "pages", numbers, tmp_path / "status", tmp_path / "record")
    assert not (tmp_path / "record").exists()

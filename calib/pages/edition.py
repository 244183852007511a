"""The published record: executed notebooks, their numbers and how they came about, as they were published."""

import shutil
from pathlib import Path

from calib.pages import record as results
from calib.pages.execute import NotebookError, write
from calib.pages.origin import digest, seal

NOTE = "published-run"  # id of the cell that says that a page shows a published run


def reuse(record, output, numbers, status, reason, made_from=None):
    """Put a published notebook in the place of a fresh run, with a note under its title that says so and why.

    Parameters
    ----------
    record : path
        The published, executed notebook; the record's ``status.json`` lies beside it.
    output, numbers, status : path
        As in `calib.pages.execute.execute`.
    reason : str
        Why there is no fresh run.
    made_from : str, optional
        See `calib.pages.origin`.
    """
    import nbformat

    record, output = Path(record), Path(output)
    about = results.load(record.with_name("status.json"))[record.stem]
    if digest(record) != about.pop("page", None):
        raise NotebookError(f"{record}: changed since it was published; get it back with `git checkout {record}`")
    notebook = nbformat.read(record, as_version=4)
    cell = nbformat.v4.new_markdown_cell(
        f":::{{warning}}\nThis page shows the published run, not a fresh one: {reason}\n:::"
    )
    cell.id = NOTE
    notebook.cells.insert(1, cell)
    output.parent.mkdir(parents=True, exist_ok=True)
    results.save(results.collect(notebook), numbers)
    write(notebook, output)
    results.save(about | {"fresh": False} | seal(made_from, output, numbers), status)


def install_cell(run, origin):
    """First code cell of a published notebook: where `calib` is missing, install it and get the data.

    The site does not show it.

    Parameters
    ----------
    run : calib.pages.runs.Run
    origin : str
        Where pip finds the package, as ``git+<address>@<commit>``.
    """
    import nbformat

    extra = f"[{run.extra}]" if run.extra else ""
    lines = [
        "# Outside of the book's own environment: its package, as published, and the data.",
        "import sys",
        "from importlib.util import find_spec",
        "",
        'if find_spec("calib") is None:',
        f'    %pip install -q "calib{extra} @ {origin}"',
    ]
    if run.data:
        lines.append("    !{sys.executable} -m calib data")
    return nbformat.v4.new_code_cell("\n".join(lines), id="install", metadata={"tags": ["remove-cell"]})


def publish(runs, pages, numbers, statuses, record, address=""):
    """Renew the published record from a complete, fresh build of a committed state, whole or not at all.

    Parameters
    ----------
    runs : dict of str to calib.pages.runs.Run
    pages : path
        Folder of executed notebooks, with the figures that other pages show.
    numbers : path
        The merged ``results.json`` of the same build.
    statuses : path
        Folder of how each run came about.
    record : path
        Folder of the published record.
    address : str
        Of the public repository. Notebooks that stand alone then have an `install_cell` for the commit they ran at.

    Raises
    ------
    NotebookError
        If a page is missing, shows an earlier published run, or ran from files that are not committed; or if the
        numbers are not those of the pages.
    """
    pages, numbers, record = Path(pages), Path(numbers), Path(record)
    restore(record)
    status = {run: _fresh(run, pages, Path(statuses)) for run in runs}
    recorded = collect(runs, pages)
    if recorded != results.load(numbers):
        raise NotebookError(f"{numbers}: expected the numbers of the pages in {pages}; run `make book` first")
    if address and None in [state["commit"] for state in status.values()]:
        raise NotebookError(
            "expected a git checkout: the install cell of a published notebook names the commit it ran at"
        )
    fresh, old = _beside(record)
    fresh.mkdir()
    for path in [*(pages / f"{run}.ipynb" for run in runs), *pages.glob("*.png"), numbers]:
        shutil.copy(path, fresh)
    for run in filter(lambda run: address and runs[run].stands_alone, runs):
        _insert(install_cell(runs[run], f"git+{address}@{status[run]['commit']}"), fresh / f"{run}.ipynb")
    status = {run: state | {"page": digest(fresh / f"{run}.ipynb")} for run, state in status.items()}
    results.save(status, fresh / "status.json")
    if record.exists():
        record.rename(old)
    fresh.rename(record)
    restore(record)


def collect(runs, pages):
    """Numbers of all pages of a build: {run: {name: value}}."""
    import nbformat

    return results.merge(results.collect(nbformat.read(Path(pages) / f"{run}.ipynb", as_version=4)) for run in runs)


def restore(record):
    """Undo a renewal of the record that was killed: the last whole record is in place again, and no part of another."""
    record = Path(record)
    fresh, old = _beside(record)
    if old.exists() and not record.exists():
        old.rename(record)
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _insert(cell, path):
    """Put a cell under the title of a notebook."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(1, cell)
    write(notebook, path)


def _beside(record):
    return record.with_name(f".{record.name}-new"), record.with_name(f".{record.name}-old")


def _fresh(run, pages, statuses):
    """Check that a page comes from a fresh run of a committed state; return how it came about."""
    for path in (pages / f"{run}.ipynb", statuses / f"{run}.json"):
        if not path.exists():
            raise NotebookError(f"{path}: expected a run of {run}, found none; run `make book` first")
    status = results.load(statuses / f"{run}.json")
    if not status["fresh"]:
        raise NotebookError(f"{run}: expected a fresh run, found a published one; get the data with `make data`")
    if status["changed"]:
        raise NotebookError(f"{run}: ran from files that are not committed; commit them, then `make clean publish`")
    if digest(pages / f"{run}.ipynb") != status["wrote"]["page"]:
        raise NotebookError(f"{pages / run}.ipynb: changed since its run wrote it; run `make book` first")
    return {name: value for name, value in status.items() if name not in ("made_from", "wrote")}

"""The published record: executed notebooks and their numbers as they were published."""

import shutil
import tempfile
from pathlib import Path

from calib import results
from calib.execute import NotebookError, write


def reuse(record, output, numbers, reason):
    """Put a published notebook in the place of a fresh run, with a note under its title that says so and why.

    Parameters
    ----------
    record : path
        The published, executed notebook.
    output, numbers : path
        As in `execute`.
    reason : str
        Why there is no fresh run.
    """
    import nbformat

    notebook = nbformat.read(record, as_version=4)
    note = f":::{{warning}}\nThis page shows the published run, not a fresh one: {reason}\n:::"
    cell = nbformat.v4.new_markdown_cell(note)
    cell.id = "published-run"
    notebook.cells.insert(1, cell)
    output = Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    results.save(results.collect(notebook), numbers)
    write(notebook, output)


def publish(pages, numbers, record):
    """Renew the published record from a complete, fresh build, whole or not at all.

    Parameters
    ----------
    pages : path
        Folder of executed notebooks, with the figures that other pages show.
    numbers : path
        The merged ``results.json`` of the same build.
    record : path
        Folder of the published record.

    Raises
    ------
    NotebookError
        If a page shows an earlier published run, or a number of the pages is missing from `numbers`.
    """
    import nbformat

    pages, numbers, record = Path(pages), Path(numbers), Path(record)
    recorded = {}
    for path in sorted(pages.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if any(cell.id == "published-run" for cell in notebook.cells):
            raise NotebookError(f"{path}: expected a fresh run, found a published one; get the data with `make data`")
        recorded.update(results.collect(notebook))
    if not recorded or recorded != results.load(numbers):
        raise NotebookError(f"{numbers}: expected the numbers of the pages in {pages}; run `make book` first")
    with tempfile.TemporaryDirectory(dir=numbers.parent, prefix="publish-") as scratch:
        fresh, old = Path(scratch) / "fresh", Path(scratch) / "old"
        fresh.mkdir()
        for path in [*pages.glob("*.ipynb"), *pages.glob("*.png"), numbers]:
            shutil.copy(path, fresh)
        if record.exists():
            record.rename(old)
        fresh.rename(record)

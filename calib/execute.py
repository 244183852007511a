"""Run one parameterised notebook: checked parameters, whole output or none, the same bytes every time."""

import inspect
import os
import re
import tempfile
from pathlib import Path

from calib import results
from calib.data import data_folder

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class NotebookError(Exception):
    """A notebook could not be run: names the notebook, the cell and the reason."""


def execute(source, output, parameters=None, numbers=None):
    """Execute a percent-format notebook with papermill and keep it as a clean ``.ipynb``.

    Parameters
    ----------
    source : path
        The ``.py`` notebook; it runs in its own folder.
    output : path
        Where the executed notebook goes. It appears only if every cell ran.
    parameters : dict, optional
        Values for names that its ``parameters`` cell defines; any other name is an error.
    numbers : path, optional
        Where to save, as JSON, the numbers that the notebook recorded.

    Returns
    -------
    dict
        The numbers that the notebook recorded: {run: {name: value}}.

    Raises
    ------
    NotebookError
        For an unknown parameter, a missing ``parameters`` cell, or a cell that fails.
    """
    import jupytext
    import nbformat
    import papermill
    from papermill.exceptions import PapermillExecutionError

    source, output, parameters = Path(source), Path(output), parameters or {}
    notebook = jupytext.read(source)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    _check_parameters(source, notebook, parameters)
    output.parent.mkdir(parents=True, exist_ok=True)
    environment = {**dict.fromkeys(THREADS, "1"), "CALIB_DATA": str(data_folder()), "PYTHONHASHSEED": "0"}
    os.environ.update(environment)  # inherited by the kernel
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".run-") as scratch:
        partial = Path(scratch) / output.name
        try:
            papermill.execute_notebook(
                notebook,
                str(partial),
                parameters,
                cwd=str(source.parent),
                kernel_name="python3",
                progress_bar=False,
                extra_arguments=["--log-level=CRITICAL"],
                shutdown_kernel="immediate",
            )
        except PapermillExecutionError as error:
            raise NotebookError(_failure(source, error)) from None
        executed = clean(nbformat.read(partial, as_version=4))
        recorded = results.collect(executed)
        nbformat.write(executed, partial)
        if numbers:
            results.save(recorded, Path(numbers))
        partial.replace(output)
    return recorded


def _check_parameters(source, notebook, parameters):
    import papermill

    if not any("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells):
        raise NotebookError(f'{source}: expected a cell tagged "parameters", found none')
    known = papermill.inspect_notebook(notebook)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise NotebookError(f"{source}: unknown parameter {', '.join(unknown)}; its parameters are {', '.join(sorted(known))}")


def _failure(source, error):
    """The traceback of a failing cell, with the name of the notebook and the number and text of the cell."""
    colours = re.compile(r"\x1b\[[0-9;]*m")
    traceback = colours.sub("", "\n".join(error.traceback))
    return f"{source}: cell {error.exec_count} failed with {error.ename}: {error.evalue}\n\n{inspect.cleandoc(error.source)}\n\n{traceback}"


def clean(notebook):
    """Drop what differs from run to run, and hand each figure's caption and alt text to its cell.

    Times, paths, papermill's own records and random cell ids go; ids count the cells.
    """
    keep = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    notebook.metadata = type(notebook.metadata)(keep)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        tags = [tag for tag in cell.metadata.get("tags", []) if not tag.startswith("papermill")]
        cell.metadata = type(cell.metadata)({"tags": tags} if tags else {})
        if "injected-parameters" in tags:
            tags.append("hide-input")
        if cell.cell_type != "code":
            continue
        cell.outputs = _merge_streams(cell.outputs)
        for output in cell.outputs:
            figure = output.get("metadata", {}).pop("image/png", None)
            if figure:
                image = {"alt": figure["alt"]}
                cell.metadata["mystnb"] = {"image": image, "figure": {"name": figure["name"], "caption": figure["caption"]}}
    return notebook


def _merge_streams(outputs):
    """Join neighbouring pieces of the same stream: how a stream is cut depends on timing."""
    merged = []
    for output in outputs:
        last = merged[-1] if merged else None
        if last and output.output_type == "stream" and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


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
    results.save(results.collect(notebook), Path(numbers))
    scratch = output.with_name(output.name + ".part")
    nbformat.write(notebook, scratch)
    scratch.replace(output)

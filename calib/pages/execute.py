"""Run one parameterised notebook: checked parameters, whole output or none, the same bytes every time."""

import json
import os
import re
import resource
import sys
import tempfile
import time
from pathlib import Path

from calib.data import data_folder
from calib.data.whole import write_whole
from calib.pages import record as results
from calib.pages.origin import seal
from calib.pages.parameters import defaults_of
from calib.pages.provenance import provenance
from calib.pages.reads import undeclared, watch

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
HOMES = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")  # the home may be read-only
CELL_SECONDS = 1200
LARGEST_OUTPUT = 20_000_000  # characters that one cell may show, encoded


class NotebookError(Exception):
    """A notebook could not be run: names the notebook, the cell and the reason."""


def execute(
    source,
    output,
    parameters=None,
    numbers=None,
    status=None,
    data=None,
    reads=None,
    made_from=None,
    warnings=False,
    cell_seconds=CELL_SECONDS,
):
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
    status : path, optional
        Where to save, as JSON, how the run came about: see `calib.pages.provenance`.
    data : dict of str to path, optional
        The data files that the run may read; the status names them.
    reads : collection of str, optional
        Other files of the checkout that it may read. By default nothing is refused.
    made_from : str, optional
        Digest of what the run reads, kept in the status: see `calib.pages.origin`.
    warnings : bool
        Keep what a cell writes to its error stream; by default it is an error.
    cell_seconds : int
        Longest time for one cell.

    Returns
    -------
    dict
        The numbers that the notebook recorded: {run: {name: value}}.

    Raises
    ------
    NotebookError
        For an unknown parameter, a missing ``parameters`` cell, or a cell that fails, warns, takes longer than it may
        or shows more than `LARGEST_OUTPUT`, and where it reads a file that it may not.
    """
    import jupytext

    source, output, parameters = Path(source), Path(output), parameters or {}
    if output.suffix != ".ipynb":
        raise NotebookError(f"{output}: expected an output that ends in .ipynb")
    notebook = jupytext.read(source)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    _check_parameters(source, parameters)
    output.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    executed, opened = _run_all_cells(source, notebook, parameters, cell_seconds)
    executed, seconds = clean(executed), time.monotonic() - started
    if reads is not None and (others := undeclared(opened, {*reads, *(data or {})})):
        raise NotebookError(
            f"{source}: reads {', '.join(others)}, which its run does not declare; add them to `data`, `reads`, "
            "`after` or `writes` in notebooks/runs.yaml"
        )
    if not warnings:
        _refuse_warnings(source, executed)
    try:
        recorded = results.collect(executed)
    except ValueError as error:
        raise NotebookError(f"{source}: {error}") from error
    _resolve_numbers(source, executed)
    if numbers:
        results.save(recorded, numbers)
    write(executed, output)
    if status:  # the last to be written: it seals the others
        about = provenance(source, parameters, data or {}, seconds, _peak_mb())
        results.save(about | seal(made_from, output, numbers), status)
    return recorded


def _run_all_cells(source, notebook, parameters, cell_seconds):
    """Run a notebook with papermill, in its own folder; its numbers must not depend on threads or on a home."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    begun = []

    def begin(cell, cell_index):
        if cell.cell_type == "code":
            begun.append(cell_index)

    def end(cell, cell_index, execute_reply):
        size = sum(len(json.dumps(output)) for output in cell.outputs)
        if size > LARGEST_OUTPUT:
            raise NotebookError(
                f"{source}: cell {len(begun)} shows {size / 1e6:.0f} MB, expected at most {LARGEST_OUTPUT / 1e6:.0f} "
                "in one cell; show less, or write it to a file"
            )

    with tempfile.TemporaryDirectory(prefix="calib-run-") as scratch:
        environment = {**dict.fromkeys(THREADS, "1"), **dict.fromkeys(HOMES, scratch), "PYTHONHASHSEED": "0"}
        environment |= _own_kernel(Path(scratch)) | _own_style(Path(scratch))
        os.environ.update(environment, CALIB_DATA=str(data_folder()))  # inherited by the kernel
        log = watch(scratch)
        try:
            executed = papermill.execute_notebook(
                notebook,
                None,
                parameters,
                cwd=str(source.parent),
                kernel_name="python3",
                progress_bar=False,
                extra_arguments=["--log-level=CRITICAL"],
                shutdown_kernel="immediate",
                request_save_on_cell_execute=False,
                execution_timeout=cell_seconds,
                on_cell_start=begin,
                on_cell_executed=end,
            )
        except PapermillExecutionError as error:
            raise NotebookError(_failure(source, error)) from None
        except DeadKernelError as error:
            raise NotebookError(f"{source}: the kernel died in cell {len(begun)}; out of memory?") from error
        except CellTimeoutError:
            raise NotebookError(
                f"{source}: cell {len(begun)} took longer than {cell_seconds} s; give it more with --cell-seconds"
            ) from None
        return executed, log.read_text(encoding="utf-8").splitlines()


def _own_kernel(folder):
    """Settings for which the kernel python3 is this interpreter, whatever else is installed under that name."""
    spec = folder / "kernels/python3/kernel.json"
    spec.parent.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": command, "display_name": "Python 3", "language": "python"}), encoding="utf-8")
    return {"JUPYTER_PATH": str(folder)}


def _own_style(folder):
    """Settings for which figures start from Matplotlib's defaults, and not from what the user has set for others."""
    (folder / "matplotlibrc").touch()
    return {"MATPLOTLIBRC": str(folder / "matplotlibrc"), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def write(notebook, output):
    """Write a notebook, whole or not at all."""
    import nbformat

    write_whole({output: lambda file: file.write((nbformat.writes(notebook) + "\n").encode())})


def defaults(source):
    """Parameters of a notebook with their values; a notebook without a ``parameters`` cell is an error."""
    import jupytext

    found = defaults_of(jupytext.read(source))
    if found is None:
        raise NotebookError(f'{source}: expected a cell tagged "parameters", found none')
    return found


def _check_parameters(source, parameters):
    known = defaults(source)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        names = ", ".join(sorted(known))
        raise NotebookError(f"{source}: unknown parameter {', '.join(unknown)}; its parameters are {names}")


def _failure(source, error):
    """The traceback of a failing cell, with the name of the notebook and the number and text of the cell."""
    traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    where = f"{source}: cell {error.exec_count} failed with {error.ename}: {error.evalue}"
    return f"{where}\n\n{error.source}\n\n{traceback}\n{where}"


def _refuse_warnings(source, notebook):
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                where = f"{source}: cell {cell.execution_count} warns, and a page shows no warnings; mend the cause"
                raise NotebookError(f"{where}:\n\n{output.text}\n{where}")


def _peak_mb():
    """Largest resident memory of a child process that has ended: the kernel."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def clean(notebook):
    """Drop what differs from run to run, and hand each figure's caption and alt text to its cell.

    Times, paths, papermill's own records and random cell ids go; ids count the cells. Where parameters were given,
    they are shown and the cell with the defaults is folded.
    """
    keep = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    notebook.metadata = type(notebook.metadata)(keep)
    injected = any("injected-parameters" in cell.metadata.get("tags", []) for cell in notebook.cells)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        tags = cell.metadata.get("tags", [])
        if injected and "parameters" in tags:
            tags.append("hide-input")
        cell.metadata = type(cell.metadata)({"tags": tags} if tags else {})
        if cell.cell_type != "code":
            continue
        cell.outputs = _merge_streams(cell.outputs)
        for output in cell.outputs:
            figure = output.get("metadata", {}).pop("image/png", None)
            if figure:
                caption = {"name": figure["name"], "caption": figure["caption"]}
                cell.metadata["mystnb"] = {"image": {"alt": figure["alt"]}, "figure": caption}
    return notebook


def _resolve_numbers(source, notebook):
    """Put the recorded numbers into the text."""
    values = results.glued(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            try:
                cell.source = results.resolve(cell.source, values)
            except (KeyError, ValueError) as error:
                raise NotebookError(f"{source}: no number {error} for the text:\n{cell.source}") from error


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

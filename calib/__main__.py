"""The command line; ``calib --help`` lists its commands."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from calib.models import command

EXTRAS = {
    **dict.fromkeys(("ipykernel", "jupytext", "nbformat", "nbclient", "papermill", "yaml"), "book"),
    **dict.fromkeys(("filelock", "huggingface_hub", "PIL", "pyarrow", "safetensors", "torch", "torchvision"), "models"),
    "transformers": "models",
}
"""The extra of the package that a module belongs to."""


class Commands(TyperGroup):
    """The commands; where a package is missing that only some of them need, a line says how to get it."""

    def invoke(self, ctx):
        """Run a command."""
        try:
            return super().invoke(ctx)
        except ImportError as error:
            extra = EXTRAS.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            _fail(f"{error}; this command needs more packages: in a checkout of the project, pip install '.[{extra}]'")


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Calibration of classifiers: data, fits, models, notebooks of the book.",
)
app.add_typer(command.train, name="train")
app.command()(command.predict)


def _fail(error):
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(1)


@app.command()
def data(
    jpeg_copies: Annotated[
        Path | None, typer.Option(help="pack the JPEG copies of CIFAR-10 from this clone of their repository first")
    ] = None,
):
    """Get every registered data file: check what is there, download what is missing, say what could not be had."""
    from tqdm import tqdm

    from calib.data import REGISTRY, DataUnavailable, data_folder
    from calib.data.download import fetch_all
    from calib.models.images import pack_copies

    if jpeg_copies is not None:
        try:
            typer.echo(f"packed {pack_copies(jpeg_copies)}")
        except (DataUnavailable, OSError) as error:
            _fail(error)

    bar = tqdm(total=len(REGISTRY), unit="file", disable=None, leave=False)
    outcomes = {}

    def report(name, outcome):
        outcomes[name] = outcome
        bar.set_description(name, refresh=False)
        bar.update()
        if outcome == "downloaded":
            bar.write(f"downloaded {name}")

    missing = fetch_all(report)
    bar.close()
    there = [name for name, outcome in outcomes.items() if outcome in ("there", "downloaded")]
    size = sum(REGISTRY[name].size for name in there) / 1e6
    reasons = {}
    for name, outcome in outcomes.items():
        if name not in there:
            reason = outcome.removeprefix(f"{name}: ") + (" (optional)" if REGISTRY[name].optional else "")
            reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        typer.echo(f"missing: {', '.join(names[:3])}{f' and {len(names) - 3} more' * (len(names) > 3)}: {reason}")
    typer.echo(f"data: {len(there)} of {len(REGISTRY)} files are in {data_folder()} and checked ({size:.1f} MB)")
    if missing:
        _fail(
            f"{len(missing)} needed files are missing; run the same command again, it goes on where it stopped, "
            "or set CALIB_DATA to a folder that has them"
        )


@app.command()
def fit(
    path: Annotated[Path, typer.Argument(help="CSV with a column label and columns logit_0, logit_1, ...")],
    objective: Annotated[str, typer.Option(help="nll or brier")] = "nll",
    bins: Annotated[int, typer.Option(min=1, help="equal-width bins of the ECE")] = 15,
):
    """Fit a temperature to logits and labels in a CSV file, and report scores at T = 1 and fitted."""
    from calib import accuracy, brier, ece, fit_temperature, nll, softmax, top_label
    from calib.data.logits_table import read_logits

    try:
        predictions = read_logits(path)
        logits, labels = predictions.logits, predictions.labels
        fitted = fit_temperature(logits, labels, objective=objective)
    except (OSError, ValueError) as error:
        _fail(error)
    note = "" if fitted.at_bound is None else f" (at the {fitted.at_bound} bound)"
    note += "" if fitted.identified else " (not identified: every temperature gives the same predictions)"
    typer.echo(f"n = {len(labels)}, classes = {predictions.n_classes}, accuracy = {accuracy(logits, labels):.4f}")
    typer.echo(f"temperature = {fitted.temperature:.6g}{note}")
    typer.echo(f"{'':8}{'NLL':>10}{'Brier':>10}{f'ECE, {bins} bins':>16}")
    for name, temperature in (("T = 1", 1.0), ("fitted", fitted.temperature)):
        p = softmax(logits, temperature)
        scores = nll(logits, labels, temperature), brier(p, labels), ece(*top_label(p, labels), bins)
        typer.echo("{:8}{:10.5f}{:10.5f}{:16.5f}".format(name, *scores))
    typer.echo("Fitted and judged on the same rows: judge it on rows that the fit has not seen.")


@app.command()
def run(
    notebook: Annotated[Path, typer.Argument(help="a notebook, e.g. notebooks/six-examples.py")],
    output: Annotated[Path, typer.Option("--output", "-o", help="where the executed notebook goes")],
    numbers: Annotated[Path | None, typer.Option(help="where its recorded numbers go, as JSON")] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p", "--parameter", help="name=value, as YAML")] = None,
    parameters: Annotated[str, typer.Option(help="several: 'name=value name=value', quoted as in a shell")] = "",
    status: Annotated[
        Path | None, typer.Option(help="where time, memory, versions and data hashes go, as JSON")
    ] = None,
    data: Annotated[list[str] | None, typer.Option(help="a data file that the status names")] = None,
    reads: Annotated[
        list[str] | None, typer.Option(help="with --strict, a file of the checkout that it may read")
    ] = None,
    made_from: Annotated[str | None, typer.Option(help="digest of what the run reads, kept in the status")] = None,
    strict: Annotated[bool, typer.Option(help="refuse cells that warn, and files that are not declared")] = False,
    cell_seconds: Annotated[int, typer.Option(min=1, help="longest time for one cell")] = 1200,
):
    """Execute one notebook with parameters; its output appears only if every cell ran."""
    from calib.data import data_folder
    from calib.pages.execute import NotebookError, defaults, execute
    from calib.pages.parameters import read

    if not notebook.is_file():
        names = ", ".join(sorted(path.stem for path in notebook.parent.glob("*.py"))) or "none"
        _fail(f"{notebook}: there is no such notebook; those of {notebook.parent} are {names}")
    files = {name: data_folder() / name for name in data or []}
    missing = _results_missing(notebook)
    if missing:
        _fail(f"{notebook}: reads numbers of other runs, and {', '.join(missing)} is not there; run `make book` first")
    try:
        values = read([*(parameter or []), *_split(parameters)], defaults(notebook))
    except (NotebookError, ValueError) as error:
        _fail(f"{notebook}: {error}")
    allowed = (reads or []) if strict else None
    try:
        recorded = execute(
            notebook, output, values, numbers, status, files, allowed, made_from, not strict, cell_seconds
        )
    except (NotebookError, OSError) as error:
        _fail(error)
    count = sum(len(names) for names in recorded.values())
    typer.echo(f"{output}: executed; it recorded {count} numbers" + (f" in {numbers}" if numbers else ""))


def _results_missing(notebook):
    """Numbers that a notebook of the book reads, and that no build has left."""
    from calib.pages.runs import load_runs

    root = notebook.resolve().parents[1]
    if not (root / "notebooks/runs.yaml").is_file():
        return []
    runs = [run for run in load_runs(root / "notebooks/runs.yaml").values() if run.notebook == notebook.stem]
    return [path for run in runs for path in run.needs if not (root / path).exists()]


def _split(parameters):
    try:
        return shlex.split(parameters)
    except ValueError as error:
        _fail(f"parameters: expected name=value name=value, quoted as in a shell, got {parameters!r} ({error})")


@app.command()
def published(
    record: Annotated[Path, typer.Argument(help="an executed notebook in book/published/")],
    output: Annotated[Path, typer.Option("--output", "-o", help="where the page goes")],
    numbers: Annotated[Path, typer.Option(help="where its recorded numbers go, as JSON")],
    status: Annotated[Path, typer.Option(help="where time, memory, versions and data hashes go, as JSON")],
    reason: Annotated[str, typer.Option(help="why there is no fresh run")],
    made_from: Annotated[str | None, typer.Option(help="digest of what the page is made from")] = None,
):
    """Use a published notebook in place of a fresh run, with a note on the page that says so and why."""
    from calib.pages.edition import reuse
    from calib.pages.execute import NotebookError

    try:
        reuse(record, output, numbers, status, reason, made_from)
    except (NotebookError, OSError) as error:
        _fail(error)


@app.command()
def publish():
    """Renew the published record in book/published from the last build; run in the root of the checkout."""
    import yaml

    from calib.pages.edition import publish as renew
    from calib.pages.execute import NotebookError
    from calib.pages.runs import load_runs

    pages, numbers, statuses = Path("book/notebooks"), Path("_build/results.json"), Path("_build/status")
    try:
        address = yaml.safe_load(Path("_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
        renew(load_runs(), pages, numbers, statuses, Path("book/published"), address)
    except (NotebookError, OSError, ValueError) as error:
        _fail(error)


@app.command()
def verify():
    """Compare every number and page of the last build with the published record; run in the root of the checkout."""
    import jupytext
    import nbformat

    from calib.pages import record as results
    from calib.pages.runs import load_runs
    from calib.pages.verify import TOLERANCES, compare, unlike_results, unlike_source, unlike_texts

    try:
        runs = load_runs()
        old = [run.name for run in runs.values() if not results.load(run.status)["fresh"]]
        published, fresh = (results.load_numbers(f"{folder}/results.json") for folder in ("book/published", "_build"))
        texts = []
        for run in runs.values():
            page, now = (nbformat.read(path, as_version=4) for path in (f"book/published/{run.name}.ipynb", run.page))
            found = [unlike_results(page, published), unlike_source(page, jupytext.read(run.source))]
            texts += [f"{run.name}, {text}" for text in [*filter(None, found), *unlike_texts(page, now)]]
    except (OSError, ValueError) as error:
        _fail(error)
    if old:
        _fail(f"not freshly run: {', '.join(old)}; get the data with `make data`, then run `make verify` again")
    single = {run.name for run in runs.values() if run.precision == "single"}
    differences = compare(published, fresh, single)
    for kind, tolerance in TOLERANCES.items():
        sizes = [difference.size for difference in differences if difference.kind == kind]
        typer.echo(
            f"{kind:14}{len(sizes):5} numbers, {sum(size > 0 for size in sizes):5} differ, largest difference "
            f"{max(sizes, default=0):.1e}, tolerance {tolerance:g}"
        )
    beyond = [difference for difference in differences if not difference.within]
    for d in beyond:
        typer.echo(f"{d.run}/{d.name}: published {d.published}, now {d.fresh} ({d.kind})")
    if beyond:
        _fail(
            f"{len(beyond)} of {len(differences)} numbers differ from the published record by more than their tolerance"
        )
    if texts:
        _fail(
            f"{len(texts)} texts differ from the published record; if they were changed on purpose, `make publish`:\n"
            + "\n".join(texts[:20])
        )
    typer.echo(
        f"All {len(differences)} numbers of the build are those of the published record, and its {len(runs)} pages say "
        "the same."
    )


@app.command()
def merge(
    parts: Annotated[list[Path], typer.Argument(help="files of numbers, one per run")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the one file they go into")],
):
    """Merge the recorded numbers of several runs into one results.json."""
    from calib.pages import record as results

    try:
        results.save(results.merge(map(results.load, parts)), output)
    except (OSError, ValueError) as error:
        _fail(error)


@app.command()
def check(made_from: Annotated[list[str], typer.Argument(help="run=digest of what it reads, for each run")]):
    """Make sure that the output of each run is what it wrote, from what is here now; run in the root."""
    from calib.pages.origin import problem
    from calib.pages.runs import load_runs

    runs = load_runs()
    for name, expected in (pair.split("=") for pair in made_from):
        found = problem(runs[name], expected)
        if found is not None:
            Path(runs[name].status).unlink(missing_ok=True)  # then it runs again
            _fail(f"{found or f'{runs[name].page} was made from other files'}; run `make book` again")


@app.command()
def sst2(
    out: Annotated[Path, typer.Argument(help="CSV to write: idx, label, logit_0, logit_1")],
    smoke: Annotated[bool, typer.Option(help="only the first 8 sentences")] = False,
):
    """Run the pinned DistilBERT checkpoint on the SST-2 validation set and write its logits."""
    from calib.data import DataUnavailable
    from calib.models.sst2 import predict

    try:
        predictions = predict(out, limit=8 if smoke else None)
    except (DataUnavailable, OSError, ValueError) as error:
        _fail(error)
    correct = int((predictions.logits.argmax(axis=1) == predictions.labels).sum())
    typer.echo(f"{out}: {len(predictions)} sentences, {correct} classified correctly")


if __name__ == "__main__":
    sys.exit(app())

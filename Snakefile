# The flow of the book: data -> executed notebooks and their numbers -> site. `make book` runs it.
#
# A rule runs again when one of its inputs changes: the text of a notebook, its parameters, the package, a data file, the
# lock. The fingerprint holds the content of them all, so that an old file put back counts as a change. It must not be a
# function of `input`: Snakemake does not compare such parameters.

import hashlib
import logging
import os
import shlex
import shutil
import sys
import time
from functools import cache
from pathlib import Path

from calib.data.registry import data_folder
from calib.pages import origin
from calib.pages.edition import restore
from calib.pages.origin import digest
from calib.pages.runs import load_runs

RUNS = load_runs()
PACKAGE = sorted(str(path) for path in Path("calib").rglob("*") if path.suffix in {".py", ".csv", ".toml", ".mplstyle"})
PROSE = sorted(str(path) for path in Path("book").rglob("*") if path.is_file() and not {"notebooks", "published", "measured", "_tools", "__pycache__"} & set(path.parts))
FRAME = [path for path in PROSE if not path.endswith(".md")]
CONFIG = ["_config.yml", "_toc.yml", "notebooks/runs.yaml"]
LOCK = "requirements.txt"
PYTHON = shlex.quote(sys.executable)
BIN = shlex.quote(str(Path(sys.executable).parent))


def paths_of(run):
    return [str(data_folder() / file.name) for file in RUNS[run].files]


def headings():
    """Digest of the headings and labels of all prose pages."""
    pages = (Path(path).read_text(encoding="utf-8") for path in PROSE if path.endswith(".md"))
    lines = [line for page in pages for line in page.splitlines() if line.startswith(("#", "("))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Progress(logging.Handler):
    """One line when a step begins, one when it ends: what, how long it took, how many are left."""

    steps, begun = {}, {}

    def emit(self, record):
        event = getattr(record, "event", None)
        if event == "run_info":
            self.left = record.stats["total"] - record.stats.get("book", 0)
        elif event == "job_info" and record.rule_msg:
            self.steps[record.jobid], self.begun[record.jobid] = record.rule_msg, time.monotonic()
            self.say(record.rule_msg)
        elif event == "job_finished" and record.job_id in self.steps:
            self.left -= 1
            seconds = time.monotonic() - self.begun[record.job_id]
            self.say(f"{self.steps[record.job_id]}: done in {seconds:.1f} s, {self.left} steps left")

    def say(self, line):
        print(line, file=sys.stderr, flush=True)


def says_what_to_do(record):
    """False for tracebacks of the scheduler: the log of the step that failed says what happened."""
    return not record.getMessage().startswith(("RuleException", "WorkflowError:\nAt least one job"))


shell.prefix(origin.held("_build/.lock"))
LOGGER = logging.getLogger("snakemake.logging")
if not workflow.output_settings.dryrun:
    LOGGER.handlers[0].setLevel(logging.WARNING)
    LOGGER.handlers[0].addFilter(says_what_to_do)
    LOGGER.addHandler(Progress())

restore("book/published")  # where a renewal was killed
for pattern in (pattern for run in RUNS.values() for pattern in run.reads):  # Snakemake would keep the old page
    if not any(Path().glob(pattern)):
        sys.exit(f"error: {pattern} is missing, which a notebook reads; it is part of the repository")
MISSING = {name: run.missing for name, run in RUNS.items()}
FRESH = [run for run in RUNS if not MISSING[run]]
KEPT = [run for run in RUNS if MISSING[run]]

if KEPT and os.environ.get("STRICT"):
    sys.exit("error: STRICT is set and data are missing for: " + ", ".join(KEPT))
RECORD = Path("book/published")
LOST = [run for run in KEPT if not (RECORD / "status.json").exists() or not (RECORD / f"{run}.ipynb").exists()]
if LOST:
    sys.exit(f"error: data are missing for {', '.join(LOST)}, and book/published has no run of it; get the data with `make data`")
if KEPT and not workflow.output_settings.dryrun:
    print("Data are missing: the published run is shown of", ", ".join(KEPT), file=sys.stderr)


@cache
def made_from(run):
    """Digest of all that the page of a run is made from."""
    if MISSING[run]:
        return digest(RECORD / f"{run}.ipynb", RECORD / "status.json")
    return digest(*PACKAGE, LOCK, RUNS[run].source, *paths_of(run), *RUNS[run].repository_files())


CHECKED = [f"{run}={made_from(run)}" for run in RUNS]
SEALS = "_build/html.json"
for run in RUNS:
    problem = origin.problem(RUNS[run], made_from(run))
    if problem:
        print(f"{problem}: {run} runs again", file=sys.stderr)
    if problem is not None:  # Snakemake makes anew what is missing on the way to what it was asked for
        for path in (RUNS[run].status, RUNS[run].numbers, "_build/results.json"):
            Path(path).unlink(missing_ok=True)
if Path("_build/html/index.html").exists() and (problem := origin.site_problem("_build/html", SEALS)):
    print(f"{problem}: the site is built again", file=sys.stderr)
    Path("_build/html/index.html").unlink()
    shutil.rmtree("_build/site", ignore_errors=True)


def made_by_other_runs():
    """Pages, numbers and states of runs that are no longer in runs.yaml: text must not quote them."""
    kinds = ("book/notebooks/*.ipynb", "_build/results/*.json", "_build/status/*.json")
    return [path for kind in kinds for path in Path().glob(kind) if path.stem not in RUNS]


onstart:
    shell("rm -f _build/logs/*.log")
    for path in made_by_other_runs():
        path.unlink()


onerror:
    for path in Path("_build/logs").glob("*.log"):
        if path.stat().st_size:
            print(path.read_text(encoding="utf-8"))


def anything(runs):
    return "|".join(runs) or "none"


rule book:
    input:
        "_build/html/index.html",
        "_build/results.json",
    default_target: True


rule execute:
    input:
        notebook=lambda w: RUNS[w.run].source,
        package=PACKAGE,
        lock=LOCK,
        data=lambda w: paths_of(w.run),
        reads=lambda w: RUNS[w.run].repository_files(),
        after=lambda w: RUNS[w.run].needs,
    output:
        page="book/notebooks/{run}.ipynb",
        numbers="_build/results/{run}.json",
        status="_build/status/{run}.json",
    params:
        data=lambda w: " ".join(f"--data {shlex.quote(file.name)}" for file in RUNS[w.run].files),
        reads=lambda w: " ".join(f"--reads {shlex.quote(path)}" for path in RUNS[w.run].may_read()),
        options=lambda w: RUNS[w.run].options,
        made_from=lambda w: made_from(w.run),
    wildcard_constraints:
        run=anything(FRESH),
    log:
        "_build/logs/{run}.log",
    message:
        "run {wildcards.run}"
    shell:
        "{PYTHON} -m calib run {input.notebook} --output {output.page} --numbers {output.numbers} --strict"
        " --status {output.status} --made-from {params.made_from} {params.data} {params.reads} {params.options} > /dev/null 2> {log}"


rule published:
    input:
        record="book/published/{run}.ipynb",
        statuses="book/published/status.json",
    output:
        page="book/notebooks/{run}.ipynb",
        numbers="_build/results/{run}.json",
        status="_build/status/{run}.json",
    params:
        reason=lambda w: shlex.quote(f"{', '.join(MISSING[w.run])} could not be had. `make data` gets the data."),
        made_from=lambda w: made_from(w.run),
    wildcard_constraints:
        run=anything(KEPT),
    message:
        "keep {wildcards.run}, the published run: data are missing"
    shell:
        "{PYTHON} -m calib published {input.record} --output {output.page} --numbers {output.numbers}"
        " --status {output.status} --made-from {params.made_from} --reason {params.reason}"


rule results:
    input:
        [run.numbers for run in RUNS.values()],
    output:
        "_build/results.json",
    params:
        checked=CHECKED,
    message:
        "write {output}"
    shell:
        "{PYTHON} -m calib check {params.checked} && {PYTHON} -m calib merge {input} --output {output}"


# Where only the text of a page changed, Sphinx renders that page alone. What other pages show too, be it numbers,
# headings or the package, builds every page anew: `frame` is its content.
rule site:
    input:
        pages=[run.page for run in RUNS.values()],
        numbers="_build/results.json",
        statuses=[run.status for run in RUNS.values()],
        prose=PROSE,
        package=PACKAGE,
        config=CONFIG,
        lock=LOCK,
    output:
        "_build/html/index.html",
    params:
        made_from=digest(*PACKAGE, LOCK, *PROSE, *CONFIG),
        checked=CHECKED,
        frame=digest(*PACKAGE, LOCK, *CONFIG, *FRAME) + headings(),
    log:
        "_build/logs/site.log",
    message:
        "build the site"
    shell:
        """
        {PYTHON} -m calib check {params.checked}
        frame="{params.frame} $(cat book/notebooks/*.ipynb {input.numbers} | sha256sum)"
        [ "$(cat _build/site/frame 2> /dev/null)" = "$frame" ] || rm -rf _build/site
        {BIN}/jupyter-book build book --path-output _build/site --config _config.yml --toc "$PWD/_toc.yml" \
            -W --keep-going -q > {log} 2>&1 || {{ rm -rf _build/site; exit 1; }}
        echo "$frame" > _build/site/frame
        rm -rf _build/html && cp -r _build/site/_build/html _build/html && cp {input.numbers} _build/html/
        {PYTHON} -c "from calib.pages.origin import seal_site; seal_site('_build/html', '{SEALS}')"
        """

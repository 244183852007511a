"""The state of the build in the book: what ran, when, how long, with which versions and which data."""

import json
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from calib.pages.runs import load_runs
from calib.pages.show import code

KEYS = set("notebook parameters seconds peak_mb date commit changed python platform cores versions data fresh".split())


class StatusTable(SphinxDirective):
    """One part of the state: the ``runs`` with their totals, their ``environment``, or the ``data`` files they read."""

    required_arguments = 1

    def run(self):
        part = PARTS.get(self.arguments[0])
        if not part:
            raise self.error(f"status-table: expected {', '.join(PARTS)}, got {self.arguments[0]}")
        root = Path(self.env.srcdir).parent
        paths = [root / run.status for run in load_runs(root / "notebooks/runs.yaml").values()]
        for path in (root / "notebooks/runs.yaml", *paths):
            self.env.note_dependency(str(path))
        try:
            runs = [load(path) for path in paths]
        except ValueError as error:
            raise self.error(str(error)) from error
        parsed = self.parse_text_to_nodes(part(runs))
        for found in (table for node in parsed for table in node.findall(nodes.table)):
            found["classes"].append("status")
        return parsed


def load(path):
    """The state of one run; an error where the file is missing or lacks a key."""
    if not path.exists():
        raise ValueError(f"{path}: expected the state of this run, found no file; `make book` writes it")
    state = json.loads(path.read_text(encoding="utf-8"))
    if not KEYS <= set(state):
        raise ValueError(f"{path}: expected {', '.join(sorted(KEYS - set(state)))}, found {', '.join(sorted(state))}")
    return state | {"run": path.stem}


def totals_and_runs(runs):
    return f"{totals(runs)}\n\n{run_table(runs)}"


def totals(runs):
    fresh = sum(state["fresh"] for state in runs)
    largest = max(runs, key=lambda state: state["peak_mb"])
    return (
        f"**{len(runs)}** runs: **{fresh}** fresh, **{len(runs) - fresh}** shown as published. Together they took "
        f"**{sum(state['seconds'] for state in runs):.1f}** seconds; the largest peak of memory was "
        f"**{largest['peak_mb']:,.0f}** MB, in {largest['run']}."
    )


def run_table(runs):
    lines = []
    for state in runs:
        shown = "fresh" if state["fresh"] else "**published**"
        parameters = " ".join(code(f"{name}={json.dumps(value)}") for name, value in state["parameters"].items())
        page = f"[{state['run']}](notebooks/{state['run']}.ipynb)"
        lines.append([page, shown, f"{state['seconds']:.1f}", f"{state['peak_mb']:,.0f}", parameters or "defaults"])
    return table(["Run", "Shown", ">Seconds", ">Peak, MB", "Parameters given"], lines)


def environment(runs):
    """Each item once if all runs agree; else each value with its runs."""
    commits = ["" if state["commit"] is None else commit_of(state) for state in runs]
    rows = [["date", *[state["date"] for state in runs]], ["commit", *commits]]
    rows += [[name, *[str(state[name]) for state in runs]] for name in ("python", "platform", "cores")]
    packages = sorted({package for state in runs for package in state["versions"]})
    rows += [[package, *[state["versions"].get(package, "") for state in runs]] for package in packages]
    return table(["Item", "Value"], [[name, agreed(values, runs)] for name, *values in rows])


def commit_of(state):
    return code(state["commit"][:12]) + (" with uncommitted changes" if state["changed"] else "")


def agreed(values, runs):
    by_value = {}
    for value, state in zip(values, runs):
        by_value.setdefault(value or "not known", []).append(state["run"])
    if len(by_value) == 1:
        return next(iter(by_value))
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in by_value.items())


def data_files(runs):
    readers = {}
    for state in runs:
        for item in state["data"].items():
            readers.setdefault(item, []).append(state["run"])
    lines = [[code(name), f"{{hash}}`{digest}`", ", ".join(names)] for (name, digest), names in sorted(readers.items())]
    return table(["File", "SHA-256", "Read by"], lines)


def table(heads, lines):
    """A Markdown table; numbers of a head that begins with > are aligned to the right."""
    marks = ["---:" if head.startswith(">") else ":---" for head in heads]
    rows = [[head.lstrip(">") for head in heads], marks, *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


PARTS = {"runs": totals_and_runs, "environment": environment, "data": data_files}


def setup(app):
    app.add_directive("status-table", StatusTable)
    return {"parallel_read_safe": True}

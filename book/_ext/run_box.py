"""The box under the title of a notebook page: what it ran with, what can be downloaded, how to run it again.

Everything in it comes from ``notebooks/runs.yaml`` and the registry of data files.
"""

import shlex
import shutil
from pathlib import Path

import yaml

from calib.pages.provenance import git
from calib.pages.runs import load_runs

ROOT = Path(__file__).parents[2]
RUNS = load_runs(ROOT / "notebooks/runs.yaml")


def add_run_box(app, pagename, templatename, context, doctree):
    """Put the box under the title, and the source of the notebook beside the executed notebook."""
    folder, _, run = pagename.partition("/")
    if folder != "notebooks" or run not in RUNS:
        return
    source = RUNS[run].source
    copy = Path(app.outdir) / "_sources" / source
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / source, copy)
    links = repository_links(app.config.html_theme_options.get("repository_url"), source, run)
    box = app.builder.templates.render("run-box.html", describe(run) | {"links": links, "pathto": context["pathto"]})
    before, title, after = context["body"].partition("</h1>")
    context["body"] = before + title + box + after


def describe(run):
    """What the box says about a run."""
    entry = RUNS[run]
    parameters = {name: as_yaml(value) for name, value in entry.parameters.items()}
    command = f"make run NB={entry.notebook}"
    if parameters:
        command += " P=" + shlex.quote(" ".join(f"{name}={value}" for name, value in parameters.items()))
    return {
        "run": run,
        "notebook": entry.notebook,
        "parameters": parameters,
        "files": len(entry.files),
        "size": in_words(sum(file.size for file in entry.files)),
        "reads": len(entry.repository_files(ROOT)),
        "after": entry.after,
        "command": command,
    }


def in_words(size):
    """A number of bytes as a reader wants it."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def as_yaml(value):
    """A parameter on one line without spaces, as `calib run -p` reads it."""
    if isinstance(value, list):
        return f"[{','.join(map(as_yaml, value))}]"
    return yaml.safe_dump(value).removesuffix("...\n").strip()


def repository_links(url, source, run):
    """Names and addresses of what the repository offers for a run; nothing while it has no address."""
    if not url:
        return {}
    url = url.rstrip("/")
    links = {"source at this commit": f"{url}/blob/{commit()}/{source}"}
    if url.startswith("https://github.com/"):
        name, notebook = url.removeprefix("https://github.com/"), f"book/published/{run}.ipynb"
        if RUNS[run].stands_alone:
            links["open in Colab"] = f"https://colab.research.google.com/github/{name}/blob/{commit()}/{notebook}"
        if not RUNS[run].after:  # Binder has the files of the repository, but no numbers of other runs
            links["open in Binder"] = f"https://mybinder.org/v2/gh/{name}/{commit()}?urlpath=lab/tree/{notebook}"
    return links


def commit(folder=ROOT):
    """The commit that is built; HEAD, the newest one, where git cannot tell."""
    return git("rev-parse", "HEAD", folder=folder) or "HEAD"

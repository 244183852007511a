"""What the book needs beyond Jupyter Book.

A table of the data registry, a figure shown again on another page, buttons that wait for the repository's address;
and, in modules of their own, the box under the title of a notebook page and what makes pages easy to find and light.
"""

import hashlib
from base64 import b64decode
from html import escape
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

import run_box
import site_shell
from calib.data.registry import REGISTRY
from calib.pages.edition import NOTE
from calib.pages.runs import load_runs


class DataTable(SphinxDirective):
    """A section per source of the registry: what it is, its terms, its citation, who reads it, and its files."""

    def run(self):
        path = Path(self.env.srcdir).parent / "notebooks/runs.yaml"
        self.env.note_dependency(path)
        runs = load_runs(path)
        sources = dict.fromkeys(entry.source for entry in REGISTRY.values())
        return [*self.parse_text_to_nodes("\n".join(_copying())), *(self._section(source, runs) for source in sources)]

    def _section(self, source, runs):
        files = [entry for entry in REGISTRY.values() if entry.source == source]
        readers = [name for name, run in runs.items() if any(file.source == source for file in run.files)]
        links = ", ".join(f"[](notebooks/{run}.ipynb)" for run in readers)
        count, size = f"{len(files)} file{'s' * (len(files) > 1)}", sum(file.size for file in files) / 1e6
        lines = [
            f"{source.what[0].upper()}{source.what[1:]}.",
            "",
            f"- **Licence** {source.licence}",
            f"- **Passing it on** {source.redistribution}",
            f"- **Cite** {source.citation} {{cite:p}}`{','.join(source.references)}`",
            f"- **Read by** {links or '[training from images](raw-data.md)'}",
            "",
            f":::{{dropdown}} {count}, {size:.2f} MB: addresses and SHA-256",
            "| file | bytes | SHA-256 |",
            "|:---|---:|:---|",
            *map(_row, files),
            ":::",
        ]
        section = nodes.section(ids=[nodes.make_id(source.title)], names=[source.title])
        section += nodes.title(text=source.title)
        section += self.parse_text_to_nodes("\n".join(lines))
        return section


def _copying():
    """A table of what may be passed on, by file."""
    lines = ["| You may copy it | files | MB |", "|:---|:---|---:|"]
    for terms in sorted({entry.source.redistribution for entry in REGISTRY.values()}):
        files = [entry for entry in REGISTRY.values() if entry.source.redistribution == terms]
        folders = sorted({f"`{entry.name.rpartition('/')[0]}/`" for entry in files})
        names = (
            [f"`{entry.name}`" for entry in files]
            if len(files) < 5
            else [f"{len(files)} files in {', '.join(folders)}"]
        )
        needed, optional = (
            sum(entry.size for entry in files if entry.optional is state) / 1e6 for state in (False, True)
        )
        size = f"{needed:.2f}" + (f" and {optional:.2f} that the book does not need" if optional else "")
        lines.append(f"| {terms} | {', '.join(names)} | {size} |")
    return lines


def _row(entry):
    name = f"[{entry.name}]({entry.urls[0]})" if entry.urls else f"{entry.name}: {entry.how}"
    note = ", rows of the file at this address" if entry.cut_by else ""
    return f"| {name}{note} | {entry.size:,} | `{(entry.content_sha256 or entry.sha256)[:16]}…` |"


def built(name, rawtext, text, lineno, inliner, options=None, content=()):
    """Role for a link to a file at the root of the built site."""
    env = inliner.document.settings.env
    root = env.app.builder.get_relative_uri(env.docname, env.config.root_doc).removesuffix("index.html")
    return [nodes.reference("", text, refuri=root + text)], []


def shortened_hash(name, rawtext, text, lineno, inliner, options=None, content=()):
    """Role for a digest that the style shortens until it has the focus."""
    return [nodes.raw("", f'<code class="hash" tabindex="0">{escape(text)}</code>', format="html")], []


class NotebookFigure(SphinxDirective):
    """A figure of an executed notebook, with its own alt text, under a caption of this page.

    Arguments: the notebook, relative to the root of the book, and the name of the figure.
    """

    required_arguments = 2
    has_content = True

    def run(self):
        notebook, name = self.arguments
        path = Path(self.env.srcdir) / notebook
        self.env.note_dependency(path)
        image, alt = find_figure(path, name)
        copy = path.with_name(f"{name}.png")
        copy.write_bytes(image)
        figure = nodes.figure("", nodes.image(uri=f"/{copy.relative_to(self.env.srcdir)}", alt=alt))
        figure += (legend := nodes.legend())  # a caption would give the figure a second number
        self.state.nested_parse(StringList(self.content), self.content_offset, legend)
        return [figure]


def find_figure(path, name):
    """PNG bytes and alt text of the figure of that name in an executed notebook."""
    for cell in nbformat.read(path, as_version=4).cells:
        shown = cell.metadata.get("mystnb", {})
        if shown.get("figure", {}).get("name") == name:
            images = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
            return b64decode(images[0]), shown["image"]["alt"]
    raise ValueError(f"{path}: expected a figure named {name}, found none")


def show_repository(app, config):
    """Show the buttons that lead to the repository where its address is set, and only there."""
    known = bool(config.html_theme_options.get("repository_url"))
    config.html_theme_options |= {"use_repository_button": known, "use_issues_button": known}


def changed_by_content(app, env, added, changed, removed):
    """Pages whose content is another than when they were read: Sphinx itself asks for their dates alone."""
    digests = {page: hashlib.sha256(Path(env.doc2path(page)).read_bytes()).hexdigest() for page in env.found_docs}
    known, env.page_digests = getattr(env, "page_digests", {}), digests
    return [page for page, digest in digests.items() if known.get(page, digest) != digest]


def announce_published_runs(app, config):
    """Say on every page, the front page too, where some of the numbers are those of the published runs."""
    pages = Path(app.srcdir).glob("notebooks/*.ipynb")
    if any(f'"id": "{NOTE}"' in page.read_text(encoding="utf-8") for page in pages):
        config.html_theme_options["announcement"] = "Some data were missing: some pages show the published run."


def setup(app):
    app.connect("config-inited", show_repository)
    app.connect("config-inited", announce_published_runs)
    app.connect("env-get-outdated", changed_by_content)
    app.connect("html-page-context", run_box.add_run_box)
    app.connect("html-page-context", site_shell.describe_page)
    app.connect("html-page-context", site_shell.root_of_addresses, priority=501)
    app.connect("html-page-context", site_shell.mend_roles)
    app.connect("html-page-context", site_shell.no_idle_mathjax, priority=600)
    app.connect("html-collect-pages", site_shell.page_for_lost_readers)
    app.connect("builder-inited", site_shell.early_assets)
    app.connect("build-finished", site_shell.write_sitemap)
    app.connect("build-finished", site_shell.serve_all_files)
    app.add_role("built", built)
    app.add_role("hash", shortened_hash)
    app.add_directive("data-table", DataTable)
    app.add_directive("notebook-figure", NotebookFigure)
    return {"parallel_read_safe": True}

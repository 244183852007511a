"""The ledger in the book: a line that counts the verdicts, and a table of every printed value, with a filter."""

from collections import Counter
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from calib.claims.ledger import VERDICTS, ledger
from calib.claims.printed import rows
from calib.pages import record as results

PAGE = "ledger"
HEADS = {
    "number": "No.",
    "verdict": "Verdict",
    "source": "Source",
    "where": "Where",
    "quantity": "Quantity",
    "printed": "Printed",
    "reproduced": "Here",
    "difference": "Difference",
    "remark": "95% of splits, or remark",
    "place": "Computed in",
}
NUMERIC = {"number", "printed", "reproduced", "difference"}
MARKED = ("not equal", "not shown", "contradicted", "rounding", "not close")  # the summary names their rows


class Ledger(SphinxDirective):
    """What the directives share: the rows with their verdicts, from the numbers of this build."""

    def entries(self):
        path = Path(self.env.srcdir).parent / "_build/results.json"
        self.env.note_dependency(str(path))
        return [row | {"number": number} for number, row in enumerate(ledger(results.load(path), rows()), start=1)]

    def address(self, page, anchor=""):
        if page not in self.env.found_docs:
            raise self.error(f"printed.csv: expected a page of the book as place, got {page!r}")
        same = page == self.env.docname
        uri = "" if same else self.env.app.builder.get_relative_uri(self.env.docname, page)
        return f"{uri}#{anchor}" if anchor else uri

    def row_link(self, row):
        return nodes.reference("", str(row["number"]), refuri=self.address(PAGE, row_id(row)), internal=True)


class Summary(Ledger):
    """A line with the number of rows of each verdict; those that call for a look are linked."""

    def run(self):
        entries = self.entries()
        line = nodes.paragraph("", "", nodes.strong("", str(len(entries))), nodes.Text(" printed values"))
        for verdict in VERDICTS:
            found = [row for row in entries if row["verdict"] == verdict]
            mark = "; " if len(line) > 2 else ": "
            line += [nodes.Text(mark), nodes.strong("", str(len(found))), nodes.Text(f" {verdict}")]
            for row in found if verdict in MARKED else []:
                line += [nodes.Text(", No. "), self.row_link(row)]
        line += nodes.Text(".")
        return [line]


class Verdicts(SphinxDirective):
    """What each verdict means."""

    def run(self):
        meanings = nodes.definition_list(classes=["verdicts"])
        for verdict, meaning in VERDICTS.items():
            definition = nodes.definition("", nodes.paragraph("", meaning))
            meanings += nodes.definition_list_item("", nodes.term("", "", badge(verdict)), definition)
        return [meanings]


class Table(Ledger):
    """The filter, which a script brings to life, and the table."""

    def run(self):
        self.env.metadata[self.env.docname]["ledger"] = True
        entries = self.entries()
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1, stub=name == "number") for name in HEADS), cols=len(HEADS))
        heads = [nodes.entry("", nodes.paragraph("", head), classes=column_class(name)) for name, head in HEADS.items()]
        group += nodes.thead("", nodes.row("", *heads))
        group += nodes.tbody("", *(self.row(row) for row in entries))
        region = '<div class="ledger-scroll" role="region" aria-label="All printed values" tabindex="0">'
        table = nodes.table("", group, classes=["ledger", "colwidths-auto"])
        return [html(filter_form(entries)), html(region), table, html("</div>")]

    def row(self, row):
        cells = row | {"remark": "; ".join(filter(None, (row["spread"], row["note"])))}
        found = nodes.row("", ids=[row_id(row)])
        for name in HEADS:
            content = {"number": self.row_link, "verdict": verdict_of, "place": self.place}.get(name)
            text = content(row) if content else nodes.Text(minus(cells[name]) if name in NUMERIC else cells[name])
            found += nodes.entry("", nodes.paragraph("", "", text), classes=column_class(name))
        return found

    def place(self, row):
        page, _, section = row["place"].partition("#")
        if not page:
            return nodes.Text("")
        title = section or page.capitalize()
        return nodes.reference("", title, refuri=self.address(page, nodes.make_id(section)), internal=True)


def verdict_of(row):
    return badge(row["verdict"])


def badge(verdict):
    return nodes.inline("", verdict, classes=["verdict", f"verdict-{nodes.make_id(verdict)}"])


def row_id(row):
    return nodes.make_id(f"row {row['source']} {row['where']} {row['quantity']}")


def column_class(name):
    return ["text-right"] if name in NUMERIC else []


def minus(text):
    """The text with a true minus sign in front of negative numbers."""
    return " ".join(part.replace("-", "\N{MINUS SIGN}", 1) if part[0] == "-" else part for part in text.split())


def html(text):
    return nodes.raw("", text, format="html")


def filter_form(entries):
    """A choice of source and of verdict, hidden where no script runs."""
    choices = []
    for name in ("source", "verdict"):
        counts = Counter(row[name] for row in entries)
        order = VERDICTS if name == "verdict" else counts
        options = [f'<option value="{escape(one)}">{escape(one)} ({counts[one]})</option>' for one in order]
        select = f'<select name="{name}"><option value="">all ({len(entries)})</option>{"".join(options)}</select>'
        choices.append(f"<label>{HEADS[name]} {select}</label>")
    rest = '<button type="reset">Show all</button> <output aria-live="polite"></output>'
    return f'<form class="ledger-filter" autocomplete="off" hidden>{"".join(choices)}{rest}</form>'


def keep_script_off_other_pages(app, config):
    """Jupyter Book loads every script of ``_static`` on every page."""
    config.html_js_files = [name for name in config.html_js_files if name != "ledger.js"]


def add_script(app, page, template, context, doctree):
    if app.env.metadata.get(page, {}).get("ledger"):
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app):
    app.connect("config-inited", keep_script_off_other_pages)
    app.connect("html-page-context", add_script)
    app.add_directive("ledger-summary", Summary)
    app.add_directive("ledger-verdicts", Verdicts)
    app.add_directive("ledger", Table)
    return {"parallel_read_safe": True}

"""What makes pages easy to find and light to load: descriptions, site map, a page for lost readers, no idle scripts.

The extensions that exist for these would not do: a site map of the pages rendered in this build alone, addresses that
lack the public one, a prefix to be set in a second place.
"""

import html
import re
from importlib import import_module
from pathlib import Path
from urllib.parse import urljoin, urlparse

from docutils import nodes

FRONT_FIGURE = "_images/fig-gap.png"
LENGTH = 250  # characters of a description that search engines still show


def address_of(app):
    """Public address of the site, with the final slash without which its last part would be replaced; or nothing."""
    base = app.config.html_baseurl
    return base if not base or base.endswith("/") else f"{base}/"


def serve_all_files(app, exception):
    """Let GitHub Pages serve folders whose name begins with an underscore."""
    if not exception and app.builder.name == "html":
        (Path(app.outdir) / ".nojekyll").touch()


def describe_page(app, pagename, templatename, context, doctree):
    """Add a description and what a shared link shows: the first paragraph and, on a public site, the first figure."""
    root = app.config.root_doc
    base = address_of(app)
    page = doctree or app.env.get_doctree(root)
    description = first_paragraph(page)
    title = html.unescape(re.sub("<[^>]+>", "", context.get("title", "")))
    tags = {
        "og:type": "website",
        "og:title": title,
        "og:description": description,
        "og:site_name": app.config.html_title,
    }
    if base:
        address = urljoin(base, app.builder.get_target_uri(pagename))
        tags["og:url"] = address
        image = doctree and next(doctree.findall(nodes.image), None)
        tags["og:image"] = urljoin(address, image["uri"]) if image else urljoin(base, FRONT_FIGURE)
    lines = [f'<meta name="description" content="{html.escape(description)}" />']
    lines += [f'<meta property="{name}" content="{html.escape(content)}" />' for name, content in tags.items()]
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(lines)


def first_paragraph(doctree):
    """Text of the first paragraph below the title, cut at a word; the title where there is none."""
    paragraphs = (node for node in doctree.findall(nodes.paragraph) if isinstance(node.parent, nodes.section))
    text = " ".join(next(paragraphs, next(doctree.findall(nodes.title))).astext().split())
    return text if len(text) <= LENGTH else text[:LENGTH].rsplit(" ", 1)[0] + " …"


def page_for_lost_readers(app):
    """The page that a server shows for an address that leads nowhere."""
    return [("404", {"title": "Page not found"}, "404.html")]


def root_of_addresses(app, pagename, templatename, context, doctree):
    """Let all addresses of the page for lost readers start at the root of the site, whatever was asked for."""
    if pagename == "404":
        path = urlparse(address_of(app)).path or "/"
        context["metatags"] = f'<base href="{path}" />' + context["metatags"]


def no_idle_mathjax(app, pagename, templatename, context, doctree):
    """Load MathJax where a page itself has formulas; Sphinx also loads it where a page below has some."""
    if app.builder.name == "html" and not app.env.get_domain("math").data["has_equations"].get(pagename):
        scripts = context["script_files"]
        context["script_files"] = [script for script in scripts if "mathjax/" not in str(script.filename)]


def mend_roles(app, pagename, templatename, context, doctree):
    """Say in the bibliography what a screen reader knows: a list has list items."""
    if "citation-list" in context.get("body", ""):
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def write_sitemap(app, exception):
    """List all pages for search engines, where the public address is known."""
    base = address_of(app)
    if exception or not base or app.builder.name != "html":
        return
    addresses = [urljoin(base, app.builder.get_target_uri(name)) for name in sorted(app.env.found_docs)]
    lines = [f"<url><loc>{html.escape(address)}</loc></url>" for address in addresses]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    (Path(app.outdir) / "sitemap.xml").write_text("\n".join([head, *lines, "</urlset>\n"]), encoding="utf-8")


def early_assets(app):
    """Put in place before pages are written what comes after them, so that their first build names its digest too."""
    from myst_nb.sphinx_ext import add_global_html_resources

    if app.builder.format == "html":
        (Path(app.outdir) / "_static").mkdir(parents=True, exist_ok=True)
        add_global_html_resources(app, None)
        import_module("sphinx-mathjax-offline").copy_mathjax_files(app, None)

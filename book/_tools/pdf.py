"""Print the built site as one PDF with bookmarks and page numbers: ``python pdf.py _build/html OUT.pdf``.

The articles of all pages are put one after the other, in the order of the table of contents, and printed by Chromium.
"""

import mimetypes
import sys
from datetime import date
from io import BytesIO
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import yaml
from bs4 import BeautifulSoup
from pypdf import PdfWriter
from pypdf.generic import NameObject, TextStringObject
from site_tools import ROOT, SETTLED, browser, pages

from calib.data.whole import write_whole

ORIGIN = "http://book.invalid/"  # answered from the folder of the site: nothing leaves the machine
MATHJAX = "_static/mathjax/tex-chtml.js"
SCALE = 0.8
MARGIN = 18  # mm
WIDTH = round((210 - 2 * MARGIN) / 25.4 * 96 / SCALE)  # of the text on A4, in CSS pixels
FOOTER = """<div style="width: 100%; text-align: center; font: 8px sans-serif; color: #555">
<span class="title"></span>, page <span class="pageNumber"></span> of <span class="totalPages"></span></div>"""
TITLE_PAGE = """<section class="title-page"><p class="title">{title}</p>
<p>{authors}<br>Version {version}, printed on {today:%Y-%m-%d}</p>
<p>Text and figures: CC BY 4.0. Code: MIT. The data belong to their authors: <a href="data.html">data and licences</a>.
Code that the site folds is left out here.</p><ul>{contents}</ul></section>"""
# Chromium measures what is too wide; CSS alone cannot.
SHRINK = """() => document.querySelectorAll("table, mjx-container[display=true]").forEach(box => {
  const room = box.parentElement.clientWidth;
  if (box.scrollWidth > room) box.style.zoom = room / box.scrollWidth;
})"""


def assemble(html, names):
    """One HTML page with a title page and the articles of the site: ids and links made unique, headings nested."""
    soup = BeautifulSoup((html / "index.html").read_text(encoding="utf-8"), "html.parser")
    articles = [_article(html, name, depth, names) for name, depth in names.items()]
    for script in soup.find_all("script"):
        if "mathjax" not in f"{script.get('src')}{script.string}".lower():
            script.decompose()
    if not soup.find("script", src=MATHJAX):  # the front page has no formula
        soup.head.append(soup.new_tag("script", src=MATHJAX, defer=""))
    soup.title.string = soup.h1.find(string=True)
    soup.html["data-theme"] = "light"
    soup.body.clear()
    front = BeautifulSoup(_title_page(articles), "html.parser")
    _point_inside(front, "index", names)
    soup.body.append(front)
    soup.body.extend(articles)
    return str(soup)


def _title_page(articles):
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    chapters = [article for article in articles if article.h1]  # the headings of the others were moved down
    links = [f'<li><a href="{chapter["id"]}.html">{chapter.h1.get_text()}</a></li>' for chapter in chapters]
    return TITLE_PAGE.format(
        title=cited["title"],
        authors=", ".join(" ".join(author.values()) for author in cited["authors"]),
        version=cited["version"],
        today=date.today(),
        contents="".join(links),
    )


def _article(html, name, depth, names):
    article = BeautifulSoup((html / f"{name}.html").read_text(encoding="utf-8"), "html.parser").article
    for element in article.select("script, .headerlink, .viewcode-link, details.above-input, .d-print-none"):
        element.decompose()
    for details in article.find_all("details"):
        details["open"] = ""
    for element in article.find_all(id=True):
        element["id"] = f"{name}:{element['id']}"
    for image in article.find_all("img"):
        image["src"] = urljoin(f"/{name}", image["src"])
    _point_inside(article, name, names)
    for heading in article.find_all([f"h{level}" for level in range(1, 6)] if depth else []):
        heading.name = f"h{min(6, int(heading.name[1]) + depth)}"
    article["id"] = name
    return article


def _point_inside(part, name, names):
    """Links to pages of the site lead to their places in the PDF; those to other files of the site become text."""
    for link in part.find_all("a", href=True):
        address, fragment = urldefrag(urljoin(f"{ORIGIN}{name}.html", link["href"]))
        target = address.removeprefix(ORIGIN).removesuffix(".html")
        if target in names:
            link["href"] = f"#{target}:{fragment}" if fragment else f"#{target}"
        elif address.startswith(ORIGIN):
            link.unwrap()


def print_pdf(html, output):
    """Print the site in a folder to a PDF file, whole or not at all."""
    names = {name: depth for name, depth in pages() if (html / f"{name}.html").exists()}
    book = assemble(html, names)

    def answer(route):
        path = html / route.request.url.removeprefix(ORIGIN).split("?")[0]
        if path == html:
            route.fulfill(body=book, content_type="text/html; charset=utf-8")
        elif path.exists():
            route.fulfill(path=path, content_type=mimetypes.guess_type(path)[0])
        else:
            route.abort()

    with browser() as chromium:
        page = chromium.new_page(viewport={"width": WIDTH, "height": 1200}, color_scheme="light")
        page.route("**/*", answer)
        page.goto(ORIGIN, wait_until="load")
        page.add_style_tag(path=Path(__file__).with_name("print.css"))
        page.emulate_media(media="print", color_scheme="light")
        page.evaluate(SETTLED)
        page.evaluate(SHRINK)
        margin = dict.fromkeys(("top", "right", "bottom", "left"), f"{MARGIN}mm")
        paper = {"format": "A4", "margin": margin, "scale": SCALE, "print_background": True}
        frame = {"display_header_footer": True, "header_template": "<span></span>", "footer_template": FOOTER}
        printed = page.pdf(**paper, **frame, outline=True, tagged=True)
        headings = page.locator("h1, h2, h3, h4, h5, h6").all_text_contents()
    pdf = PdfWriter(BytesIO(printed), incremental=True)
    titles = iter(headings)
    _name_bookmarks(pdf.root_object["/Outlines"], titles)
    if left := list(titles):
        raise ValueError(f"{html}: expected a bookmark for every heading, found none for {left}")
    write_whole({output: pdf.write})


def _name_bookmarks(parent, titles):
    """Give the bookmarks the text of their headings: where a heading breaks, Chromium repeats or joins words."""
    bookmark = parent.get("/First")
    while bookmark:
        bookmark = bookmark.get_object()
        bookmark[NameObject("/Title")] = TextStringObject(next(titles))
        _name_bookmarks(bookmark, titles)
        bookmark = bookmark.get("/Next")


if __name__ == "__main__":
    print_pdf(Path(sys.argv[1]), Path(sys.argv[2]))

"""The book in one PDF, and the pictures of its pages."""

import re

import pytest
import site_tools

from conftest import HTML, skipping_without_chromium

pytestmark = pytest.mark.site


def flat(text):
    return re.sub(r"\s+", " ", text.replace("\u2019", "'"))


def title(name):
    return flat(re.search(r"<h1>(.*?)<a class", (HTML / f"{name}.html").read_text(encoding="utf-8"))[1])


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The printed book."""
    from pdf import print_pdf
    from pypdf import PdfReader

    output = tmp_path_factory.mktemp("pdf") / "book.pdf"
    with skipping_without_chromium():
        print_pdf(HTML, output)
    assert [path.name for path in output.parent.iterdir()] == ["book.pdf"]
    return PdfReader(output)


@pytest.fixture(scope="module")
def texts(book):
    return [flat(page.extract_text()) for page in book.pages]


def test_the_bookmarks_are_the_titles_of_the_pages_in_order(book):
    def titles(items, depth=0):
        for item in items:
            if isinstance(item, list):
                yield from titles(item, depth + 1)
            else:
                yield flat(item.title), depth

    found = list(titles(book.outline))
    expected = [(title(name), depth) for name, depth in site_tools.pages()]
    assert [entry for entry in found if entry in expected] == expected


def test_every_page_of_the_pdf_has_its_number_and_every_title_is_printed(texts):
    for number, text in enumerate(texts, start=1):
        assert f"page {number} of {len(texts)}" in text
    for name, _ in site_tools.pages():
        assert title(name) in "".join(texts[1:])  # the first page lists the titles


def test_links_inside_the_book_stay_inside_and_lead_somewhere(book):
    links = [note.get_object() for page in book.pages for note in page.get("/Annots", [])]
    inside = [link["/Dest"] for link in links if "/Dest" in link]
    assert len(inside) > 100 and set(inside) <= set(book.named_destinations)
    addresses = [link["/A"]["/URI"] for link in links if "/A" in link]
    assert addresses and not [url for url in addresses if re.match(r"file:|http://(book|127)", url)]


def test_formulas_are_typeset_and_nothing_is_left_of_the_frame_of_the_site(texts):
    for leftover in (r"\mathrm", r"\frac", "Show code cell", "Skip to main content", "Search…"):
        assert leftover not in "".join(texts)


def test_without_chromium_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(site_tools.shutil, "which", lambda name: None)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "/nowhere")
    with pytest.raises(SystemExit, match="apt-get install chromium"), site_tools.browser():
        pass


def test_the_contact_sheet_shows_every_page_and_names_what_is_wrong(tmp_path, monkeypatch):
    import contact_sheet

    (tmp_path / "html").mkdir()
    (tmp_path / "html/index.html").write_text("<div style='width: 500px'>x</div>", encoding="utf-8")
    monkeypatch.setattr(contact_sheet, "pages", lambda: [("index", 0)])
    monkeypatch.setattr(contact_sheet, "LOOKS", [("dark", 360), ("light", 768)])
    with skipping_without_chromium():
        contact_sheet.contact_sheet(tmp_path / "html", tmp_path / "sheet")
    sheet = (tmp_path / "sheet/index.html").read_text(encoding="utf-8")
    assert re.search(r"360 px, dark <b>\d+ px too wide</b>", sheet) and "768 px, light <b></b>" in sheet
    assert {path.name for path in tmp_path.iterdir()} == {"html", "sheet"}
    assert (tmp_path / "sheet/index-360-dark.png").exists()

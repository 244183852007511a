"""The built site, as files and in a real browser: nothing from outside, no script error, every picture described."""

import functools
import http.server
import re
import shutil
import threading
from html.parser import HTMLParser

import pytest

from conftest import ROOT

HTML = ROOT / "_build/html"
PAGES = sorted(
    str(path.relative_to(HTML))
    for path in HTML.rglob("*.html")
    if path.relative_to(HTML).parts[0] not in ("_static", "_modules")
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync""".split()

pytestmark = pytest.mark.site


class Resources(HTMLParser):
    """What a page loads by itself, and its pictures."""

    def __init__(self):
        super().__init__()
        self.loads, self.images = [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag in ("script", "img", "iframe", "source") and attrs.get("src"):
            self.loads.append(attrs["src"])
        if tag == "link" and attrs.get("rel") in ("stylesheet", "icon", "preload", "modulepreload"):
            self.loads.append(attrs["href"])
        if tag == "img":
            self.images.append(attrs)


@functools.cache
def parse(page):
    resources = Resources()
    resources.feed((HTML / page).read_text(encoding="utf-8"))
    return resources


def test_there_is_a_page_for_every_entry_of_the_table_of_contents():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    expected = {f"{name}.html" for name in re.findall(r"(?:file|root): (\S+)", toc)}
    assert expected <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_nothing_from_outside_and_nothing_that_is_missing(page):
    for address in parse(page).loads:
        assert not re.match(r"(https?:)?//", address), address
        assert ((HTML / page).parent / address.split("?")[0]).resolve().exists(), address


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_says_what_it_shows(page):
    for image in parse(page).images:
        alt = image.get("alt", "")
        assert len(alt) > 30 and not alt.startswith(("../", "_images")), image


@pytest.mark.parametrize("page", PAGES)
def test_no_markup_or_missing_number_is_left_in_the_text(page):
    text = re.sub(r"<(script|style|pre|code).*?</\1>", "", (HTML / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "", text)
    for leftover in ("{glue:", "{cite", "{numref", ":::{", "&lt;Figure", "nan%"):
        assert leftover not in text


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=HTML))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.mark.parametrize("width", [360, 1280])
def test_no_page_asks_outside_throws_an_error_or_overflows_in_a_browser(browser, address, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    problems = []
    inside = (address, "data:", "blob:")
    context.on("request", lambda sent: sent.url.startswith(inside) or problems.append(sent.url))
    context.on("console", lambda message: message.type == "error" and problems.append(message.text))
    context.on("weberror", lambda error: problems.append(str(error.error)))
    for path in PAGES:
        page = context.new_page()
        page.goto(address + path, wait_until="load")
        page.wait_for_timeout(150)
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if overflow > 0:
            problems.append(f"{path}: {overflow} px too wide")
        page.close()
    context.close()
    assert problems == []


def test_formulas_are_typeset_without_a_network(browser, address):
    page = browser.new_page()
    page.goto(address + "soft-label-gap.html", wait_until="load")
    page.wait_for_selector("mjx-container", timeout=10000)
    page.close()


@pytest.mark.parametrize("url", ["", "https://example.org/book"])
def test_what_needs_the_repository_is_shown_only_where_its_address_is_set(url):
    from types import SimpleNamespace

    from calib_book import show_repository

    config = SimpleNamespace(html_theme_options={"repository_url": url})
    show_repository(None, config)
    assert (
        config.html_theme_options["use_repository_button"]
        is config.html_theme_options["use_issues_button"]
        is bool(url)
    )

"""The built site, as files and in a real browser: light, self-contained, described, findable, usable by everybody."""

import functools
import html
import re
import shlex
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
import yaml
from axe_playwright_python.base import AXE_SCRIPT
from site_tools import OVERFLOW, SETTLED, pages

from calib.pages.runs import load_runs
from conftest import HTML, ROOT

RUNS = load_runs(ROOT / "notebooks/runs.yaml")
PAGES = sorted(
    str(path.relative_to(HTML))
    for path in HTML.rglob("*.html")
    if path.relative_to(HTML).parts[0] not in ("_static", "_modules")
)

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


def read(page):
    return (HTML / page).read_text(encoding="utf-8")


@functools.cache
def parse(page):
    resources = Resources()
    resources.feed(read(page))
    return resources


def test_there_is_a_page_for_every_entry_of_the_table_of_contents():
    assert set(pages_of_text()) <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_nothing_from_outside_and_nothing_that_is_missing(page):
    for address in parse(page).loads:
        assert not re.match(r"(https?:)?//", address), address
        assert ((HTML / page).parent / address.split("?")[0]).resolve().exists(), address


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_says_what_it_shows(page):
    wordmark, *images = parse(page).images
    assert wordmark["src"].endswith("favicon.svg") and wordmark["alt"] == ""  # its words stand beside it
    for image in images:
        alt = image.get("alt", "")
        assert len(alt) > 30 and not alt.startswith(("../", "_images")), image


@pytest.mark.parametrize("page", PAGES)
def test_no_markup_or_missing_number_is_left_in_the_text(page):
    text = re.sub(r"<(script|style|pre|code).*?</\1>", "", read(page), flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "", text)
    for leftover in ("{glue:", "{cite", "{numref", ":::{", "&lt;Figure", "nan%"):
        assert leftover not in text


def pages_of_text():
    return [f"{name}.html" for name, _ in pages()]


def test_a_page_is_small():
    sizes = {page: (HTML / page).stat().st_size for page in PAGES}
    assert {page: size for page, size in sizes.items() if size > 300_000} == {}


def test_each_page_has_a_title_and_a_description_of_its_own():
    texts = [read(page) for page in pages_of_text()]
    titles = [re.search("<title>(.+?)</title>", text)[1] for text in texts]
    descriptions = [re.search('<meta name="description" content="([^"]+)"', text)[1] for text in texts]
    assert len(set(titles)) == len(set(descriptions)) == len(texts)
    assert titles[0] == "Calibration, reproduced"
    assert all(60 < len(html.unescape(text)) <= 252 for text in descriptions)


def test_what_needs_the_public_address_is_absent_without_it():
    assert yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"] == ""
    assert not (HTML / "sitemap.xml").exists()
    for page in PAGES:
        assert "og:title" in read(page) and "og:image" not in read(page) and 'rel="canonical"' not in read(page)


def test_with_a_public_address_there_are_a_site_map_and_preview_pictures(tmp_path):
    from docutils import nodes

    from site_shell import describe_page, write_sitemap

    paragraph, image = nodes.paragraph(text="Six <rows>."), nodes.image(uri="../_images/six.png")
    doctree = nodes.section("", nodes.title(text="Six"), paragraph, image)
    config = SimpleNamespace(root_doc="index", html_baseurl="https://example.org/book/", html_title="Book")
    builder = SimpleNamespace(name="html", get_target_uri=lambda name: f"{name}.html")
    environment = SimpleNamespace(found_docs={"index", "notebooks/six"}, get_doctree=lambda name: doctree)
    app = SimpleNamespace(config=config, builder=builder, env=environment, outdir=tmp_path)
    context = {"title": "Six <em>examples</em>"}
    describe_page(app, "notebooks/six", "page.html", context, doctree)
    assert '"og:url" content="https://example.org/book/notebooks/six.html"' in context["metatags"]
    assert '"og:image" content="https://example.org/book/_images/six.png"' in context["metatags"]
    assert 'name="description" content="Six &lt;rows&gt;."' in context["metatags"]
    assert '"og:title" content="Six examples"' in context["metatags"]
    write_sitemap(app, None)
    assert "<loc>https://example.org/book/notebooks/six.html</loc>" in (tmp_path / "sitemap.xml").read_text()


@pytest.mark.parametrize("run", RUNS)
def test_under_its_title_a_notebook_says_what_it_ran_with_and_how_to_run_it_again(run):
    page = read(f"notebooks/{run}.html")
    box = re.search(r'</h1><aside class="run-box".*?</aside>', page, flags=re.DOTALL)[0]
    notebook, source = (HTML / "notebooks" / path for path in re.findall(r'href="([^"]+)" download', box))
    assert notebook.read_bytes() == (ROOT / f"book/notebooks/{run}.ipynb").read_bytes()
    assert source.read_bytes() == (ROOT / RUNS[run].source).read_bytes()
    command = shlex.split(html.unescape(re.search("<pre>(.+?)</pre>", box)[1]))
    assert command[:3] == ["make", "run", f"NB={RUNS[run].notebook}"]
    parts = command[3].removeprefix("P=").split() if command[3:] else []
    parameters = {name: yaml.safe_load(value) for name, _, value in (part.partition("=") for part in parts)}
    assert parameters == RUNS[run].parameters
    assert "github" not in box


def test_with_a_repository_a_notebook_opens_elsewhere_at_the_commit_that_was_built(tmp_path):
    from run_box import commit, repository_links

    assert commit(tmp_path) == "HEAD"  # no repository here
    assert repository_links("", "notebooks/a.py", "six-examples") == {}
    url, page = "https://github.com/who/what", "book/published/six-examples.ipynb"
    links = repository_links(url, "notebooks/a.py", "six-examples")
    assert links["source at this commit"] == f"{url}/blob/{commit()}/notebooks/a.py"
    assert links["open in Colab"].endswith(f"/github/who/what/blob/{commit()}/{page}")
    assert links["open in Binder"].endswith(f"/gh/who/what/{commit()}?urlpath=lab/tree/{page}")
    assert list(repository_links("https://example.org/what", "notebooks/a.py", "six-examples")) == [
        "source at this commit"
    ]


@pytest.mark.parametrize("run", RUNS)
def test_a_run_opens_only_where_it_can_run(run):
    from run_box import repository_links

    links = repository_links("https://github.com/who/what", "notebooks/a.py", run)
    assert ("open in Colab" in links) is RUNS[run].stands_alone
    assert ("open in Binder" in links) is (not RUNS[run].after)


def test_the_page_of_data_says_by_file_what_may_be_copied():
    from calib.data.registry import REGISTRY

    table = re.search(r"You may copy it.*?</table>", read("data.html"), flags=re.DOTALL)[0]
    cells = [re.sub("<[^>]+>", " ", cell) for cell in re.findall(r"<td.*?</td>", table, flags=re.DOTALL)]
    rows = {terms.strip(): (names, size) for terms, names, size in zip(cells[::3], cells[1::3], cells[2::3])}
    assert set(rows) == {entry.source.redistribution for entry in REGISTRY.values()}
    needed = sum(float(size.split()[0]) for _, size in rows.values())
    assert needed == pytest.approx(sum(entry.size for entry in REGISTRY.values() if not entry.optional) / 1e6, abs=0.1)
    assert "chaosNLI_snli.jsonl" in rows["with credit, not commercially"][0]


@pytest.mark.parametrize("page", PAGES)
def test_addresses_within_a_page_are_unique_and_those_of_figures_have_names(page):
    ids = re.findall(r'\sid="([^"]+)"', read(page))
    assert sorted(ids) == sorted(set(ids))
    assert not re.search(r'<figure[^>]* id="id\d+"', read(page))


def test_the_figure_of_the_front_page_has_its_number_on_its_own_page_only():
    assert "<figure" in read("index.html") and "caption-number" not in read("index.html")


# A page is loaded as on a desk and as on a phone; the desk then becomes a tablet and a sheet of paper.
LOOKS = {"light": [(1280, "screen"), (768, "screen"), (720, "print")], "dark": [(360, "screen")]}


@pytest.fixture(scope="module")
def looks(browser, address):
    """A browser window of each theme, and what goes wrong in any of them."""
    problems = []
    inside = (address, "data:", "blob:")
    windows = {}
    for theme, [(width, _), *_] in LOOKS.items():
        window = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        window.on("request", lambda sent: sent.url.startswith(inside) or problems.append(sent.url))
        window.on("response", lambda answer: answer.ok or problems.append(f"{answer.status} {answer.url}"))
        window.on("console", lambda message: message.type == "error" and problems.append(message.text))
        window.on("weberror", lambda error: problems.append(str(error.error)))
        windows[theme] = window
    yield windows, problems
    for window in windows.values():
        window.close()


@pytest.mark.parametrize("path", [*PAGES, "_modules/calib/temperature.html"])
def test_a_page_asks_nothing_outside_throws_no_error_fits_and_bars_no_reader(looks, address, path):
    windows, problems = looks
    problems.clear()
    tabs = {theme: opened(window, address + path) for theme, window in windows.items()}  # axe works in both at once
    for theme, page in tabs.items():
        problems += barriers(page)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (max(map(int, re.findall(r"\d+", ground)[:3])) < 60) is (theme == "dark"), ground
        for width, media in LOOKS[theme]:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(media=media)
            if (overflow := page.evaluate(OVERFLOW)) > 0:
                problems.append(f"{overflow} px too wide for {width} px, {media}")
        page.close()
    assert problems == []


def opened(window, url):
    """A page in which axe-core has begun to look for what bars readers with disabilities.

    To preload style sheets, it would ask for files that are not there.
    """
    page = window.new_page()
    page.goto(url, wait_until="load")
    page.evaluate(SETTLED)
    page.evaluate(AXE_SCRIPT)
    page.evaluate("() => { window.found = axe.run({resultTypes: ['violations'], preload: false}) }")
    return page


def barriers(page):
    """What axe-core found to be serious."""
    grave = [rule for rule in page.evaluate("found")["violations"] if rule["impact"] in ("serious", "critical")]
    return [f"{rule['id']}: {node['html'][:120]}" for rule in grave for node in rule["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_keyboard_reaches_the_text_first_and_shows_where_it_is(browser, address, theme):
    page = browser.new_page(color_scheme=theme, viewport={"width": 1280, "height": 900})
    page.goto(address, wait_until="load")
    stops = []
    for _ in range(12):
        page.keyboard.press("Tab")
        page.wait_for_timeout(100)
        stops.append(
            page.evaluate("""() => {
                const at = document.activeElement, style = getComputedStyle(at), ground = getComputedStyle(document.body);
                return {
                    text: at.innerText.trim() || at.getAttribute("aria-label"),
                    outline: style.outlineStyle + " " + style.outlineWidth,
                    seen: style.outlineColor !== ground.backgroundColor,
                };
            }""")
        )
    assert [stop["text"].split("\n")[0] for stop in stops[:3]] == [
        "Skip to main content",
        "Calibration, reproduced",
        "Search",
    ]
    assert all(stop["text"] and stop["outline"] == "solid 3px" and stop["seen"] for stop in stops), stops
    page.goto(address + "glossary.html", wait_until="load")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(address + "glossary.html#main-content", timeout=5000)
    page.close()


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("fit_temperature", "api.html#calib.temperature.fit_temperature"),
        ("ECE", "glossary.html#term-ECE"),
        ("temperature scaling", "notebooks/what-temperature-does.html"),
        ("0.823", "notebooks/six-examples.html"),
        ("ChaosNLI", "notebooks/soft-label-gap-summary.html"),
    ],
)
def test_search_finds_symbols_and_terms(browser, address, words, page):
    tab = browser.new_page()
    tab.goto(address + "search.html", wait_until="load")
    tab.fill("main form.bd-search input", words)
    tab.press("main form.bd-search input", "Enter")
    tab.wait_for_selector("#search-results .search-summary:has-text('finished')")
    links = tab.eval_on_selector_all("#search-results li > a", "links => links.map(link => link.href)")
    found = [re.sub(r"\?[^#]*", "", link).removeprefix(address) for link in links]
    assert page in found[:10]
    assert len(found) == len(set(found))
    tab.close()


def test_an_address_that_leads_nowhere_shows_the_way_back(browser, address):
    page = browser.new_page()
    failed = []
    page.on("response", lambda answer: answer.ok or failed.append(answer.url))
    page.goto(address + "no/such/page.html", wait_until="load")
    assert failed == [address + "no/such/page.html"]
    page.click("article a:has-text('front page')")
    assert page.title() == "Calibration, reproduced"
    page.close()


def test_a_dark_page_prints_light_and_without_what_paper_cannot_use(browser, address):
    page = browser.new_page(color_scheme="dark")
    page.goto(address + "notebooks/six-examples.html", wait_until="load")
    page.evaluate("addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.theme })")
    page.pdf()
    assert page.evaluate("window.printed") == "light"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(media="print")
    for gone in ("#pst-primary-sidebar", "#pst-secondary-sidebar", ".bd-header-article", ".prev-next-footer"):
        assert not page.is_visible(gone), gone
    assert page.is_visible("article h1") and page.is_visible("article figure img")
    page.close()


@pytest.mark.parametrize(("path", "limit"), [("index.html", 1.1e6), ("notebooks/six-examples.html", 2.8e6)])
def test_a_page_loads_no_more_than_it_uses(browser, address, path, limit):
    page = browser.new_page()
    sizes = {}
    page.on("response", lambda answer: sizes.update({answer.url: int(answer.headers.get("content-length", 0))}))
    page.goto(address + path, wait_until="networkidle")
    assert sum(sizes.values()) < limit
    assert not any(name in url for url in sizes for name in ("fontawesome.js", "searchindex.js"))
    assert any("mathjax" in url for url in sizes) is (path != "index.html")
    page.close()


def test_formulas_are_typeset_without_a_network(browser, address):
    page = browser.new_page()
    page.goto(address + "soft-label-gap.html", wait_until="load")
    page.wait_for_selector("mjx-container", timeout=10000)
    page.close()


@pytest.mark.parametrize("url", ["", "https://example.org/book"])
def test_what_needs_the_repository_is_shown_only_where_its_address_is_set(url):
    from calib_book import show_repository

    config = SimpleNamespace(html_theme_options={"repository_url": url})
    show_repository(None, config)
    assert (
        config.html_theme_options["use_repository_button"]
        is config.html_theme_options["use_issues_button"]
        is bool(url)
    )

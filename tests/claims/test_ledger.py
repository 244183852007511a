"""The ledger says of every printed value what came out, and its page shows each row, with and without a script."""

import functools
from html.parser import HTMLParser

import pytest

from calib.claims.ledger import VERDICTS, ledger
from calib.claims.printed import as_printed, half_up, rows
from calib.pages import record as results
from conftest import HTML, ROOT
from ledger import minus, row_id

RESULTS = {
    "run": {
        "a": 0.5225,
        "b": 0.0087,
        "hits": 4,
        "n": 6,
        "seed": 113,
        "tiny": 3e-15,
        "small": 3e-8,
        "counts": "1 2 3",
        "share": 0.1288,
    },
    "split": {"a": 0.5, "splits_a_low": 0.4, "splits_a_high": 0.6, "b": 7, "splits_b_low": 3.0, "splits_b_high": 9.0},
    "claims": {"yes": "shown", "partly": "not shown: in 5 of 6", "no": "contradicted: 12%"},
}


def judge(kind, printed, ours, note=""):
    row = {"source": "s", "where": "w", "quantity": "q", "printed": printed, "kind": kind, "ours": ours, "note": note}
    [found] = ledger(RESULTS, [row])
    assert found["verdict"] in VERDICTS
    return found


@pytest.mark.parametrize("kind", ["exact", "reaggregate", "protocol"])
@pytest.mark.parametrize(
    ("printed", "ours", "reproduced", "difference", "verdict"),
    [
        ("0.523", "run/a", "0.523", "0", "exact"),  # half up; binary rounding would give 0.522
        ("0.522", "run/a", "0.523", "+0.001", "not equal"),
        ("0.523 (0.009)", "run/a run/b", "0.523 (0.009)", "0", "exact"),
        ("0.523 (0.008)", "run/a run/b", "0.523 (0.009)", "0 +0.001", "not equal"),
        ("4/6", "run/hits run/n", "4/6", "0", "exact"),
        ("5/6", "run/hits run/n", "4/6", "-1 0", "not equal"),
        ("12.9%", "run/share", "12.9%", "0", "exact"),
        ("13%", "run/share", "13%", "0", "exact"),
        ("13.0%", "run/share", "12.9%", "-0.1", "not equal"),
        ("113", "run/seed", "113", "0", "exact"),
    ],
)
def test_a_determined_value_is_exact_in_every_digit_or_not_equal(kind, printed, ours, reproduced, difference, verdict):
    found = judge(kind, printed, ours)
    assert (found["reproduced"], found["difference"], found["verdict"]) == (reproduced, difference, verdict)


@pytest.mark.parametrize(
    ("printed", "ours", "verdict", "spread"),
    [
        ("0.45", "split/a", "close", "0.40 to 0.60"),
        ("0.40", "split/a", "close", "0.40 to 0.60"),
        ("0.39", "split/a", "not close", "0.40 to 0.60"),
        ("0.61", "split/a", "not close", "0.40 to 0.60"),
        ("0.45 8", "split/a split/b", "close", "0.40 to 0.60; 3 to 9"),
        ("0.45 2", "split/a split/b", "not close", "0.40 to 0.60; 3 to 9"),
        ("113", "run/seed", "exact", ""),
        ("114", "run/seed", "context", ""),
        ("1 2 2 9", "run/counts", "context", ""),
    ],
)
def test_a_value_of_another_split_is_judged_by_the_spread_over_splits(printed, ours, verdict, spread):
    found = judge("other split", printed, ours)
    assert (found["verdict"], found["spread"]) == (verdict, spread)


@pytest.mark.parametrize(
    ("printed", "ours", "reproduced", "verdict"),
    [
        ("2e-8", "run/tiny", "3e-15", "shown"),
        ("3e-15", "run/tiny", "3e-15", "shown"),
        ("2e-15", "run/tiny", "3e-15", "rounding"),
        ("2e-8", "run/small", "3e-8", "contradicted"),
        ("2e-15", "run/small", "3e-8", "contradicted"),
    ],
)
def test_a_bound_is_kept_or_missed_by_rounding_or_not_kept(printed, ours, reproduced, verdict):
    found = judge("bound", printed, ours)
    assert (found["reproduced"], found["verdict"]) == (reproduced, verdict)


@pytest.mark.parametrize(
    ("name", "verdict", "reproduced"),
    [
        ("yes", "shown", ""),
        ("partly", "not shown", "in 5 of 6"),
        ("no", "contradicted", "12%"),
        ("later", "pending", ""),
    ],
)
def test_a_claim_waits_for_the_result_of_its_name(name, verdict, reproduced):
    found = judge("claim", "about 17%", f"claims/{name}")
    assert (found["verdict"], found["reproduced"]) == (verdict, reproduced)
    assert bool(found["note"]) is (verdict == "pending")


def test_a_claim_without_any_known_verdict_is_an_error():
    with pytest.raises(ValueError, match=r"claims/odd: expected one of exact, .*; got 'maybe'"):
        ledger({"claims": {"odd": "maybe"}}, [{"kind": "claim", "ours": "claims/odd"}])


def test_what_nothing_reproduces_is_pending_with_its_reason_and_context_claims_nothing():
    assert judge("exact", "0.1", "", "The model was not available.")["verdict"] == "pending"
    assert judge("context", "1.15", "")["verdict"] == "context"


@pytest.mark.parametrize("ours", ["run/missing", "nobody/a"])
def test_a_missing_result_is_an_error_that_names_it(ours):
    with pytest.raises(KeyError, match=f"no {ours} for s, w, q"):
        judge("exact", "0.1", ours)


def test_every_number_of_a_printed_text_needs_one_value():
    with pytest.raises(ValueError, match=r"values: expected 2, .* '4/6', got 1"):
        as_printed("4/6", [4])


def test_zero_has_no_sign():
    assert half_up(-0.0004, 3) == "0.000"


# The built book


@functools.cache
def built():
    return ledger(results.load(ROOT / "_build/results.json"), rows())


@pytest.mark.site
def test_every_published_row_is_there_once_and_in_order():
    keys = [(row["source"], row["where"], row["quantity"]) for row in built()]
    assert keys == [(row["source"], row["where"], row["quantity"]) for row in rows()] and len(set(keys)) == 182


@pytest.mark.site
def test_every_determined_value_comes_out_to_every_printed_digit():
    determined = [row for row in built() if row["kind"] in ("exact", "reaggregate", "protocol")]
    assert len(determined) == 34 + 75 + 2
    assert [row for row in determined if row["verdict"] != "exact"] == []


@pytest.mark.site
def test_only_claims_wait():
    assert {row["kind"] for row in built() if row["verdict"] == "pending"} <= {"claim"}


@pytest.mark.site
def test_the_ledger_and_the_page_agree_on_how_many_values_are_close():
    split = [row for row in built() if row["source"] == "SST-2 isolated fit" and row["kind"] == "other split"]
    recorded = results.load(ROOT / "_build/results.json")["sst2-isolated-fit"]
    close = sum(row["verdict"] == "close" for row in split)
    assert (len(split), close) == (recorded["n_published"], recorded["n_published_inside"])


class Page(HTMLParser):
    """Ids, links and the cells of the rows of a page."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.rows = [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        if tag == "tr":
            self.rows.append((attrs.get("id"), []))
        if tag in ("td", "th") and self.rows:
            self.rows[-1][1].append("")
        if tag == "a" and "internal" in attrs.get("class", ""):
            self.links.append(attrs["href"])

    def handle_data(self, data):
        if self.rows and self.rows[-1][1]:
            self.rows[-1][1][-1] += data


@functools.cache
def parse(path):
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


@pytest.mark.site
def test_the_page_shows_each_row_with_its_values_and_verdict():
    shown = {key: [cell.strip() for cell in cells] for key, cells in parse(HTML / "ledger.html").rows if key}
    assert list(shown) == [row_id(row) for row in built()]
    for number, row in enumerate(built(), start=1):
        values = [minus(row[name]) for name in ("printed", "reproduced", "difference")]
        expected = [str(number), row["verdict"], row["source"], row["where"], row["quantity"], *values]
        assert shown[row_id(row)][:8] == expected


@pytest.mark.site
def test_every_link_of_the_page_leads_to_a_place_that_is_there():
    links = [link for link in parse(HTML / "ledger.html").links if "#" in link]
    assert len(links) > 2 * 182 - 30
    for link in links:
        page, _, anchor = link.partition("#")
        path = (HTML / page) if page else HTML / "ledger.html"
        assert path.exists() and (not anchor or anchor in parse(path).ids), link


@pytest.mark.site
def test_the_page_is_small_and_alone_in_loading_its_script():
    assert (HTML / "ledger.html").stat().st_size < 300_000
    loading = [path for path in HTML.rglob("*.html") if "ledger.js" in path.read_text(encoding="utf-8")]
    assert loading == [HTML / "ledger.html"]


@pytest.fixture
def page(browser, address):
    page = browser.new_page(viewport={"width": 360, "height": 800})
    page.goto(address + "ledger.html", wait_until="load")
    yield page
    page.close()


def visible(page):
    return page.locator("table.ledger tbody tr:visible").count()


def count(**wanted):
    return sum(all(row[name] == value for name, value in wanted.items()) for row in built())


@pytest.mark.site
def test_the_filter_works_with_the_keyboard(page):
    page.get_by_label("Verdict").focus()
    page.keyboard.type("contra")
    assert page.get_by_label("Verdict").input_value() == "contradicted"
    assert visible(page) == count(verdict="contradicted") > 0


@pytest.mark.site
def test_source_and_verdict_filter_together_and_the_button_shows_all_again(page):
    source = "SST-2 isolated fit"
    page.get_by_label("Source").select_option(source)
    assert visible(page) == count(source=source)
    page.get_by_label("Verdict").select_option("close")
    assert visible(page) == count(source=source, verdict="close")
    assert page.locator("form.ledger-filter output").inner_text() == f"{visible(page)} of 182 rows"
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("document.querySelector('output').textContent == '182 of 182 rows'")
    assert visible(page) == 182


@pytest.mark.site
def test_a_link_to_a_hidden_row_shows_it(page):
    page.get_by_label("Verdict").select_option("pending")
    target = next(row_id(row) for row in built() if row["verdict"] == "contradicted")
    page.locator(f"p a[href='#{target}']").first.click()
    assert page.locator(f"#{target}").is_visible() and visible(page) == 182


@pytest.mark.site
def test_on_a_phone_the_table_scrolls_inside_its_frame(page):
    frame = page.get_by_role("region", name="All printed values")
    assert frame.evaluate("frame => frame.scrollWidth > frame.clientWidth && frame.clientWidth <= 360")
    frame.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.ledger-scroll').scrollLeft > 0")


@pytest.mark.site
def test_without_a_script_the_page_shows_all_rows_and_no_filter(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "ledger.html", wait_until="load")
    assert visible(page) == 182 and not page.locator("form.ledger-filter").is_visible()
    context.close()

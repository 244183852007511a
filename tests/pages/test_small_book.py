"""The project's own pipeline and configuration, on a small book: what is shown is what is there now."""

import os
import re
import shutil

import pytest
import yaml

from conftest import ALONE, INDEX, ROOT, build, start

URL = "https://github.com/who/what"


def built_files(book):
    files = (path for path in (book / "_build/html").rglob("*") if path.is_file())
    return {path.relative_to(book / "_build/html").as_posix(): path.read_bytes() for path in files}


def page(book, name="index"):
    return (book / f"_build/html/{name}.html").read_text(encoding="utf-8")


OTHER = """# A marmot

:::{glossary}
Quokka
  A term, which is looked for on a page that is not rendered again.
:::
"""


def test_an_edit_is_shown_whatever_its_date_and_the_site_is_that_of_a_clean_build(small_book):
    index, other = small_book / "book/index.md", small_book / "book/other.md"
    index.write_text(INDEX + "\nA walrus, $x^2$. See [](other.md).\n", encoding="utf-8")
    other.write_text(OTHER, encoding="utf-8")
    with (small_book / "_toc.yml").open("a", encoding="utf-8") as contents:
        contents.write("  - file: other\n")
    build(small_book)
    assert "A marmot" in page(small_book)
    other.write_text(OTHER.replace("marmot", "stork"), encoding="utf-8")
    build(small_book)
    assert "A stork" in page(small_book) and "marmot" not in page(small_book)  # where another page names it

    index.write_text(index.read_text(encoding="utf-8").replace("walrus", "heron"), encoding="utf-8")
    os.utime(index, (1_000_000_000, 1_000_000_000))  # as `cp -p` does
    build(small_book)
    assert "A heron" in page(small_book) and "walrus" not in page(small_book)
    site = built_files(small_book)
    words = site["searchindex.js"].decode()
    assert re.search(r'"heron": \d', words) and re.search('"quokka": ', words)
    assert not re.search(r'"walrus": \[?\d', words)
    shutil.rmtree(small_book / "_build/site")
    shutil.rmtree(small_book / "_build/html")
    build(small_book)
    assert built_files(small_book) == site


def test_a_chapter_taken_out_leaves_no_stale_number_and_what_points_to_it_says_so(small_book):
    (small_book / "book/index.md").write_text(INDEX.replace("one", "two"), encoding="utf-8")
    build(small_book)
    assert "A number: 4.5." in page(small_book)
    (small_book / "notebooks/runs.yaml").write_text("one: {notebook: one}\n", encoding="utf-8")
    (small_book / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nchapters:\n  - file: notebooks/one\n", encoding="utf-8"
    )
    process = start(small_book, *ALONE)
    output = process.communicate(timeout=120)[0]
    assert process.returncode and re.search(r"index.md:3: .*'two/value' not found in doc 'notebooks/two'", output), (
        output
    )
    assert "Traceback" not in output and "RuleException" not in output
    (small_book / "book/index.md").write_text(INDEX, encoding="utf-8")
    build(small_book)
    assert "A number: 3.0." in page(small_book)
    assert not list(small_book.rglob("two.json")) and not list(small_book.glob("book/notebooks/two.ipynb"))
    assert '"two"' not in (small_book / "_build/html/results.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("where", [URL, ""])
def test_the_real_configuration_shows_the_repository_where_its_address_is_set_and_keeps_the_rest(small_book, where):
    config = yaml.safe_load((small_book / "_config.yml").read_text(encoding="utf-8"))
    config["repository"]["url"], config["html"]["baseurl"] = where, "https://example.org/calibration" if where else ""
    (small_book / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (small_book / "notebooks/runs.yaml").write_text("one: {notebook: one}\ntwo: {notebook: two, after: [one]}\n")
    build(small_book)
    index, one, two = page(small_book), page(small_book, "notebooks/one"), page(small_book, "notebooks/two")
    assert (f'href="{URL}"' in index) is bool(where)
    assert (f"{URL}/issues/new" in index) is bool(where)
    assert ("colab.research.google.com" in one) is bool(where) is ("mybinder.org" in one)
    assert "colab" not in two and "mybinder" not in two  # it reads numbers of another run
    assert ('"og:url" content="https://example.org/calibration/index.html"' in index) is bool(where)
    assert (small_book / "_build/html/sitemap.xml").exists() is bool(where)
    if where:
        sitemap = (small_book / "_build/html/sitemap.xml").read_text(encoding="utf-8")
        assert "https://example.org/calibration/notebooks/one.html" in sitemap
    assert (small_book / "_build/html/.nojekyll").exists()


def test_the_configuration_of_these_builds_is_the_real_one(small_book):
    assert (small_book / "_config.yml").read_bytes() == (ROOT / "_config.yml").read_bytes()


SCRIPT = "<script>alert({})</script>"
SHOWS_A_FILE = """
# %%
from calib.pages.show import table

table("ll", ["Machine", "Word"], [["<script>alert(4)</script>", "<img src=x onerror=alert(5)>"]])
"""


def test_what_comes_from_a_file_brings_no_tags_into_the_site(small_book):
    """The registry, parameters with backticks, the state of runs, tables: text stays text."""
    registry = small_book / "calib/data/registry.toml"
    text = registry.read_text(encoding="utf-8").replace('licence = "MIT"', f"licence = '{SCRIPT.format(1)}'")
    registry.write_text(text.replace('citation = "', f'citation = "{SCRIPT.format(2)}, '), encoding="utf-8")
    notebook = small_book / "notebooks/one.py"
    source = notebook.read_text(encoding="utf-8").replace("scale = 2", 'scale = 2\nword = "plain"')
    notebook.write_text(source + SHOWS_A_FILE, encoding="utf-8")
    runs = {"one": {"notebook": "one", "parameters": {"word": f"`{SCRIPT.format(3)}``|"}}, "two": {"notebook": "two"}}
    (small_book / "notebooks/runs.yaml").write_text(yaml.safe_dump(runs), encoding="utf-8")
    index = f"{INDEX}\n```{{data-table}}\n```\n\n```{{status-table}} runs\n```\n\n{SCRIPT.format(6)}\n\n```{{bibliography}}\n```\n\n"
    (small_book / "book/index.md").write_text(index + "In {built}`results.json`.\n", encoding="utf-8")
    (small_book / "book/raw-data.md").write_text("# Raw data\n", encoding="utf-8")
    with (small_book / "_toc.yml").open("a", encoding="utf-8") as contents:
        contents.write("  - file: raw-data\n")
    build(small_book)
    pages = page(small_book) + page(small_book, "notebooks/one")
    for number in (1, 2, 3, 4, 6):
        assert f"<script>alert({number})" not in pages and f"alert({number})" in pages, number
    assert "<img src=x" not in pages
    assert '<a class="reference external" href="results.json">results.json</a>' in page(small_book)

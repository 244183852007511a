"""The project's own pipeline and configuration, on a small book: what is shown is what is there now."""

import os
import re

import pytest
import yaml

from conftest import ALONE, INDEX, ROOT, build, start

URL = "https://github.com/who/what"


def page(book, name="index"):
    return (book / f"_build/html/{name}.html").read_text(encoding="utf-8")


def test_prose_put_back_with_an_older_date_is_shown_again_and_found(small_book):
    prose = small_book / "book/index.md"
    build(small_book)
    prose.write_text(INDEX + "\nA marmot.\n", encoding="utf-8")
    build(small_book)
    assert "A marmot." in page(small_book)
    prose.write_text(INDEX + "\nA heron.\n", encoding="utf-8")
    os.utime(prose, (1_000_000_000, 1_000_000_000))  # as `cp -p` does
    build(small_book)
    assert "A heron." in page(small_book) and "marmot" not in page(small_book)
    index = (small_book / "_build/html/searchindex.js").read_text(encoding="utf-8")
    assert re.search(r'"heron": \d', index) and not re.search(r'"marmot": \[?\d', index)


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

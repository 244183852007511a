"""Search that finds printed numbers: 0.823 is one word, where Sphinx sees two and looks for neither.

After an incremental build it is that of a clean one: Sphinx loses the terms of pages that it does not render again, and
keeps words that no page has any longer.
"""

import re

from sphinx.search.en import SearchEnglish
from sphinx.util.index_entries import split_index_msg


class SearchEnglishAndNumbers(SearchEnglish):
    """English, with a number as one word in the index and in what is asked for."""

    _word_re = re.compile(r"\d+(?:[.,]\d+)+|\w+")
    js_splitter_code = r"""
var splitQuery = (query) =>
  query.match(/\d+(?:[.,]\d+)+|[\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu) || [];
"""


def mend_index(app):
    """Give the terms of every page to the index, and take from it the words of no page."""
    index, entries = app.builder.indexer, app.env.get_domain("index").entries
    index._index_entries = {page: _terms(entries[page]) for page in sorted(app.env.found_docs)}
    for words in (index._mapping, index._title_mapping):
        for word in [word for word, pages in words.items() if not pages]:
            del words[word]
    return []


def _terms(found):
    return sorted({(word, at or "", main) for kind, text, at, main, _ in found for word in split_index_msg(kind, text)})


def setup(app):
    app.connect("html-collect-pages", mend_index)
    app.add_search_language(SearchEnglishAndNumbers)
    return {"parallel_read_safe": True}

"""Search that finds printed numbers: 0.823 is one word, where Sphinx sees two and looks for neither."""

import re

from sphinx.search.en import SearchEnglish


class SearchEnglishAndNumbers(SearchEnglish):
    """English, with a number as one word in the index and in what is asked for."""

    _word_re = re.compile(r"\d+(?:[.,]\d+)+|\w+")
    js_splitter_code = r"""
var splitQuery = (query) =>
  query.match(/\d+(?:[.,]\d+)+|[\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu) || [];
"""


def setup(app):
    app.add_search_language(SearchEnglishAndNumbers)
    return {"parallel_read_safe": True}

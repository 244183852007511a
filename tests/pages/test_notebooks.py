"""What a reader sees of the code: lines that fit the page, and nothing of the machinery of the book."""

import re

import pytest

from conftest import ROOT

HIDDEN = ("hide-input", "hide-cell", "remove-cell", "remove-input", "parameters")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


def visible_cells(path):
    """Code that the page shows unfolded."""
    for cell in re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = cell.partition("\n")
        if "[markdown]" not in head and not any(tag in head for tag in HIDDEN):
            yield body


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_visible_code_fits_the_page(path):
    assert [line for cell in visible_cells(path) for line in cell.splitlines() if len(line) > 88] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_recording_is_out_of_sight(path):
    assert [cell for cell in visible_cells(path) if re.search(r"\b(record|glue)\(", cell)] == []

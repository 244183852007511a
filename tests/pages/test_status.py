"""The page of the build's state: nothing is left out, and where runs differ each value stands with its runs."""

import json
import re

import pytest

from calib.pages.runs import load_runs
from conftest import ROOT
from status import agreed, data_files, environment, load, totals

STATE = {
    "run": "one",
    "notebook": "notebooks/one.py",
    "parameters": {},
    "seconds": 2.31,
    "peak_mb": 412.0,
    "date": "2026-11-29",
    "commit": "0123456789abcdef",
    "changed": False,
    "python": "3.11.2",
    "platform": "Linux x86_64",
    "cores": 2,
    "versions": {"numpy": "2.4.6"},
    "data": {"sst2/a.csv": "f" * 64},
    "fresh": True,
}
OTHER = STATE | {"run": "two", "seconds": 3.0, "peak_mb": 99.0, "fresh": False, "versions": {"numpy": "2.3.0"}}


def test_a_missing_state_is_an_error_that_says_how_to_make_it(tmp_path):
    with pytest.raises(ValueError, match=r"one\.json: expected the state of this run, found no file; `make book`"):
        load(tmp_path / "one.json")


@pytest.mark.parametrize("key", sorted(set(STATE) - {"run"}))
def test_a_state_without_a_key_is_an_error_that_names_it(tmp_path, key):
    (tmp_path / "one.json").write_text(json.dumps({name: value for name, value in STATE.items() if name != key}))
    with pytest.raises(ValueError, match=rf"one\.json: expected {key}, found"):
        load(tmp_path / "one.json")


def test_totals_count_fresh_and_published_runs():
    assert totals([STATE, OTHER]) == (
        "**2** runs: **1** fresh, **1** shown as published. Together they took **5.3** seconds; "
        "the largest peak of memory was **412** MB, in one."
    )


def test_a_version_stands_once_where_runs_agree_and_with_its_runs_where_not():
    assert agreed(["2.4.6", "2.4.6"], [STATE, OTHER]) == "2.4.6"
    assert agreed(["2.4.6", ""], [STATE, OTHER]) == "2.4.6 (one); not known (two)"
    assert "| numpy | 2.4.6 (one); 2.3.0 (two) |" in environment([STATE, OTHER])


def test_a_commit_with_changes_says_so():
    text = environment([STATE, OTHER | {"changed": True}])
    assert "| commit | `0123456789ab` (one); `0123456789ab` with uncommitted changes (two) |" in text


def test_a_file_that_two_runs_read_with_other_content_stands_twice():
    text = data_files([STATE, OTHER, OTHER | {"run": "three", "data": {"sst2/a.csv": "0" * 64}}])
    assert text.count("sst2/a.csv") == 2 and "| one, two |" in text and "| three |" in text


@pytest.mark.site
def test_the_page_has_every_run_with_a_link_and_every_whole_hash():
    html = (ROOT / "_build/html/status.html").read_text(encoding="utf-8")
    runs = load_runs(ROOT / "notebooks/runs.yaml")
    states = [load(ROOT / f"_build/status/{run}.json") for run in runs]
    for run in runs:
        assert f'href="notebooks/{run}.html"' in html
    hashes = {digest for state in states for digest in state["data"].values()}
    assert hashes == set(re.findall(r'class="hash"[^>]*>([0-9a-f]{64})<', html))

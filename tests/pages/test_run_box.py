"""The box under the title of a page: what it says comes from the list of runs, and its links lead somewhere."""

import re
from types import SimpleNamespace

import pytest

import run_box
from calib.data.registry import REGISTRY
from calib.pages.runs import load_runs
from conftest import ROOT

URL = "https://github.com/who/what"


@pytest.mark.parametrize(
    ("size", "words"), [(999, "1 kB"), (38_076, "38 kB"), (1_000_000, "1.0 MB"), (21_835_000, "21.8 MB")]
)
def test_sizes_are_said_as_a_reader_wants_them(size, words):
    assert run_box.in_words(size) == words


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), ("a", "a"), (True, "true"), ([1, ["a", 0.5]], "[1,[a,0.5]]"), ("1", "'1'")]
)
def test_a_parameter_is_written_as_it_is_read(value, text):
    assert run_box.as_yaml(value) == text


def test_the_box_of_every_run_says_what_its_entry_says():
    for name, entry in load_runs(ROOT / "notebooks/runs.yaml").items():
        box = run_box.describe(name)
        assert (box["run"], box["notebook"], box["after"]) == (name, entry.notebook, entry.after)
        assert box["command"].startswith(f"make run NB={entry.notebook}")
        assert list(box["parameters"]) == list(entry.parameters)
        assert (" P=" in box["command"]) is bool(entry.parameters)
        assert box["files"] == len(entry.files)
        assert box["size"] == run_box.in_words(sum(REGISTRY[file.name].size for file in entry.files))


def test_the_command_of_the_box_gives_the_parameters_quoted_for_the_shell(monkeypatch):
    entry = SimpleNamespace(
        notebook="one", parameters={"a": [1, 2], "b": "x y"}, files=[], after=[], repository_files=lambda root: ["x"]
    )
    monkeypatch.setitem(run_box.RUNS, "first", entry)
    box = run_box.describe("first")
    assert box["command"] == "make run NB=one P='a=[1,2] b=x y'"
    assert box["parameters"] == {"a": "[1,2]", "b": "x y"}
    assert (box["files"], box["size"], box["reads"]) == (0, "0 kB", 1)


def test_links_lead_to_the_commit_that_is_built(monkeypatch):
    monkeypatch.setattr(run_box, "commit", lambda: "abc")
    links = run_box.repository_links(URL + "/", "notebooks/six-examples.py", "six-examples")
    assert links == {
        "source at this commit": f"{URL}/blob/abc/notebooks/six-examples.py",
        "open in Colab": "https://colab.research.google.com/github/who/what/blob/abc/book/published/six-examples.ipynb",
        "open in Binder": "https://mybinder.org/v2/gh/who/what/abc?urlpath=lab/tree/book/published/six-examples.ipynb",
    }


def test_only_what_stands_alone_opens_elsewhere(monkeypatch):
    def links(url=URL, **entry):
        monkeypatch.setitem(run_box.RUNS, "first", SimpleNamespace(**entry))
        return [name.removeprefix("open in ") for name in run_box.repository_links(url, "notebooks/one.py", "first")]

    assert links(stands_alone=True, after=[]) == ["source at this commit", "Colab", "Binder"]
    assert links(stands_alone=False, after=[]) == ["source at this commit", "Binder"]
    assert links(stands_alone=False, after=["two"]) == ["source at this commit"]
    assert links(url="https://gitlab.com/who/what", stands_alone=True, after=[]) == ["source at this commit"]
    assert links(url="") == []


def test_the_commit_is_that_of_the_checkout_and_head_where_there_is_none(tmp_path):
    assert re.fullmatch("[0-9a-f]{40}|HEAD", run_box.commit())
    assert run_box.commit(tmp_path) == "HEAD"


def test_the_box_stands_under_the_title_of_notebooks_alone(tmp_path):
    given = {}

    def render(template, values):
        given[template] = values
        return "<div>box</div>"

    app = SimpleNamespace(
        outdir=tmp_path,
        config=SimpleNamespace(html_theme_options={"repository_url": URL}),
        builder=SimpleNamespace(templates=SimpleNamespace(render=render)),
    )
    for page in ("index", "notebooks/no-such-run", "api/six-examples"):
        context = {"body": "<h1>A</h1><p>", "pathto": str}
        run_box.add_run_box(app, page, "page.html", context, None)
        assert context["body"] == "<h1>A</h1><p>" and not given
    run_box.add_run_box(app, "notebooks/six-examples", "page.html", context, None)
    assert context["body"] == "<h1>A</h1><div>box</div><p>"
    assert given["run-box.html"]["run"] == "six-examples" and given["run-box.html"]["pathto"] is str
    assert "open in Colab" in given["run-box.html"]["links"]
    copy = tmp_path / "_sources/notebooks/six-examples.py"
    assert copy.read_bytes() == (ROOT / "notebooks/six-examples.py").read_bytes()

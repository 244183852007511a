"""What the prose pages say about the rest of the repository is so."""

import functools
import re

import pytest
import yaml

from calib.pages.runs import load_runs
from conftest import ROOT

NOTEBOOKS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("*.py")}
RUNS = load_runs(ROOT / "notebooks/runs.yaml")
SPOKEN = {"five": 5}


def page(name):
    return (ROOT / f"book/{name}.md").read_text(encoding="utf-8")


@functools.cache
def sources():
    """Text of everything that may write a message."""
    places = ("calib/**/*.py", "book/_ext/*.py", "book/_tools/*.py", "tests/conftest.py", "Snakefile", "Makefile")
    return "".join(path.read_text(encoding="utf-8") for place in places for path in ROOT.glob(place))


MESSAGES = re.findall(r":class: message\n(.*?)```", page("troubleshooting"), flags=re.DOTALL)


@pytest.mark.parametrize("message", [line for block in MESSAGES for line in block.splitlines()])
def test_a_message_of_the_troubleshooting_page_is_one_that_the_programs_write(message):
    text = sources()
    for piece in message.split("…"):
        assert piece.strip(" :") in text, piece


SECTION = re.compile(
    r"^\[\]\(notebooks/([\w-]+)\.ipynb\).*\n: (\d+) minutes to read, (\d+) exercises", flags=re.MULTILINE
)
TEACHING = SECTION.findall(page("teach"))


def test_the_teaching_page_has_sections_that_are_there():
    taught = {RUNS[run].notebook for run, _, _ in TEACHING}
    assert taught and taught <= set(NOTEBOOKS)


@pytest.mark.parametrize(("run", "minutes", "exercises"), TEACHING)
def test_the_teaching_page_has_the_time_and_the_exercises_of_the_notebook(run, minutes, exercises):
    text = NOTEBOOKS[RUNS[run].notebook]
    spoken = re.search(r"\*\*Time\*\* about (\w+) minutes", text)[1]
    assert str(SPOKEN.get(spoken, spoken)) == minutes
    assert str(len(re.findall(r"^# \d\. ", text.split("## Exercises")[1], flags=re.MULTILINE))) == exercises


RUN = re.compile(r"^make run .*$", flags=re.MULTILINE)
COMMANDS = [command for name in ("teach", "re-execute", "raw-data") for command in RUN.findall(page(name))]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_to_try_names_a_notebook_and_its_parameters(command):
    notebook, assignments = re.match(r'make run NB=(\S+) P="(.*?)"', command).groups()
    cell = NOTEBOOKS[notebook].split('tags=["parameters"]')[1].split("# %%")[0]
    for assignment in assignments.split():
        name, value = assignment.split("=")
        assert re.search(rf"^{name} = ", cell, flags=re.MULTILINE) and yaml.safe_load(value) is not None


def test_the_citation_is_that_of_the_citation_file():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    for value in (cited["title"], cited["version"], cited["license"], cited["authors"][0]["name"]):
        assert f"{{{value}}}" in page("cite")

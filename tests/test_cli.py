"""The command line: columns by name, errors in one line that say where."""

import subprocess

import pytest
from typer.testing import CliRunner

from calib.__main__ import app
from conftest import ROOT

GOOD = "label,logit_0,logit_1\n0,6,0\n0,6,0\n0,6,0\n1,6,0\n"


@pytest.fixture
def fit(tmp_path):
    def run(content, *options):
        path = tmp_path / "predictions.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return CliRunner().invoke(app, ["fit", str(path), *options])

    return run


def test_a_fit_reports_temperature_and_scores(fit):
    result = fit(GOOD)
    assert result.exit_code == 0
    assert "n = 4, classes = 2, accuracy = 0.7500" in result.output
    assert "temperature = 5.46144" in result.output
    assert "fitted     0.56234" in result.output


@pytest.mark.parametrize(
    "content",
    [
        "logit_1,label,logit_0\n0,0,6\n0,0,6\n0,0,6\n0,1,6\n",
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n"),
        "idx," + GOOD.replace("\n0", "\n9,0").replace("\n1", "\n9,1"),
    ],
    ids=["columns in another order", "byte order mark", "CRLF", "further columns"],
)
def test_columns_are_taken_by_name(fit, content):
    assert fit(content).output == fit(GOOD).output


def test_twelve_columns_sorted_as_text_are_taken_by_number(fit):
    names = [f"logit_{k}" for k in range(12)]
    numeric = ",".join(["label", *names]) + "\n" + "11," + ",".join(map(str, range(12))) + "\n3," + "5," * 11 + "0\n"
    header, *rows = [dict(zip(["label", *names], line.split(","))) for line in numeric.splitlines()]
    as_text = ["label", *sorted(names)]
    shuffled = "\n".join(",".join(row[name] for name in as_text) for row in (header, *rows)) + "\n"
    assert fit(shuffled).output == fit(numeric).output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected columns label, logit_0, logit_1"),
        ("label,logit_0\n0,1\n", "expected columns label, logit_0, logit_1"),
        ("label,logit_1,logit_2\n0,1,2\n", "without gaps"),
        ("label;logit_0;logit_1\n0;1;2\n", "without gaps, found ['label;logit_0;logit_1']"),
        ("label,logit_0,logit_1\n", "expected at least one row, found none"),
        (GOOD + "0,six,0\n", "expected a number in column logit_0, found 'six' in line 6"),
        (GOOD + "0.5,6,0\n", "expected a whole number in column label, found '0.5' in line 6"),
        (GOOD + "0,6\n", "expected a number in column logit_1, found None in line 6"),
        (GOOD + "2,6,0\n", "labels: expected values from 0 to 1, got 2 in row 4"),
        (GOOD + "0,nan,0\n", "logits: expected finite values"),
        (b"\xff\xfe\x00", "predictions.csv"),
    ],
)
def test_a_bad_table_is_an_error_in_one_line(fit, content, message):
    result = fit(content)
    assert result.exit_code == 1 and result.output.startswith("error: ") and message in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("options", [["--bins", "0"], ["--objective", "mse"]])
def test_bad_options_are_refused(fit, options):
    result = fit(GOOD, *options)
    assert result.exit_code != 0 and "Traceback" not in result.output


@pytest.mark.parametrize("parameter", ["edges=[0, 0.5", "edges"])
def test_a_parameter_that_is_no_assignment_of_yaml_is_refused(tmp_path, parameter):
    arguments = ["run", "notebooks/six-examples.py", "-o", str(tmp_path / "page.ipynb"), "-p", parameter]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1 and result.output.startswith("error: parameter")


def test_a_missing_notebook_is_named(tmp_path):
    result = CliRunner().invoke(app, ["run", "absent.py", "-o", str(tmp_path / "page.ipynb")])
    assert result.exit_code == 1 and "absent.py" in result.output and "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("5", 5),
        ("[0,0.5,1]", [0, 0.5, 1]),
        ("[paper,clean]", ["paper", "clean"]),
        ("true", True),
        ("null", None),
        ("yes", "yes"),
        ("010", "010"),
        ("12:30", "12:30"),
        ("2026-01-02", "2026-01-02"),
        (".nan", ".nan"),
        ("NaN", "NaN"),
        ("!!binary aGVsbG8=", "aGVsbG8="),
    ],
)
def test_a_parameter_is_what_json_reads_and_else_text(text, value):
    from calib.__main__ import _parameters

    found = _parameters([f"x={text}"])["x"]
    assert found == value and type(found) is type(value)


def test_a_parameter_given_twice_is_an_error(tmp_path):
    (tmp_path / "one.py").write_text("")
    result = CliRunner().invoke(app, ["run", str(tmp_path / "one.py"), "-o", "x.ipynb", "--parameters", "a=1 a=2"])
    assert result.exit_code == 1 and "parameter a: expected it once, got it twice" in result.output


def test_make_expands_nothing_that_the_caller_typed(tmp_path):
    target = tmp_path / "made"
    command = ["make", "run", f"NB=$(shell touch {target})", f"P=x=$(shell touch {target})"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and "there is no such notebook" in done.stderr
    assert not target.exists()

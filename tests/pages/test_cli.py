"""The command line: columns by name, errors in one line that say where."""

import re
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from calib.__main__ import app
from calib.pages.parameters import read
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
        "text," + GOOD.replace("\n0", "\na\u2028b,0").replace("\n1", '\n"c, ""d""\nand on",1'),
        GOOD.replace("\n", "\n\n"),
    ],
    ids=["in another order", "byte order mark", "CRLF", "further columns", "texts with line ends", "blank lines"],
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
        ("", "expected a header with label, logit_0, logit_1"),
        ("label,logit_0\n0,1\n", "expected columns label, logit_0, logit_1"),
        ("label,logit_1,logit_2\n0,1,2\n", "without gaps"),
        ("label;logit_0;logit_1\n0;1;2\n", "without gaps, found ['label;logit_0;logit_1']"),
        ("label,logit_0,logit_1\n", "expected at least one row, found none"),
        (GOOD + "0,six,0\n", "expected a number in column logit_0, found 'six' in line 6"),
        (GOOD + "0.5,6,0\n", "expected a whole number in column label, found '0.5' in line 6"),
        (GOOD + "0,6\n", "expected 3 fields, as in the header, found 2 in line 6"),
        (GOOD + "0,6,0,1\n", "expected 3 fields, as in the header, found 4 in line 6"),
        (GOOD + "\n\n0,six,0\n", "found 'six' in line 8"),
        (GOOD + "0,2_5,0\n", "expected a number in column logit_0, found '2_5' in line 6"),
        (GOOD + "1_0,2,0\n", "expected a whole number in column label, found '1_0' in line 6"),
        (GOOD + "0,\u0661,0\n", "expected a number in column logit_0"),
        (GOOD.replace("label", "label,label", 1), "expected each column once, found 'label' 2 times in line 1"),
        (GOOD + '0,"6,0\n0,6,0\n', "unexpected end of data in the row that begins in line 6"),
        (GOOD + '0,"6"x,0\n', "in the row that begins in line 6"),
        ('text,label,logit_0,logit_1\n"two\nlines",0,6,0\na,0,six,0\n', "found 'six' in line 4"),
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


@pytest.mark.parametrize("parameter", ["edges=[0, 0.5", "edges", "edges=" + "[" * 5000 + "]" * 5000])
def test_a_parameter_that_is_no_assignment_of_yaml_is_refused(tmp_path, parameter):
    arguments = ["run", "notebooks/six-examples.py", "-o", str(tmp_path / "page.ipynb"), "-p", parameter]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1 and "six-examples.py: parameter" in result.output


def test_a_missing_notebook_is_named(tmp_path):
    result = CliRunner().invoke(app, ["run", "absent.py", "-o", str(tmp_path / "page.ipynb")])
    assert result.exit_code == 1 and "absent.py" in result.output and "Traceback" not in result.output


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        (2.0, "1e3", 1000.0),
        (2.0, ".5", 0.5),
        (2.0, "3.", 3.0),
        (2.0, "+3", 3.0),
        (2, "+3", 3),
        (2, "007", 7),
        ([0, 0.25, 1], "[0,.5,1]", [0.0, 0.5, 1.0]),
        ([5, 10], "[3]", [3]),
        (["paper"], "[paper,clean]", ["paper", "clean"]),
        ([["a", 0]], "[[b,1],[c,2]]", [["b", 1], ["c", 2]]),
        (False, "true", True),
        (True, "False", False),
        (None, "null", None),
        (None, "None", None),
        (None, "folder", "folder"),
        ("key", "yes", "yes"),
        ("key", "12", "12"),
        ("key", "010", "010"),
        ("key", "12:30", "12:30"),
        ("key", "a: b", "a: b"),
        ("key", '"quoted"', "quoted"),
        ("key", "!!binary aGVsbG8=", "aGVsbG8="),
    ],
)
def test_a_parameter_has_the_type_of_its_default(default, text, value):
    found = read([f"x={text}"], {"x": default})["x"]
    assert found == value and type(found) is type(value)
    if isinstance(value, list):
        assert list(map(type, found)) == list(map(type, value))


@pytest.mark.parametrize(
    ("default", "text", "expected"),
    [
        (20, "zehn", "a whole number such as 20, got 'zehn'"),
        (20, "3.", "a whole number"),
        (20, "2_5", "a whole number"),
        (20, "None", "a whole number"),
        (20, "true", "a whole number"),
        (20, "[1]", "one value such as 20"),
        (2.0, "nan", "a number such as 2.0, got 'nan'"),
        (2.0, "inf", "a number"),
        (2.0, "1_0", "a number"),
        (True, "1", "true or false, got '1'"),
        ([1, 2], "3", r"a list such as \[1,2\], got '3'"),
        ([1, 2], "[1,x]", "a whole number such as 2, got 'x'"),
    ],
)
def test_a_parameter_of_another_type_is_refused_in_one_line(default, text, expected):
    with pytest.raises(ValueError, match=f"^parameter x: expected {expected}"):
        read([f"x={text}"], {"x": default})


def test_a_wrong_type_is_one_line_on_the_command_line(tmp_path):
    notebook = str(ROOT / "notebooks/six-examples.py")
    result = CliRunner().invoke(app, ["run", notebook, "-o", str(tmp_path / "page.ipynb"), "-p", "max_bins=zehn"])
    assert result.exit_code == 1 and len(result.output.strip().splitlines()) == 1
    assert "parameter max_bins: expected a whole number such as 20, got 'zehn'" in result.output


@pytest.mark.parametrize(("name", "said"), [("", "NB is missing"), ("absent.py", "notebooks/absent.py: there is no")])
def test_make_run_says_which_notebook_it_wants(name, said):
    done = subprocess.run(["make", "run", f"NB={name}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and said in done.stderr and "six-examples" in done.stderr and "Traceback" not in done.stderr


def test_a_notebook_that_reads_numbers_which_no_build_left_says_so_in_one_line(tmp_path):
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns("ladder"))
    notebook = str(tmp_path / "notebooks/soft-label-gap-summary.py")
    result = CliRunner().invoke(app, ["run", notebook, "-o", str(tmp_path / "page.ipynb")])
    assert result.exit_code == 1 and len(result.output.strip().splitlines()) == 1
    assert "and _build/results/soft-label-gap.json is not there; run `make book` first" in result.output


def test_a_folder_with_a_colon_in_its_path_is_refused_by_name(tmp_path):
    folder = tmp_path / "a:b"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    done = subprocess.run(["make", "book"], cwd=folder, capture_output=True, text=True)
    assert done.returncode and "a:b, which no PATH can hold; move it" in done.stderr and not list(folder.glob(".venv"))


def test_a_parameter_given_twice_is_an_error(tmp_path):
    (tmp_path / "one.py").write_text('# %% tags=["parameters"]\na = 0\n')
    result = CliRunner().invoke(app, ["run", str(tmp_path / "one.py"), "-o", "x.ipynb", "--parameters", "a=1 a=2"])
    assert result.exit_code == 1 and "parameter a: expected it once, got it twice" in result.output


def test_make_expands_nothing_that_the_caller_typed(tmp_path):
    target = tmp_path / "made"
    command = ["make", "run", f"NB=$(shell touch {target})", f"P=x=$(shell touch {target})"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and "there is no such notebook" in done.stderr
    assert not target.exists()


@pytest.mark.parametrize(
    ("absent", "arguments", "extra"),
    [
        ("jupytext", ["run", str(ROOT / "notebooks/six-examples.py"), "-o", "page.ipynb"], "book"),
        ("yaml", ["verify"], "book"),
        ("yaml", ["publish"], "book"),
        (
            "nbformat",
            ["published", "a.ipynb", "-o", "b.ipynb", "--numbers", "n", "--status", "s", "--reason", "r"],
            "book",
        ),
        ("huggingface_hub", ["sst2", "out.csv"], "models"),
        ("torch", ["train", "vision", "-o", "run.npz"], "models"),
        ("torch", ["predict", "run.pt", "-o", "run.npz"], "models"),
    ],
)
def test_a_missing_package_is_one_line_that_names_the_extra(tmp_path, absent, arguments, extra):
    """As after a plain install; a name on the package index belongs to others, so none is suggested."""
    code = f"import sys; sys.modules[{absent!r}] = None; from calib.__main__ import app; app()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert f"pip install '.[{extra}]'" in done.stderr and absent in done.stderr


def test_nothing_suggests_an_install_by_a_name_of_the_index():
    texts = [path.read_text(encoding="utf-8") for kind in ("py", "md") for path in ROOT.glob(f"[bcnt]*/**/*.{kind}")]
    assert len(texts) > 100
    assert not [line for text in texts for line in text.splitlines() if re.search(r"pip install '?\"?calib[^{]", line)]

"""What must be touched to change the book: each row of the page that says so, made in a copy, counted and built."""

import hashlib
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import yaml

from calib.data.registry import data_folder, status
from calib.pages import record as results
from conftest import ROOT, build

PAGE = (ROOT / "book/how-it-is-made.md").read_text(encoding="utf-8")
PLACES = {
    what: int(count) for what, count in re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+) \|$", PAGE, flags=re.MULTILINE)
}
MADE = ("_build", "book/notebooks", ".snakemake", "predictions", "data")


def files(book):
    """Content of every file that a person might have touched, by place: what is made together counts once."""
    found = {}
    for path in sorted(book.rglob("*")):
        name = path.relative_to(book).as_posix()
        if path.is_file() and not name.startswith(MADE) and "__pycache__" not in name:
            place = "notebooks/ladder/predictions" if name.startswith("notebooks/ladder/predictions") else name
            found.setdefault(place, hashlib.sha256()).update(path.read_bytes())
    return {place: content.hexdigest() for place, content in found.items()}


@pytest.fixture
def book(small_book):
    """A small book with the chapter on the gap, on the studies that a test names."""
    (small_book / "tests/core").mkdir(parents=True)
    (small_book / "notebooks/ladder/predictions").mkdir(parents=True)
    for name in (
        "notebooks/soft-label-gap.py",
        "notebooks/ladder/ladder.yaml",
        "book/api.md",
        "book/soft-label-gap.md",
    ):
        (small_book / name).write_bytes((ROOT / name).read_bytes())
    text = (small_book / "notebooks/soft-label-gap.py").read_text(encoding="utf-8")
    text = re.sub(
        r"\[\]\([^)]*\.(ipynb|md)\)", "a page", re.sub(r"\{cite:.\}`[^`]*`", "", text)
    )  # pages that are not here
    text = re.sub(r"^studies = \[.*?^\]", "studies = [\n]", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^trained = \[.*?^\]", "trained = [\n]", text, flags=re.MULTILINE | re.DOTALL)
    (small_book / "notebooks/soft-label-gap.py").write_text(text, encoding="utf-8")
    (small_book / "book/soft-label-gap.md").unlink()
    return small_book


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1, old
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def add_run(book, name, **entry):
    with (book / "notebooks/runs.yaml").open("a", encoding="utf-8") as file:
        yaml.safe_dump({name: entry}, file)


def touched(before, book):
    after = files(book)
    return sorted(place for place in {*before, *after} if before.get(place) != after.get(place))


def test_every_row_of_the_page_is_tested_here():
    assert len(PLACES) == 6 and sum(PLACES.values()) == 5 + 4 + 3 + 3 + 3 + 2


def test_a_chapter(small_book):
    before = files(small_book)
    (small_book / "notebooks/three.py").write_text(
        (small_book / "notebooks/two.py").read_text(encoding="utf-8").replace("two", "three"), encoding="utf-8"
    )
    add_run(small_book, "three", notebook="three")
    with (small_book / "_toc.yml").open("a", encoding="utf-8") as file:
        file.write("  - file: notebooks/three\n")
    assert len(touched(before, small_book)) == PLACES["a chapter"]
    build(small_book)
    assert "Its value is 4.50." in (small_book / "_build/html/notebooks/three.html").read_text(encoding="utf-8")


def test_a_chapter_is_taken_out(small_book):
    before = files(small_book)
    edit(small_book / "notebooks/runs.yaml", "two: {notebook: two}\n", "")
    edit(small_book / "_toc.yml", "  - file: notebooks/two\n", "")
    assert len(touched(before, small_book)) == PLACES["nothing, but take a chapter out"]
    build(small_book)
    assert not (small_book / "_build/html/notebooks/two.html").exists()


SET = '''"""A toy."""

import numpy as np

from calib.data.registry import read
from calib.data.sets.base import SoftLabelSet
from calib.predictions import Predictions


class Toy(SoftLabelSet):
    """Forty examples with five votes."""

    def _rows(self):
        return [list(map(float, line.split(","))) for line in read("toy/toy.csv").decode().splitlines()]

    def votes(self):
        return {f"toy-{i}": [int(v) for v in row[2:]] for i, row in enumerate(self._rows())}

    def predictions(self, model, seed):
        logits = np.array([row[:2] for row in self._rows()])
        validation = Predictions([f"other-{i}" for i in range(40)], logits, [0, 1] * 20, class_names=self.classes)
        return validation, {f"toy-{i}": row for i, row in enumerate(logits)}


SOFT_LABEL_SETS = (Toy("toy", "Toy", "vision", ("no", "yes")),)
'''
ENTRY = """
[sources.toy]
title = "A toy"
what = "forty examples"
licence = "none stated"
redistribution = "no permission is stated"
citation = "Toy 2026"
references = ["toy2026"]

[files."toy/toy.csv"]
source = "toy"
urls = ["https://example.org/toy.csv"]
size = {size}
sha256 = "{sha256}"
"""


def test_a_data_set_with_votes(book, tmp_path):
    rng = np.random.default_rng(0)
    rows = [[*rng.normal(size=2).round(3), v, 5 - v] for v in rng.integers(0, 6, 40).tolist()]
    content = "".join(",".join(map(str, row)) + "\n" for row in rows).encode()
    (tmp_path / "data/toy").mkdir(parents=True)
    (tmp_path / "data/toy/toy.csv").write_bytes(content)
    add_run(book, "soft-label-gap", notebook="soft-label-gap", parameters={"story": ["toy", "model", 0]})
    with (book / "_toc.yml").open("a", encoding="utf-8") as file:
        file.write("  - file: notebooks/soft-label-gap\n")
    before = files(book)
    (book / "calib/data/sets/toy.py").write_text(SET, encoding="utf-8")
    with (book / "calib/data/registry.toml").open("a", encoding="utf-8") as file:
        file.write(ENTRY.format(size=len(content), sha256=hashlib.sha256(content).hexdigest()))
    edit(book / "notebooks/runs.yaml", "  notebook: soft-label-gap\n", "  notebook: soft-label-gap\n  data: [toy/*]\n")
    edit(book / "notebooks/soft-label-gap.py", "studies = [\n", 'studies = [\n    ["toy", "model", 0],\n')
    with (book / "book/references.bib").open("a", encoding="utf-8") as file:
        file.write("@misc{toy2026,\n  author={Toy, A.},\n  title={A toy},\n  year={2026}\n}\n")
    assert len(touched(before, book)) == PLACES["a data set with votes"]
    build(book, CALIB_DATA=str(tmp_path / "data"))
    found = results.load(book / "_build/results.json")["gap/toy/model/0/paper"]
    assert found["n"] == 40 and found["n_overlap"] == 0
    assert "Toy with model" in (book / "_build/html/notebooks/soft-label-gap.html").read_text(encoding="utf-8")


@pytest.mark.data
@pytest.mark.skipif(status("cifar10/cifar10-jpeg.zip") != "ok", reason="the JPEG copies of CIFAR-10 are not there")
def test_a_trained_architecture(book):
    add_run(
        book,
        "soft-label-gap",
        notebook="soft-label-gap",
        data=["cifar10h/*", "cifar10/*_original_labels.npy"],
        reads=["notebooks/ladder/predictions/cifar10h/*"],
        parameters={"story": ["cifar10h", "resnet26", 1]},
    )
    with (book / "_toc.yml").open("a", encoding="utf-8") as file:
        file.write("  - file: notebooks/soft-label-gap\n")
    before = files(book)
    edit(book / "calib/models/architectures.py", '"resnet20": 20,', '"resnet20": 20, "resnet26": 26,')
    edit(
        book / "notebooks/ladder/ladder.yaml",
        "      resnet8: --model resnet8",
        "      resnet26: --model resnet26\n      resnet8: --model resnet8",
    )
    edit(book / "notebooks/soft-label-gap.py", "trained = [\n", 'trained = [\n    ["cifar10h", "resnet26", 1],\n')
    out = book / "notebooks/ladder/predictions/cifar10h/resnet26-1.npz"
    command = [
        sys.executable,
        "-m",
        "calib",
        "train",
        "vision",
        "--model",
        "resnet26",
        "--seed",
        "1",
        "--images",
        "jpeg",
        "--epochs",
        "1",
        "--limit",
        "300",
        "-o",
        str(out),
    ]
    environment = {**os.environ, "PYTHONPATH": str(book), "CALIB_DATA": str(data_folder())}
    subprocess.run(command, cwd=book, env=environment, check=True, capture_output=True)
    out.with_suffix(".pt").unlink()
    assert len(touched(before, book)) == PLACES["a trained architecture"]
    build(book, CALIB_DATA=str(data_folder()))
    assert results.load(book / "_build/results.json")["gap/cifar10h/resnet26/1/paper"]["images"] == "jpeg"
    assert "CIFAR-10H with ResNet-26" in (book / "_build/html/notebooks/soft-label-gap.html").read_text(
        encoding="utf-8"
    )


CALIBRATOR = '''"""A calibrator of a test."""


class Halving:
    """Divides logits by two.

    Examples
    --------
    >>> Halving().temperature_
    2.0
    """

    temperature_ = 2.0
'''


def test_a_calibrator(book):
    before = files(book)
    (book / "calib/halving.py").write_text(CALIBRATOR, encoding="utf-8")
    (book / "tests/core/test_halving.py").write_text(
        "from calib.halving import Halving\n\n\ndef test_it():\n    assert Halving().temperature_ == 2\n",
        encoding="utf-8",
    )
    edit(
        book / "book/api.md",
        "## calib.plots",
        "## calib.halving\n\n```{eval-rst}\n.. automodule:: calib.halving\n   :members:\n```\n\n## calib.plots",
    )
    assert len(touched(before, book)) == PLACES["a calibrator"]
    edit(book / "_toc.yml", "chapters:\n", "chapters:\n  - file: api\n")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\.(md|ipynb)\)", r"\1", (book / "book/api.md").read_text(encoding="utf-8"))
    (book / "book/api.md").write_text(text, encoding="utf-8")
    build(book)
    assert "Divides logits by two." in (book / "_build/html/api.html").read_text(encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(book)}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "tests/core/test_halving.py"],
        cwd=book,
        env=environment,
        check=True,
        capture_output=True,
    )


def test_a_score_in_the_study_of_the_gap(book, tmp_path):
    test_a_data_set_with_votes(book, tmp_path)
    before = files(book)
    with (book / "calib/scores.py").open("a", encoding="utf-8") as file:
        file.write(
            '\n\ndef hits(probabilities, targets):\n    """Mean target at the largest probability."""\n    return float(targets[range(len(targets)), probabilities.argmax(axis=1)].mean())\n'
        )
    edit(
        book / "calib/softlabels/gap.py",
        "from calib.scores import accuracy, brier",
        "from calib.scores import accuracy, brier, hits",
    )
    edit(
        book / "calib/softlabels/gap.py",
        '        result[f"brier_{name}"]',
        '        result[f"hits_{name}"] = hits(probabilities, second.distributions)\n        result[f"brier_{name}"]',
    )
    edit(
        book / "notebooks/soft-label-gap.py",
        '"accuracy": (".3f", "Accuracy")',
        '"accuracy": (".3f", "Accuracy"), "hits_oracle": (".3f", "Hits")',
    )
    assert len(touched(before, book)) == PLACES["a score in the study of the gap"]
    build(book, CALIB_DATA=str(tmp_path / "data"))
    assert 0 < results.load(book / "_build/results.json")["gap/toy/model/0/paper"]["hits_oracle"] < 1
    assert "Hits" in (book / "_build/html/notebooks/soft-label-gap.html").read_text(encoding="utf-8")

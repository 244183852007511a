"""Training: whole or not at all, killed and resumed is straight through, checkpoints are read and never run."""

import errno
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from small_run import SMALL, finished, needs_images  # noqa: F401
from typer.testing import CliRunner

from calib import Predictions, nll
from calib.__main__ import app
from calib.data import DataUnavailable, cifar10, load_soft_labels
from calib.data.examples import load_examples, load_record, save_examples
from calib.data.registry import REGISTRY
from calib.models import checkpoint, images, resnet, vision
from calib.models.checkpoint import CheckpointError
from conftest import killed_at

pytestmark = pytest.mark.usefixtures("one_thread")


@needs_images
def test_a_run_writes_logits_and_a_record_and_nothing_else(finished):
    out, record = finished
    splits = load_examples(out)
    assert {name: len(part) for name, part in splits.items()} == {"validation": 60, "test": 300}
    with np.load(out) as file:
        assert sorted(file) == ["class_names", "ids", "logits", "split"] and file["logits"].dtype == np.float32
    assert record == json.loads(out.with_suffix(".json").read_text())
    assert [row["epoch"] for row in record["epochs"]] == [1, 2, 3]
    assert record["epochs"][-1]["loss"] < record["epochs"][0]["loss"]
    assert record["recipe"]["images"] == record["images"] == "jpeg", "the copies are named"
    assert record["data"][images.ARCHIVE] == REGISTRY[images.ARCHIVE].sha256
    assert record["hardware"]["threads"] == 1 and record["versions"]["torch"] in torch.__version__
    labels = load_soft_labels("cifar10h", "resnet110", 0).soft.labels[:300]
    assert record["test"]["nll"] == pytest.approx(nll(splits["test"].logits, labels))
    assert not list(out.parent.glob("*.part"))


@needs_images
def test_a_run_says_what_is_left_and_leaves_the_random_numbers_of_the_caller(tmp_path, caplog):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with caplog.at_level("INFO", logger="calib"):
        vision.train(tmp_path / "run.npz", **{**SMALL, "limit": 50, "epochs": 2})
    assert torch.equal(torch.get_rng_state(), before)
    assert [message.split(":")[0] for message in caplog.messages[::2]] == ["epoch 1", "epoch 2"]
    assert caplog.messages[-1] == "about 0 minutes left"


KILLED = """
import os, signal, sys, torch
torch.set_num_threads(1)
from calib.models import checkpoint, vision
save = checkpoint.save
def save_and_die(path, recipe, progress, parts):
    save(path, recipe, progress, parts)
    if progress["epoch"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save = save_and_die
vision.train(sys.argv[1], **eval(sys.argv[2]))
"""


@needs_images
def test_killed_and_resumed_is_straight_through(finished, tmp_path):
    straight, _ = finished
    out = tmp_path / "run.npz"
    killed = subprocess.run([sys.executable, "-c", KILLED, out, repr(SMALL)])
    assert killed.returncode == -signal.SIGKILL and not out.exists()
    assert checkpoint.read(out.with_suffix(".pt"))["progress"]["epoch"] == 2
    record = vision.train(out, **SMALL)
    for name, part in load_examples(straight).items():
        np.testing.assert_array_equal(load_examples(out)[name].logits, part.logits)
    assert [row["epoch"] for row in record["epochs"]] == [1, 2, 3]
    first, again = torch.load(straight.with_suffix(".pt")), torch.load(out.with_suffix(".pt"))
    for name, weight in first["states"]["network"].items():
        assert torch.equal(weight, again["states"]["network"][name]), name


@needs_images
def test_predicting_from_the_checkpoint_gives_the_same_logits(finished, tmp_path):
    out, _ = finished
    result = CliRunner().invoke(app, ["predict", str(out.with_suffix(".pt")), "-o", str(tmp_path / "again.npz")])
    assert result.exit_code == 0 and "test: n = 300, accuracy = " in result.output
    for name, part in load_examples(out).items():
        np.testing.assert_array_equal(load_examples(tmp_path / "again.npz")[name].logits, part.logits)
    (tmp_path / "weights.ckpt").write_bytes(out.with_suffix(".pt").read_bytes())
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "weights.ckpt"), "-o", str(tmp_path / "other.npz")])
    assert result.exit_code == 0, "whatever its name"
    vision.predict(out.with_suffix(".pt"), tmp_path / "augmented.npz", augment_validation=True)
    augmented, plain = load_examples(tmp_path / "augmented.npz"), load_examples(out)
    assert not np.array_equal(augmented["validation"].logits, plain["validation"].logits)
    np.testing.assert_array_equal(augmented["test"].logits, plain["test"].logits)


@needs_images
def test_another_recipe_is_refused_by_name(finished):
    out, _ = finished
    with pytest.raises(CheckpointError, match=r"run.pt: a checkpoint of another run: seed is 42, expected 123; go on"):
        vision.train(out, **SMALL, seed=123)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1000])


RECIPE = {"task": "vision", "epochs": 2, "seed": 1}


def resave(path, **changes):
    """Save a checkpoint again with other content, and the digest of its recipe as it should be."""
    content = torch.load(path) | changes
    torch.save(content | {"recipe_sha256": checkpoint.digest(content["recipe"])}, path)


class Payload:
    def __reduce__(self):
        return os.system, ("touch executed",)


def flip_one_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip_one_bit, "checksum of .* differs"),
        (truncate, "found a damaged or foreign file of"),
        (lambda path: path.write_bytes(b""), "found a damaged or foreign file of 0 bytes"),
        (lambda path: path.write_text("<html>not found</html>"), "found a damaged or foreign file of"),
        (lambda path: torch.save(Payload(), path), "found a damaged or foreign file of"),
        (lambda path: torch.save({"state_dict": {}}, path), r"found \['state_dict'\]"),
        (lambda path: torch.save([1, 2], path), "found list"),
        (lambda path: path.unlink(), "not found; make it with `calib train`"),
        (lambda path: torch.save({**torch.load(path), "recipe": {}}, path), "its recipe is not the one"),
        (lambda path: resave(path, recipe={"epochs": 2}), "expected a recipe with epochs, task, found"),
        (lambda path: resave(path, recipe=[1]), "expected a recipe with epochs, task, found"),
        (lambda path: resave(path, progress={}), "expected a progress with epoch, history, found"),
    ],
    ids=[
        *("one bit", "truncated", "empty", "web page", "code", "weights alone", "list", "missing", "recipe changed"),
        *("no task", "recipe a list", "no progress"),
    ],
)
def test_a_damaged_or_foreign_checkpoint_is_refused(tmp_path, monkeypatch, damage, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.pt"
    checkpoint.save(path, RECIPE, {"epoch": 0, "history": []}, {"network": resnet.build("resnet8")})
    damage(path)
    with pytest.raises(CheckpointError, match=f"run.pt: .*{message}"):
        checkpoint.read(path)
    result = CliRunner().invoke(app, ["predict", str(path), "-o", str(tmp_path / "out.npz")])
    assert result.exit_code == 1 and result.output.startswith("error: ") and "Traceback" not in result.output
    assert not (tmp_path / "executed").exists()


def test_a_failed_save_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path, parts = tmp_path / "run.pt", {"network": resnet.build("resnet8")}
    checkpoint.save(path, RECIPE, {"epoch": 1, "history": []}, parts)

    def broken(content, file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(OSError, match="No space left on device: '.*run.pt'"):
        checkpoint.save(path, RECIPE, {"epoch": 2, "history": []}, parts)
    assert checkpoint.read(path)["progress"]["epoch"] == 1 and [p.name for p in tmp_path.iterdir()] == ["run.pt"]


def test_weights_of_another_network_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    recipe, progress = {"task": "cifar10h", "epochs": 1}, {"epoch": 1, "history": []}
    checkpoint.save(path, recipe, progress, {"network": resnet.build("resnet8")})
    with pytest.raises(CheckpointError, match=r"run.pt: its weights do not fit the network that its recipe names \("):
        checkpoint.resume(path, recipe, {"network": resnet.build("resnet14")})


def test_a_checkpoint_on_a_full_disk_says_so(small_disk):
    with pytest.raises(OSError, match="No space left on device: '.*run.pt'"):
        checkpoint.save(small_disk / "run.pt", {}, {}, {"network": resnet.build("resnet8")})
    assert not list(small_disk.iterdir())


def save_run(path, run):
    logits = np.random.default_rng(run).normal(size=(1000, 10))
    predictions = Predictions(range(1000), logits, class_names=cifar10.CIFAR10_CLASSES)
    save_examples(path, {"test": predictions}, {"recipe": {"run": run}})


def run_of(path):
    """The run whose logits are in a file, if it is whole, which must be that of the record beside it."""
    if not path.exists():
        return None
    run = load_record(path.with_suffix(".json"))["recipe"]["run"]
    expected = np.random.default_rng(run).normal(size=(1000, 10)).astype(np.float32)
    np.testing.assert_array_equal(load_examples(path)["test"].logits, expected)
    return run


def test_on_a_full_disk_logits_and_record_stay_those_of_one_run(small_disk):
    path = small_disk / "run.npz"
    save_run(path, 1)
    (small_disk / "filler").write_bytes(b"0" * 40_000)
    with pytest.raises(OSError, match="No space left on device: '.*run.npz'"):
        save_run(path, 2)
    assert run_of(path) == 1 and len(list(small_disk.iterdir())) == 3


def test_killed_at_any_access_to_files_logits_and_record_are_of_one_run(tmp_path):
    path, found, ended = tmp_path / "run.npz", [], False
    while not ended:
        save_run(path, 1)
        ended = killed_at(len(found) + 1, save_run, path, 2)
        found.append(run_of(path))
    assert found[0] == 1 and found[-1] == 2 and len(found) > 4


def test_damaged_logits_are_refused_or_the_same(tmp_path):
    path, random = tmp_path / "run.npz", np.random.default_rng(0)
    save_run(path, 1)
    whole, refused = path.read_bytes(), 0
    for _ in range(300):
        content = bytearray(whole)
        content[random.integers(len(whole))] ^= 1 << random.integers(8)
        path.write_bytes(content)
        try:
            run_of(path)
        except DataUnavailable:
            refused += 1
    assert refused > 200


def test_a_save_replaces_the_old_file_and_never_writes_into_it(tmp_path):
    path, parts = tmp_path / "run.pt", {"network": resnet.build("resnet8")}
    checkpoint.save(path, RECIPE, {"epoch": 1, "history": []}, parts)
    os.link(path, tmp_path / "old.pt")
    checkpoint.save(path, RECIPE, {"epoch": 2, "history": []}, parts)
    assert [checkpoint.read(tmp_path / name)["progress"]["epoch"] for name in ("old.pt", "run.pt")] == [1, 2]

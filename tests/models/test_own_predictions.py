"""Predictions of our own: from a training to the study of the gap, and through the command line."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from small_run import finished, needs_images  # noqa: F401
from typer.testing import CliRunner

from calib import Predictions, accuracy, nll
from calib.__main__ import app
from calib.data import DataUnavailable, cifar10, examples, load_soft_labels
from calib.data.examples import load_examples, load_record, save_examples
from calib.data.pairs import NLI_CLASSES
from calib.data.registry import data_folder, status
from calib.models import checkpoint, images, vision
from calib.models.checkpoint import CheckpointError
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("one_thread")


def test_an_archive_that_unpacks_to_more_than_any_of_ours_is_refused_before_it_is_read(tmp_path, monkeypatch):
    assert examples.LARGEST <= 1_000_000_000
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for field in examples.FIELDS:
            archive.writestr(f"{field}.npy", bytes(30_000_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 200_000
    monkeypatch.setattr(examples, "LARGEST", 100_000_000)
    monkeypatch.setattr(np, "load", None)  # nothing is read
    with pytest.raises(DataUnavailable, match="120,000,000 bytes of arrays, where 100,000,000 are the most"):
        load_examples(tmp_path / "bomb.npz")


@needs_images
@pytest.mark.data
def test_own_predictions_feed_the_gap_study(finished, tmp_path):
    out, record = finished
    with pytest.raises(DataUnavailable, match="resnet8-42.npz: not found; make it with `calib train`"):
        load_soft_labels("cifar10h", "resnet8", 42, tmp_path)
    (tmp_path / "cifar10h").mkdir()
    (tmp_path / "cifar10h/resnet8-42.npz").write_bytes(out.read_bytes())
    data = load_soft_labels("cifar10h", "resnet8", 42, tmp_path)
    assert len(data.soft) == 300 and data.n_missing == 9_700
    published = load_soft_labels("cifar10h", "resnet110", 0).soft
    assert (
        np.array_equal(data.soft.votes, published.votes[:300])
        and data.soft.ids.tolist() == published.ids[:300].tolist()
    )
    accuracy = (data.validation.logits.argmax(axis=1) == data.validation.labels).mean()
    assert accuracy == pytest.approx(record["validation"]["accuracy"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "tpu"], "device: expected one that torch can use"),
        (["-o", "run"], "output: expected a name that ends in .npz, got run"),
        (["-o", "folder.npz"], "folder.npz: expected the name of a file to write, found a folder"),
        (["--checkpoint", "folder.npz"], "folder.npz: expected the name of a file to write, found a folder"),
        (["-o", "run.npz", "--checkpoint", "./run.npz"], "checkpoint: expected another file than the logits"),
        (["-o", "/proc/calib/run.npz"], "/proc/calib"),
    ],
)
def test_the_command_line_says_what_is_wrong_in_one_line(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.npz").mkdir()
    result = CliRunner().invoke(app, ["train", "vision", "-o", str(tmp_path / "run.npz"), "--limit", "10", *options])
    assert result.exit_code == 1 and result.output.startswith("error: ") and message in result.output
    assert [file.name for file in tmp_path.iterdir()] == ["folder.npz"], "said before the training"


@pytest.mark.parametrize("option", ["--model", "--images", "--precision"])
def test_an_unknown_choice_names_the_option_and_the_choices(tmp_path, option):
    result = CliRunner().invoke(app, ["train", "vision", "-o", str(tmp_path / "run.npz"), option, "png"])
    assert result.exit_code == 2 and f"'{option}'" in result.output and "png" in result.output


@needs_images
def test_an_unfinished_training_is_not_predicted_from(finished, tmp_path):
    content = checkpoint.read(finished[0].with_suffix(".pt"))
    content["progress"]["epoch"] = 2
    torch.save(content, tmp_path / "begun.pt")
    with pytest.raises(CheckpointError, match=r"begun.pt: trained for 2 of 3 epochs; go on"):
        vision.predict(tmp_path / "begun.pt", tmp_path / "run.npz")
    assert not (tmp_path / "run.npz").exists()


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(vision, "load_images", interrupted)
    result = CliRunner().invoke(app, ["train", "vision", "-o", str(tmp_path / "run.npz")])
    assert result.exit_code == 130 and result.output.startswith("interrupted; what the checkpoint holds is kept")


def own(folder, **changed):
    """A small file of ours where the study of the gap looks for it, changed."""
    splits = {"validation": [f"jpeg-{i}" for i in range(20)], "test": [f"test-{i}" for i in range(30)]}
    fields = {
        "ids": np.array([name for names in splits.values() for name in names]),
        "logits": np.random.default_rng(0).normal(size=(50, 10)).astype(np.float32),
        "split": np.repeat(list(splits), [20, 30]),
        "class_names": np.array(cifar10.CIFAR10_CLASSES),
    }
    (folder / "cifar10h").mkdir()
    fields |= {name: change(fields[name]) for name, change in changed.items()}
    np.savez(folder / "cifar10h/own-1.npz", **fields)
    return fields["logits"]


@pytest.mark.data
def test_own_columns_are_put_in_order_by_name(tmp_path):
    logits = own(tmp_path, class_names=lambda names: names[::-1])
    data = load_soft_labels("cifar10h", "own", 1, tmp_path)
    np.testing.assert_array_equal(data.validation.logits, logits[:20, ::-1])
    np.testing.assert_array_equal(data.soft.logits, logits[20:, ::-1])
    assert data.soft.class_names == cifar10.CIFAR10_CLASSES


@pytest.mark.data
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"class_names": lambda names: [f"LABEL_{i}" for i in range(10)]}, "names: expected the classes"),
        ({"ids": lambda ids: np.where(ids == "test-7", "test-x", ids)}, "1 of 30 soft-labelled items have no votes"),
        ({"ids": lambda ids: np.where(ids == "jpeg-7", "jpeg-50000", ids)}, "from 0 to 49999, got 'jpeg-50000'"),
        ({"ids": lambda ids: np.where(ids == "jpeg-7", "jpeg--7", ids)}, "from 0 to 49999, got 'jpeg--7'"),
        ({"ids": lambda ids: np.arange(50)}, "ids: expected names like train-17"),
        ({"split": lambda split: (split == "test").astype(int)}, "expected the splits .*, found 0, 1"),
    ],
    ids=["no names", "no votes", "too large", "negative", "numbers", "splits by number"],
)
def test_own_items_that_nobody_knows_are_refused(tmp_path, changed, message):
    own(tmp_path, **changed)
    with pytest.raises(DataUnavailable, match=f"own-1.npz: .*{message}"):
        load_soft_labels("cifar10h", "own", 1, tmp_path)


@pytest.mark.data
def test_unknown_validation_items_are_said_to_be_in_our_file(tmp_path, monkeypatch):
    (tmp_path / "nli").mkdir()
    row = {"pairID": "1n", "gold_label": "neutral", "sentence1": "a", "sentence2": "b"}
    (tmp_path / "nli/snli_1.0_dev.jsonl").write_text(json.dumps(row))
    monkeypatch.setattr("calib.data.sets.chaosnli.data_folder", lambda: tmp_path)
    part = Predictions(["x"], [[0.0, 1.0, 2.0]], class_names=NLI_CLASSES)
    save_examples(tmp_path / "chaosnli-s/own-1.npz", {"validation": part, "soft": part})
    with pytest.raises(DataUnavailable, match="own-1.npz: the labels of 1 of 1 validation items are not known"):
        load_soft_labels("chaosnli-s", "own", 1, tmp_path)


def test_the_command_line_loads_no_model_before_it_is_asked():
    code = "import sys, calib.__main__, calib.models.vision, calib.models.nli, calib.data.sets; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"torch", "torchvision", "transformers", "PIL"} & set(loaded)


PUBLISHED = sorted((ROOT / "notebooks/ladder/predictions/cifar10h").glob("*.npz"))


def test_the_ladder_has_three_scales_with_three_seeds_by_one_recipe():
    assert {path.stem for path in PUBLISHED} == {f"resnet{n}-{seed}" for n in (8, 20, 32) for seed in (42, 123, 456)}
    recipes = [load_record(path.with_suffix(".json"))["recipe"] for path in PUBLISHED]
    assert [f"{recipe.pop('model')}-{recipe.pop('seed')}" for recipe in recipes] == [path.stem for path in PUBLISHED]
    assert recipes == recipes[:1] * 9 and recipes[0]["images"] == "jpeg" and recipes[0]["limit"] is None


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_logits_of_the_ladder_are_those_of_their_record(path):
    record, splits = load_record(path.with_suffix(".json")), load_examples(path)
    assert record["commit"] and not record["changed"] and not record["augmented_validation"]
    assert len(record["epochs"]) == record["recipe"]["epochs"]
    _, rows = vision.split(50_000, record["recipe"]["seed"])
    assert splits["validation"].ids.tolist() == [f"jpeg-{row}" for row in rows]
    assert splits["test"].ids.tolist() == [f"test-{row}" for row in range(10_000)]
    labels = {
        "validation": cifar10.train_labels(splits["validation"].ids),
        "test": load_soft_labels("cifar10h", "resnet110", 0).soft.labels,
    }
    for name, part in splits.items():
        assert record[name]["nll"] == pytest.approx(nll(part.logits, labels[name]), rel=1e-12)
        assert record[name]["accuracy"] == accuracy(part.logits, labels[name]) > 0.75


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_logits_of_augmented_validation_images_are_of_the_same_network(path):
    other = path.parents[1] / "augmented/cifar10h" / path.name
    plain, augmented = load_examples(path), load_examples(other)
    np.testing.assert_allclose(augmented["test"].logits, plain["test"].logits, rtol=0, atol=1e-4)
    assert augmented["validation"].ids.tolist() == plain["validation"].ids.tolist()
    assert 0.1 < np.abs(augmented["validation"].logits - plain["validation"].logits).mean() < 3
    record, before = (load_record(file.with_suffix(".json")) for file in (other, path))
    assert record["augmented_validation"] and record["recipe"] == before["recipe"] and not record["changed"]


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "not found"), ("{", "expected the record"), ("[]", "no recipe"), ('{"recipe": null}', "no recipe")],
)
def test_a_record_that_is_none_is_refused(tmp_path, text, message):
    path = tmp_path / "run.json"
    if text:
        path.write_text(text)
    with pytest.raises(DataUnavailable, match=message):
        load_record(path)


@needs_images
def test_a_clone_of_the_copies_packs_into_the_registered_archive(tmp_path, monkeypatch):
    clone = tmp_path / "clone"
    with zipfile.ZipFile(data_folder() / images.ARCHIVE) as archive:
        archive.extractall(clone)
    monkeypatch.setenv("CALIB_DATA", str(tmp_path / "data"))
    assert status(images.ARCHIVE) == "missing"
    assert images.pack_copies(clone) == tmp_path / "data" / images.ARCHIVE and status(images.ARCHIVE) == "ok"
    (tmp_path / "data" / images.ARCHIVE).unlink()
    (clone / "test/truck/0999.jpg").write_bytes(b"another")
    with pytest.raises(DataUnavailable, match=r"holds other images: expected .*; clone github.com/YoongiKim"):
        images.pack_copies(clone)
    (clone / "test/truck/0999.jpg").unlink()
    with pytest.raises(DataUnavailable, match=r"expected .*/test/truck/0999.jpg .*; clone github.com"):
        images.pack_copies(clone)
    assert status(images.ARCHIVE) == "missing" and not list((tmp_path / "data").rglob("*.part"))

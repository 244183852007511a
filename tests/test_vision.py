"""From images to logits: the networks, the images and their order, the split, a run that is killed and goes on."""

import errno
import json
import os
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from calib import Predictions, accuracy, nll
from calib.__main__ import app
from calib.data import DataUnavailable, cifar10, load_soft_labels
from calib.data.examples import load_examples, load_record, save_examples
from calib.data.pairs import NLI_CLASSES
from calib.data.registry import REGISTRY, data_folder, status
from calib.models import checkpoint, images, resnet, training, vision
from calib.models.checkpoint import CheckpointError
from conftest import ROOT, killed_at

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {"model": "resnet8", "epochs": 3, "images": "jpeg", "limit": 300}
LABELS = np.repeat(np.arange(10), 3)
needs_images = pytest.mark.skipif(status(images.ARCHIVE) != "ok", reason="the JPEG copies of CIFAR-10 are not there")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small run on real images, straight through."""
    out = tmp_path_factory.mktemp("vision") / "run.npz"
    return out, vision.train(out, **SMALL)


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("resnet8", 0.08),
        ("resnet14", 0.17),
        ("resnet20", 0.27),
        ("resnet32", 0.46),
        ("resnet18", 11.17),
        ("resnet50", 23.52),
        ("resnet101", 42.51),
    ],
)
def test_networks_have_the_parameters_of_the_literature(name, millions):
    network = resnet.build(name)
    assert round(resnet.count_parameters(network) / 1e6, 2) == millions


@pytest.mark.parametrize("name", ["resnet8", "resnet18"])
def test_networks_keep_the_resolution_until_their_stages_halve_it(name):
    network, sizes = resnet.build(name).eval(), []
    hooks = [m.register_forward_hook(lambda *a: sizes.append(a[2].shape[-1])) for m in network.modules()]
    with torch.inference_mode():
        assert network(torch.zeros(1, 3, 32, 32)).shape == (1, 10)
    assert hooks and sizes[0] == 32 and 4 <= min(size for size in sizes if size not in (1, 10, 64, 512)) <= 8


def test_an_unknown_network_is_refused():
    with pytest.raises(ValueError, match="model: expected one of resnet8, .*, got 'resnet9'"):
        resnet.build("resnet9")


def test_weights_come_from_the_seed():
    def weights(seed):
        torch.manual_seed(seed)
        return resnet.build("resnet8")[0].weight

    assert torch.equal(weights(1), weights(1)) and not torch.equal(weights(1), weights(2))


def test_the_split_is_disjoint_complete_and_by_seed():
    train, validation = vision.split(1000, 42)
    assert len(train) == 800 and len(validation) == 200
    assert np.array_equal(np.sort([*train, *validation]), np.arange(1000))
    assert np.array_equal(vision.split(1000, 42)[1], validation)
    assert not np.array_equal(vision.split(1000, 123)[1], validation)


def test_the_learning_rate_ends_at_zero_along_half_a_cosine():
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule, rates = training.cosine(optimiser, 200), []
    for _ in range(200):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    np.testing.assert_allclose(rates, 0.05 * (1 + np.cos(np.pi * np.arange(200) / 200)), rtol=0, atol=1e-9)
    assert rates[0] == 0.1 and 0 < rates[-1] < 1e-4 and optimiser.param_groups[0]["lr"] < 1e-9


def test_augmentation_crops_with_zeros_and_flips():
    torch.manual_seed(0)
    ramp = torch.arange(1, 65, dtype=torch.uint8).reshape(1, 8, 8, 1).expand(400, 8, 8, 3)
    padded = np.pad(ramp[0, :, :, 0].numpy(), 4)
    windows = [padded[i : i + 8, j : j + 8] for i in range(9) for j in range(9)]
    allowed = {window.tobytes() for window in windows}, {window[:, ::-1].tobytes() for window in windows}
    made = [image[:, :, 0].numpy().tobytes() for image in vision.augment(ramp)]
    straight, flipped = (sum(image in kind for image in made) for kind in allowed)
    assert straight + flipped >= 400 and 150 < flipped < 250, "each a window, half of them flipped"
    assert len(set(made)) > 120, "of 162"


def test_normalised_images_are_floats_with_channels_last_in_memory():
    pixels = torch.tensor([0, 128, 255], dtype=torch.uint8).expand(2, 32, 32, 3)
    x = vision.normalise(pixels)
    assert x.shape == (2, 3, 32, 32) and x.is_contiguous(memory_format=torch.channels_last)
    expected = (np.array([0, 128, 255]) / 255 - vision.MEAN) / vision.STD
    np.testing.assert_allclose(x[0, :, 0, 0], expected, rtol=1e-5)


def test_the_kth_copy_of_a_class_is_its_kth_test_image():
    names = [f"test/{name}/{i:04d}.jpg" for name in cifar10.CIFAR10_CLASSES for i in range(3)]
    labels = np.random.default_rng(0).permutation(LABELS)
    ordered = images.test_names(["train/cat/0000.jpg", *reversed(names)], labels)
    assert [name.split("/")[1] for name in ordered] == [cifar10.CIFAR10_CLASSES[label] for label in labels]
    assert sorted(ordered) == sorted(names)
    cats = [name for name in ordered if "/cat/" in name]
    assert cats == sorted(cats)


@pytest.mark.parametrize("lost", ["test/dog/0001.jpg", "test/dog/0002.jpg"])
def test_a_class_with_a_gap_has_no_order(lost):
    names = [f"test/{name}/{i:04d}.jpg" for name in cifar10.CIFAR10_CLASSES for i in range(3)]
    with pytest.raises(DataUnavailable, match="expected test/dog/0000.jpg to 0002.jpg, .* found 2 images"):
        images.test_names([name for name in names if name != lost], LABELS)


def correlation(pixels, soft):
    """Within each class: how well coarse pixels predict the logits of another network, on images not fitted."""
    coarse = pixels.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4)).reshape(len(pixels), -1) / 255
    found = []
    for label in range(10):
        rows = np.flatnonzero(soft.labels == label)
        x, y = (values[rows] - values[rows].mean(axis=0) for values in (coarse, soft.logits.astype(float)))
        weights = np.linalg.solve(x[:500].T @ x[:500] + 20 * np.eye(x.shape[1]), x[:500].T @ y[:500])
        predicted = x[500:] @ weights
        found.append(np.mean([np.corrcoef(predicted[:, k], y[500:, k])[0, 1] for k in range(10)]))
    return np.array(found)


@needs_images
@pytest.mark.data
def test_the_copies_of_the_test_images_are_in_the_original_order():
    pixels, soft = images.load_images("jpeg", 10_000).test, load_soft_labels("cifar10h", "resnet110", 0).soft
    assert correlation(pixels, soft).min() > 0.1
    shifted = pixels.copy()
    for label in range(10):
        rows = np.flatnonzero(soft.labels == label)
        shifted[rows] = pixels[np.roll(rows, 1)]
    assert correlation(shifted, soft).max() < 0.1


@needs_images
def test_labels_of_the_copies_follow_from_their_ids():
    data = images.load_images("jpeg", 100)
    assert np.array_equal(cifar10.train_labels(data.train_ids), data.train_labels)
    assert len(set(data.train_labels[:50])) == 10, "not sorted by class"
    with zipfile.ZipFile(images.data_folder() / images.ARCHIVE) as archive:
        assert set(cifar10.jpeg_train()[0]) == {name for name in archive.namelist() if name.startswith("train/")}


def test_ids_of_two_sources_are_refused():
    with pytest.raises(ValueError, match=r"ids: expected .* got \['jpeg', 'train'\]"):
        cifar10.train_labels(["jpeg-1", "train-1"])


def test_without_the_original_archive_there_is_a_way_on(tmp_path, monkeypatch):
    from torchvision.datasets import CIFAR10

    monkeypatch.setenv("CALIB_DATA", str(tmp_path))
    monkeypatch.setattr(CIFAR10, "url", "http://127.0.0.1:9/cifar-10-python.tar.gz")
    with pytest.raises(DataUnavailable, match=r"found none with MD5 .*, looked for .*--images jpeg"):
        images.load_images("original")


def write_original(folder, order):
    """A tiny archive in the layout of the original, whose files torchvision accepts once their hashes are told."""
    import hashlib
    import pickle

    base = folder / "cifar10" / "cifar-10-batches-py"
    base.mkdir(parents=True)
    known = {"batches.meta": {"label_names": list(cifar10.CIFAR10_CLASSES)}}
    for i, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        pixels = np.full((30, 3072), i, dtype=np.uint8)
        known[name] = {"data": pixels, "labels": order.tolist()}
    for name, content in known.items():
        (base / name).write_bytes(pickle.dumps(content))
    return {name: hashlib.md5((base / name).read_bytes()).hexdigest() for name in known}


@pytest.mark.parametrize("same", [True, False])
def test_the_original_is_read_and_its_order_checked(tmp_path, monkeypatch, same):
    from torchvision.datasets import CIFAR10

    hashes = write_original(tmp_path, LABELS)
    monkeypatch.setenv("CALIB_DATA", str(tmp_path))
    monkeypatch.setattr(CIFAR10, "train_list", [[f"data_batch_{k}", hashes[f"data_batch_{k}"]] for k in range(1, 6)])
    monkeypatch.setattr(CIFAR10, "test_list", [["test_batch", hashes["test_batch"]]])
    monkeypatch.setattr(
        CIFAR10, "meta", {"filename": "batches.meta", "key": "label_names", "md5": hashes["batches.meta"]}
    )
    monkeypatch.setattr(images, "read", lambda name: b"")
    monkeypatch.setattr(images, "load_npy", lambda content: LABELS if same else LABELS[::-1])
    if not same:
        with pytest.raises(DataUnavailable, match="expected its test labels in the order of"):
            images.load_images("original")
        return
    data = images.load_images("original")
    assert data.train.shape == (150, 32, 32, 3) and data.test.shape == (30, 32, 32, 3)
    assert data.train_ids[149] == "train-149" and data.test_ids[29] == "test-29"
    assert np.array_equal(cifar10.train_labels(["train-3", "train-0"]), LABELS[[3, 0]])
    assert len(images.load_images("original", 20).train) == 20


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
    ],
    ids=["one bit", "truncated", "empty", "web page", "code", "weights alone", "list", "missing", "recipe changed"],
)
def test_a_damaged_or_foreign_checkpoint_is_refused(tmp_path, monkeypatch, damage, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.pt"
    checkpoint.save(path, {"seed": 1}, {}, {"network": resnet.build("resnet8")})
    damage(path)
    with pytest.raises(CheckpointError, match=f"run.pt: .*{message}"):
        checkpoint.read(path)
    result = CliRunner().invoke(app, ["predict", str(path), "-o", str(tmp_path / "out.npz")])
    assert result.exit_code == 1 and result.output.startswith("error: ") and "Traceback" not in result.output
    assert not (tmp_path / "executed").exists()


def test_a_failed_save_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path, parts = tmp_path / "run.pt", {"network": resnet.build("resnet8")}
    checkpoint.save(path, {"seed": 1}, {"epoch": 1}, parts)

    def broken(content, file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(OSError, match="No space left on device: '.*run.pt'"):
        checkpoint.save(path, {"seed": 1}, {"epoch": 2}, parts)
    assert checkpoint.read(path)["progress"] == {"epoch": 1} and [p.name for p in tmp_path.iterdir()] == ["run.pt"]


def test_weights_of_another_network_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    checkpoint.save(path, {}, {}, {"network": resnet.build("resnet8")})
    with pytest.raises(CheckpointError, match=r"run.pt: its weights do not fit the network that its recipe names \("):
        checkpoint.resume(path, {}, {"network": resnet.build("resnet14")})


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
    checkpoint.save(path, {"seed": 1}, {"epoch": 1}, parts)
    os.link(path, tmp_path / "old.pt")
    checkpoint.save(path, {"seed": 1}, {"epoch": 2}, parts)
    assert [checkpoint.read(tmp_path / name)["progress"]["epoch"] for name in ("old.pt", "run.pt")] == [1, 2]


def test_a_missing_gpu_is_said_with_a_way_on():
    with pytest.raises(ValueError, match=r"device: expected one that torch can use here, got 'cuda:99'.* --device cpu"):
        training.choose_device("cuda:99")
    assert training.choose_device("cpu").type == "cpu"


def test_out_of_memory_is_one_error_with_ways_on():
    with pytest.raises(training.OutOfMemory, match="out of memory for a test; .* --batch-size"):
        with training.memory_explained("a test"):
            torch.empty(1 << 60)
    with pytest.raises(RuntimeError, match="shapes cannot"):
        with training.memory_explained("a test"):
            torch.zeros(2, 3) @ torch.zeros(2, 3)


def test_precision_is_bfloat16_where_the_processor_has_it():
    cpu = torch.device("cpu")
    assert training.choose_precision("float32", cpu) == "float32"
    fast = torch.cpu._is_avx512_bf16_supported()
    assert training.choose_precision("auto", cpu) == ("bfloat16" if fast else "float32")
    with pytest.raises(ValueError, match="precision: expected one of auto, bfloat16, float32, got 'half'"):
        training.choose_precision("half", cpu)


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


PUBLISHED = sorted((ROOT / "sweep/predictions/cifar10h").glob("*.npz"))


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

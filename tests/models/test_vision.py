"""From images to logits: the networks, the images and their order, the split, a run that is killed and goes on."""

import zipfile

import numpy as np
import pytest
import torch
from small_run import LABELS, finished, needs_images  # noqa: F401

from calib.data import DataUnavailable, cifar10, load_soft_labels
from calib.models import images, resnet, training, vision

pytestmark = pytest.mark.usefixtures("one_thread")


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
    assert round(sum(weights.numel() for weights in network.parameters()) / 1e6, 2) == millions


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

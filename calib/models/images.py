"""CIFAR-10 in memory: the original archive through torchvision, or the JPEG copies where it cannot be had."""

import io
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from calib.data.cifar10 import CIFAR10_CLASSES, PER_CLASS, jpeg_train, original_half
from calib.data.readers import load_npy
from calib.data.registry import REGISTRY, DataUnavailable, data_folder, read
from calib.data.whole import write_whole

ARCHIVE = "cifar10/cifar10-jpeg.zip"
LABELS = "cifar10/cifar10_test_set_original_labels.npy"
SOURCES = ("original", "jpeg")
HOW = REGISTRY[ARCHIVE].how


@dataclass(frozen=True, eq=False)
class Images:
    """CIFAR-10 in memory.

    Attributes
    ----------
    source : {"original", "jpeg"}
        The original pixels, or lossy copies of them.
    train, test : ndarray uint8 (50000, 32, 32, 3) and (10000, 32, 32, 3)
        Test images in the original order.
    train_labels, test_labels : ndarray int64
    train_ids, test_ids : ndarray of str
    hashes : dict of str to str
        What was read, by name.
    """

    source: str
    train: np.ndarray
    train_labels: np.ndarray
    train_ids: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray
    test_ids: np.ndarray
    hashes: dict[str, str]


def load_images(source="original", limit=None):
    """Read CIFAR-10.

    Parameters
    ----------
    source : {"original", "jpeg"}
        "original" downloads the archive once, through torchvision, which checks its MD5; "jpeg" reads the copies in
        the data folder.
    limit : int, optional
        Read only so many training images, and as many test images.

    Returns
    -------
    Images

    Raises
    ------
    DataUnavailable
        If the images cannot be had, or the test images are not in the original order.
    """
    if source not in SOURCES:
        raise ValueError(f"source: expected one of {', '.join(SOURCES)}, got {source!r}")
    return _original(limit) if source == "original" else _jpeg(limit)


def pack_copies(clone):
    """Pack the JPEG copies into the archive that is registered, byte by byte, and put it into the data folder.

    Parameters
    ----------
    clone : path
        A checkout of the repository that the registry names, with ``train/<class>/NNNN.jpg`` and ``test/...``.

    Returns
    -------
    Path
        The archive.

    Raises
    ------
    DataUnavailable
        If an image is missing, or the archive is not the registered one; nothing is written then.
    """
    clone, packed = Path(clone), io.BytesIO()
    counts = {"train": PER_CLASS, "test": PER_CLASS // 5}
    names = [f"{half}/{name}/{i:04d}.jpg" for half, n in counts.items() for name in CIFAR10_CLASSES for i in range(n)]
    with zipfile.ZipFile(packed, "w") as archive:
        for name in tqdm(names, unit="image", disable=None, leave=False):
            entry = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            try:
                archive.writestr(entry, (clone / name).read_bytes())
            except OSError as error:
                raise DataUnavailable(f"{ARCHIVE}: expected {clone / name} ({error.strerror}); {HOW}") from error
    if problem := REGISTRY[ARCHIVE].problem(packed.getvalue()):
        raise DataUnavailable(f"{ARCHIVE}: {clone} holds other images: {problem}; {HOW}")
    path = data_folder() / ARCHIVE
    write_whole({path: lambda file: file.write(packed.getvalue())})
    return path


def _ids(prefix, images):
    return np.array([f"{prefix}-{i}" for i in range(len(images))])


def _original(limit):
    from torchvision.datasets import CIFAR10

    train, test = original_half(True), original_half(False)
    test_labels = np.array(test.targets)
    if not np.array_equal(test_labels, load_npy(read(LABELS))):
        raise DataUnavailable(f"the CIFAR-10 archive: expected its test labels in the order of {LABELS}; they differ")
    return Images(
        source="original",
        train=train.data[:limit],
        train_labels=np.array(train.targets[:limit]),
        train_ids=_ids("train", train.data[:limit]),
        test=test.data[:limit],
        test_labels=test_labels[:limit],
        test_ids=_ids("test", test.data[:limit]),
        hashes={CIFAR10.filename: f"md5 {CIFAR10.tgz_md5}", LABELS: REGISTRY[LABELS].sha256},
    )


def _jpeg(limit):
    content = read(ARCHIVE)
    test_labels = load_npy(read(LABELS)).astype(np.int64)
    train_names, labels = jpeg_train()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        train = _decode(archive, train_names[:limit])
        test = _decode(archive, test_names(archive.namelist(), test_labels)[:limit])
    return Images(
        source="jpeg",
        train=train,
        train_labels=labels[:limit],
        train_ids=_ids("jpeg", train),
        test=test,
        test_labels=test_labels[:limit],
        test_ids=_ids("test", test),
        hashes={name: REGISTRY[name].sha256 for name in (ARCHIVE, LABELS)},
    )


def test_names(names, labels):
    """Names of the test copies in the original order: the k-th of a class is the k-th image with its label.

    Parameters
    ----------
    names : list of str
        All names in the archive.
    labels : ndarray (n,)
        Labels in the original order.

    Returns
    -------
    list of str

    Raises
    ------
    DataUnavailable
        If a class has not as many copies as labels, numbered from 0 without gaps.
    """
    numbers = {name: [] for name in CIFAR10_CLASSES}
    for name in names:
        if match := re.fullmatch(r"test/(\w+)/(\d{4})\.jpg", name):
            numbers[match[1]].append(int(match[2]))
    for label, name in enumerate(CIFAR10_CLASSES):
        expected = int((labels == label).sum())
        if sorted(numbers[name]) != list(range(expected)):
            raise DataUnavailable(
                f"{ARCHIVE}: expected test/{name}/0000.jpg to {expected - 1:04d}.jpg, one per label, "
                f"found {len(numbers[name])} images; the test order cannot be told"
            )
    seen = np.zeros(len(CIFAR10_CLASSES), dtype=int)
    ordered = []
    for label in labels:
        ordered.append(f"test/{CIFAR10_CLASSES[label]}/{seen[label]:04d}.jpg")
        seen[label] += 1
    return ordered


def _decode(archive, names):
    """Pixels of JPEG files, uint8 (n, 32, 32, 3)."""
    from PIL import Image

    files = [archive.read(name) for name in names]

    def pixels(content):
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))

    with ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(pixels, files)))

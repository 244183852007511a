"""CIFAR-10 as it lies in the data folder: classes, labels by id, the original archive, the order of the JPEG copies."""

from functools import cache

import numpy as np

from calib.data.registry import DataUnavailable, data_folder
from calib.predictions import hash_order

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PER_CLASS = 5000


def train_labels(ids):
    """Labels of training images by id; those of the JPEG copies follow from the layout of their archive alone.

    Parameters
    ----------
    ids : sequence of str
        All of one source: ``train-17`` is the 18th image of the original, ``jpeg-17`` that of the copies.

    Returns
    -------
    ndarray int64
    """
    kinds = {name.partition("-")[0] for name in ids}
    if kinds == {"jpeg"}:
        labels = jpeg_train()[1]
    elif kinds == {"train"}:
        labels = np.array(original_half(True).targets)
    else:
        raise ValueError(f"ids: expected names like train-17, or all like jpeg-17, got {sorted(kinds)}")
    label = {f"{kind}-{i}": label for kind in kinds for i, label in enumerate(labels)}
    unknown = [name for name in ids if name not in label]
    if unknown:
        raise ValueError(f"ids: expected numbers from 0 to {len(labels) - 1}, got {str(unknown[0])!r}")
    return np.array([label[name] for name in ids])


def original_half(train):
    """One half of the original, downloaded if it is missing."""
    from filelock import FileLock
    from torchvision.datasets import CIFAR10

    folder = data_folder() / "cifar10"
    try:
        return CIFAR10(folder, train=train)
    except RuntimeError:  # not there, or not whole
        pass
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{CIFAR10.filename}.lock"):  # two runs of a sweep begin at once
            return CIFAR10(folder, train=train, download=True)
    except (OSError, RuntimeError) as error:
        raise DataUnavailable(
            f"the CIFAR-10 archive: found none with MD5 {CIFAR10.tgz_md5}, looked for {folder}/{CIFAR10.filename} and "
            f"{CIFAR10.url} ({' '.join(str(error).split())}); run it where that address can be reached, or copy the "
            f"archive into {folder}; to train on JPEG copies: --images jpeg"
        ) from error


@cache
def jpeg_train():
    """Names and labels of the training copies, in an order that does not sort them by class."""
    names = [f"train/{name}/{i:04d}.jpg" for name in CIFAR10_CLASSES for i in range(PER_CLASS)]
    order = hash_order(names, "calib-cifar10-jpeg-v1")
    return [names[i] for i in order], order // PER_CLASS

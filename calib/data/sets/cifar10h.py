"""CIFAR-10H: votes of people on the test images of CIFAR-10 (Peterson et al. 2019)."""

from dataclasses import replace

import numpy as np

from calib.data.cifar10 import CIFAR10_CLASSES, train_labels
from calib.data.readers import load_arrays, load_npy
from calib.data.registry import DataUnavailable, read
from calib.data.sets.base import SoftLabelSet
from calib.predictions import Predictions


class Cifar10H(SoftLabelSet):
    """10,000 test images; an image shares nothing with others."""

    def votes(self):
        """47 to 63 votes per image, in the original order."""
        counts = load_npy(read("cifar10h/cifar10h-counts.npy"))
        return {f"test-{i}": votes for i, votes in enumerate(counts)}

    def labels(self):
        """The original labels."""
        return load_npy(read("cifar10/cifar10_test_set_original_labels.npy"))

    def predictions(self, model, seed):
        """ResNet-110 of Kull et al. (2019): 5,000 validation images with labels, 10,000 test images."""
        if (model, seed) != ("resnet110", 0):
            raise ValueError(f"model, seed: expected resnet110 and 0, got {model!r} and {seed!r}")
        (logits, labels), (test_logits, test_labels) = load_arrays(read("cifar10/resnet110_c10_logits.p"))
        if not np.array_equal(self.labels(), test_labels[:, 0]):
            raise DataUnavailable(
                "cifar10/resnet110_c10_logits.p: expected test rows in the original order; labels differ"
            )
        ids = [f"validation-{i}" for i in range(len(logits))]
        validation = Predictions(ids, logits, labels[:, 0], class_names=self.classes)
        return validation, {f"test-{i}": row for i, row in enumerate(test_logits)}

    def validation_labels(self, ids):
        """Labels of held-out training images."""
        return train_labels(ids)


CIFAR10H = Cifar10H("cifar10h", "CIFAR-10H", "vision", CIFAR10_CLASSES, own_split="test")
SOFT_LABEL_SETS = (CIFAR10H,)


def load_cross_validated():
    """A second predictor of the CIFAR-10 test images, with the votes of CIFAR-10H and no validation set.

    Out-of-sample probabilities by cross-validation (Northcutt et al. 2021); their logarithms are the logits.

    Returns
    -------
    Predictions
        With the ids, labels and votes of the set.
    """
    name = "cifar10/cifar10_test_set_pyx.npy"
    probabilities, soft = load_npy(read(name)), CIFAR10H.published("resnet110", 0).soft
    if probabilities.shape != soft.logits.shape:
        raise DataUnavailable(f"{name}: expected shape {soft.logits.shape}, got {probabilities.shape}")
    if not (probabilities > 0).all() or np.abs(probabilities.sum(axis=1) - 1).max() > 1e-6:
        raise DataUnavailable(f"{name}: expected probabilities above 0 in rows that sum to 1")
    agreement = np.mean(probabilities.argmax(axis=1) == soft.labels)
    if agreement < 0.9:  # rows in any other order agree in a tenth
        raise DataUnavailable(f"{name}: expected rows in the original order, but {agreement:.0%} name the label")
    return replace(soft, logits=np.log(probabilities))

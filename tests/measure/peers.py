"""The programs that users would pick instead of calib, called as they would call them, and the data they get.

`fit` and `ece` map the name of a program to a function that converts its input, outside the clock, and returns the
call that a user waits for.
"""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

import calib

TILE = 1 << 18  # numbers per tile
SEED = 0
WORKLOADS = {"W1": (872, 2), "W2": (10_000, 10), "W3": (50_000, 1000), "W4": (1_000_000, 10)}
PACKAGES = ["calib", "numpy", "scipy", "scikit-learn", "torch", "torchmetrics", "netcal", "probmetrics"]


def machine():
    """Where the numbers come from: machine, versions, the state of calib, and how busy the machine is."""
    cpu = Path("/proc/cpuinfo")
    models = (
        [line.split(": ")[1] for line in cpu.read_text().splitlines() if "model name" in line] if cpu.exists() else []
    )
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return {
        "platform": platform.platform(),
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "commit": subprocess.run(git, capture_output=True, text=True).stdout.strip(),
        "seed": SEED,
    }


def tiles(n, n_classes):
    """Slices of rows, so many at a time as fit a tile."""
    step = max(1, TILE // n_classes)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def workload(n, n_classes, logits=None):
    """Logits 3 N(0, 1) in float32 and labels drawn from softmax(logits / 2.5), so that T is 2.5 but for chance."""
    rng = np.random.default_rng(SEED)
    logits = np.empty((n, n_classes), np.float32) if logits is None else logits
    labels = np.empty(n, np.int64)
    for rows in tiles(n, n_classes):
        logits[rows] = 3 * rng.standard_normal(logits[rows].shape)
    for rows in tiles(n, n_classes):
        labels[rows] = (logits[rows] / 2.5 + rng.gumbel(size=logits[rows].shape)).argmax(axis=1)
    return logits, labels


def softmax(logits, temperature=1.0, dtype=np.float32):
    """Softmax computed in float64, tile by tile, and rounded to `dtype`."""
    probabilities = np.empty(logits.shape, dtype)
    for rows in tiles(*logits.shape):
        weights = np.exp((logits[rows] - logits[rows].max(axis=1, keepdims=True)).astype(np.float64) / temperature)
        probabilities[rows] = weights / weights.sum(axis=1, keepdims=True)
    return probabilities


def reference_temperature(logits, labels):
    """Temperature where the derivative of the NLL vanishes, all in float64, by a root finder of SciPy."""

    def slope(beta):
        total = 0.0
        for rows in tiles(*logits.shape):
            margins = logits[rows].astype(np.float64)
            margins -= margins.max(axis=1, keepdims=True)
            weights = np.exp(beta * margins)
            mean = np.einsum("ij,ij->i", weights, margins) / weights.sum(axis=1)
            total += (mean - margins[np.arange(len(margins)), labels[rows]]).sum()
        return total

    return 1 / brentq(slope, 0.1, 1, xtol=1e-15)


def fit_calib(logits, targets):
    return lambda: calib.fit_temperature(logits, targets).temperature


def fit_sklearn(logits, targets):
    from sklearn.calibration import _TemperatureScaling

    return lambda: float(1 / _TemperatureScaling().fit(logits, targets).beta_)


def fit_netcal(logits, targets, dtype=np.float64):
    from netcal.scaling import TemperatureScaling

    probabilities = softmax(logits, dtype=dtype)
    return lambda: float(1 / TemperatureScaling().fit(probabilities, targets).weights[0])


def fit_probmetrics(logits, targets):
    import torch
    from probmetrics.calibrators.temperature_scaling import TemperatureScalingCalibrator
    from probmetrics.distributions import CategoricalLogits

    logits, targets = CategoricalLogits(torch.from_numpy(logits)), torch.from_numpy(targets)

    def call():
        calibrator = TemperatureScalingCalibrator()
        calibrator.fit_torch(logits, targets)
        return float(1 / calibrator.invtemp_)

    return call


def ece_calib(probabilities, labels, bins):
    return lambda: calib.ece(*calib.top_label(probabilities, labels), bins)


def ece_numpy(probabilities, labels, bins):
    """The lines that everybody writes."""

    def call():
        top = probabilities.argmax(axis=1)
        confidence = probabilities[np.arange(len(top)), top]
        members = np.minimum((confidence * bins).astype(int), bins - 1)
        return float(np.abs(np.bincount(members, weights=(top == labels) - confidence)).sum() / len(top))

    return call


def ece_torchmetrics(probabilities, labels, bins, checked=True):
    import torch
    from torchmetrics.classification import MulticlassCalibrationError

    probabilities, labels = torch.from_numpy(probabilities), torch.from_numpy(labels)
    n_classes = probabilities.shape[1]
    return lambda: float(MulticlassCalibrationError(n_classes, bins, validate_args=checked)(probabilities, labels))


def ece_netcal(probabilities, labels, bins):
    from netcal.metrics import ECE

    return lambda: float(ECE(bins).measure(probabilities, labels))


def ece_probmetrics(probabilities, labels, bins):
    import torch
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.metrics import CalibrationError

    truth = CategoricalDirac(torch.from_numpy(labels), probabilities.shape[1])
    predicted = CategoricalProbs(torch.from_numpy(probabilities))
    return lambda: float(CalibrationError(bins).compute(truth, predicted))


fit = {"calib": fit_calib, "scikit-learn": fit_sklearn, "netcal": fit_netcal, "probmetrics": fit_probmetrics}
ece = {
    "calib": ece_calib,
    "numpy": ece_numpy,
    "torchmetrics": ece_torchmetrics,
    "netcal": ece_netcal,
    "probmetrics": ece_probmetrics,
}

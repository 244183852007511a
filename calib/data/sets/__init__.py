"""Data sets with votes of many people, a file each: what a study of the soft-label gap asks of them.

A file in this folder that defines `SOFT_LABEL_SETS` adds its sets; nothing else names them one by one.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from calib.data.sets.base import SoftLabelData, SoftLabelSet

__all__ = ["DATASETS", "SETS", "SoftLabelData", "SoftLabelSet", "load_soft_labels", "set_of"]


def _found():
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    sets = [one for module in modules for one in getattr(module, "SOFT_LABEL_SETS", ())]
    return sorted(sets, key=lambda one: one.task != "vision")


SETS = {one.key: one for one in _found()}
"""Every set by its key, images first."""

DATASETS = {key: one.title for key, one in SETS.items()}
"""What the sets are called in figures, tables and prose."""


def set_of(key):
    """The set of that key; any other key is an error that names those there are."""
    if key not in SETS:
        raise ValueError(f"dataset: expected {', '.join(SETS)}, got {key!r}")
    return SETS[key]


def load_soft_labels(dataset, model, seed, folder=None):
    """Validation set and soft-labelled set of one data set, model and training seed.

    Parameters
    ----------
    dataset : str
        A key of `SETS`.
    model : str
        Such as "resnet110" for CIFAR-10H, "roberta-base" for ChaosNLI.
    seed : int
    folder : path, optional
        Where predictions of our own lie, as ``<dataset>/<model>-<seed>.npz``; without it, the published ones are read.

    Returns
    -------
    SoftLabelData
    """
    chosen = set_of(dataset)
    if folder is not None:
        return chosen.own(Path(folder) / dataset / f"{model}-{seed}.npz")
    return chosen.published(model, seed)

"""The data: a registry of pinned files, their download, and readers that return `Predictions`."""

from calib.data.dogah2026 import load_dogah2026
from calib.data.registry import REGISTRY, DataUnavailable, data_folder
from calib.data.sets import DATASETS, SETS, SoftLabelData, load_soft_labels, set_of
from calib.data.sets.cifar10h import load_cross_validated
from calib.data.sst2 import load_sst2

__all__ = [
    "DATASETS",
    "REGISTRY",
    "SETS",
    "DataUnavailable",
    "SoftLabelData",
    "data_folder",
    "load_cross_validated",
    "load_dogah2026",
    "load_soft_labels",
    "load_sst2",
    "set_of",
]

"""The data: a registry of pinned files, their download, and loaders that return `Predictions`."""

from calib.data.loaders import (
    SoftLabelData,
    cluster_names,
    load_chaosnli,
    load_cifar10h,
    load_cross_validated,
    load_dogah2026,
    load_original_labels,
    load_original_votes,
    load_soft_labels,
    load_sst2,
)
from calib.data.registry import REGISTRY, DataUnavailable, data_folder

__all__ = [
    "REGISTRY",
    "DataUnavailable",
    "SoftLabelData",
    "cluster_names",
    "data_folder",
    "load_chaosnli",
    "load_cifar10h",
    "load_cross_validated",
    "load_dogah2026",
    "load_original_labels",
    "load_original_votes",
    "load_soft_labels",
    "load_sst2",
]

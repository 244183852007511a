"""The per-seed results of the paper on the soft-label gap (Dogah 2026), under the names that this book uses."""

import json

from calib.data.registry import REGISTRY, read
from calib.data.sets import DATASETS

NAMES = {
    "model": "model",
    "dataset": "dataset",
    "seed": "seed",
    "test_accuracy": "accuracy",
    "T_star_hard": "T_hard",
    "T_star_soft": "T_oracle",
    "uncal_ece": "ece_uncal",
    "ts_hard_ece": "ece_hard",
    "ts_soft_ece": "ece_oracle",
    "uncal_bs_soft": "brier_uncal",
    "ts_hard_bs_soft": "brier_hard",
    "ts_soft_bs_soft": "brier_oracle",
    "gap": "gap",
    "iso_hard_bs_soft": "iso_brier_hard",
    "iso_soft_bs_soft": "iso_brier_oracle",
    "iso_gap": "iso_gap",
}


def load_dogah2026():
    """The 27 per-seed results of Dogah (2026), under the names that this book uses.

    Returns
    -------
    list of dict
        model, dataset, seed, accuracy, T_hard, T_oracle, ece_uncal, ece_hard, ece_oracle, brier_uncal, brier_hard,
        brier_oracle, gap, iso_brier_hard, iso_brier_oracle, iso_gap.
    """
    files = [json.loads(read(name)) for name in REGISTRY if name.startswith("dogah2026/")]
    rows = [{ours: file[theirs] for theirs, ours in NAMES.items()} for file in files]
    keys = {name: key for key, name in DATASETS.items()}
    return [{**row, "dataset": keys[row["dataset"]]} for row in rows]

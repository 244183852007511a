"""The per-seed results of the paper by configuration, and exact statements about a few runs of each."""

from itertools import combinations

import numpy as np

from calib.data import DATASETS
from calib.data.titles import model_title

BERTS = ("distilbert-base-uncased", "bert-base-uncased", "bert-large-uncased")
SCALES = {"cifar10h": ("resnet18", "resnet50", "resnet101"), "chaosnli-s": BERTS, "chaosnli-m": BERTS}
"""Models of each data set, from small to large."""


def configurations(rows):
    """Per-seed results by configuration, in the order of data sets and scales.

    Parameters
    ----------
    rows : list of dict
        As `calib.data.load_dogah2026` gives them.

    Returns
    -------
    dict
        {(dataset, model): {name: array over the seeds in ascending order}}

    Raises
    ------
    ValueError
        If a configuration has no results, two for one seed, others than the first one's seeds, or a number that is not
        finite.
    """
    found = {}
    for key in ((dataset, model) for dataset, models in SCALES.items() for model in models):
        runs = sorted((row for row in rows if (row["dataset"], row["model"]) == key), key=lambda row: row["seed"])
        if not runs:
            raise ValueError(f"rows: expected results of {named(key)}, found none")
        seeds = [run["seed"] for run in runs]
        expected = seeds if not found else next(iter(found.values()))["seed"].tolist()
        if seeds != expected or len(set(seeds)) < len(seeds):
            raise ValueError(f"rows: expected one result of {named(key)} for each of the seeds {expected}, got {seeds}")
        found[key] = {name: np.array([run[name] for run in runs]) for name in runs[0]}
        for name, values in found[key].items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                raise ValueError(f"rows: expected finite numbers, got {name} = {values} of {named(key)}")
    return found


def ordered_pairs(smaller, larger):
    """How many pairs of one run of each model have the higher value at the larger model.

    Examples
    --------
    >>> ordered_pairs([1, 2], [2, 3])
    3
    """
    return int((np.asarray(smaller)[:, None] < np.asarray(larger)).sum())


def trend_p(groups):
    """Exact one-sided p of the Jonckheere-Terpstra test of three groups: share of all deals that rise as much.

    Examples
    --------
    >>> round(1 / trend_p([[1, 2, 3], [4, 5, 6], [7, 8, 9]]))
    1680
    """
    if len(groups) != 3:
        raise ValueError(f"groups: expected three, got {len(groups)}")
    values, places = np.concatenate(groups), set(range(sum(map(len, groups))))
    deals = [
        (first, second, places - {*first, *second})
        for first in combinations(range(len(values)), len(groups[0]))
        for second in combinations(sorted(places - {*first}), len(groups[1]))
    ]
    observed = _rise(groups)
    return sum(_rise([values[list(part)] for part in deal]) >= observed for deal in deals) / len(deals)


def _rise(groups):
    return sum(ordered_pairs(*pair) for pair in combinations(groups, 2))


def named(configuration):
    """Model and data set in words.

    Examples
    --------
    >>> named(("cifar10h", "resnet18"))
    'ResNet-18, CIFAR-10H'
    """
    dataset, model = configuration
    return f"{model_title(model)}, {DATASETS[dataset]}"

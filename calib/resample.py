"""Paired bootstrap: every quantity sees the same resampled rows, so differences keep their pairing (Efron 1979)."""

import numpy as np

from calib.checks import as_confidence, as_correct, as_count, as_floats
from calib.reliability import assign_bins, bin_edges

BLOCK = 1 << 22  # numbers held at once


def bootstrap_indices(n, replicates=2000, seed=113):
    """Rows drawn with replacement, int64 (replicates, n).

    Keep the array where results are kept: then nobody needs to trust that a generator never changes.

    Examples
    --------
    >>> bootstrap_indices(4, replicates=2).shape
    (2, 4)
    """
    n, replicates = as_count(n, "n"), as_count(replicates, "replicates")
    return np.random.default_rng(seed).integers(0, n, size=(replicates, n))


def bootstrap_mean(values, indices):
    """Mean of each replicate.

    Parameters
    ----------
    values : array_like (n,) or (n, m)
        One number per row, or m numbers per row that are resampled together.
    indices : ndarray int (replicates, n)

    Returns
    -------
    ndarray float64 (replicates,) or (replicates, m)

    Examples
    --------
    >>> bootstrap_mean([1.0, 2.0], np.array([[0, 0], [0, 1]])).tolist()
    [1.0, 1.5]
    """
    values = np.asarray(values)
    columns = as_floats("values", values if values.ndim == 2 else values[:, None], 2).astype(np.float64, copy=False)
    if not np.isfinite(columns).all():
        row = int((~np.isfinite(columns)).any(axis=1).argmax())
        raise ValueError(f"values: expected finite numbers, got {columns[row]} in row {row}")
    indices = _check_indices(indices, len(columns))
    means = _weighted_sums(columns, indices) / indices.shape[1]
    return means if values.ndim == 2 else means[:, 0]


def bootstrap_ece(confidence, correct, bins, indices):
    """ECE of each replicate, for several declarations of bins on the same resampled rows.

    Edges are those of the whole sample; only the rows are resampled.

    Parameters
    ----------
    confidence, correct : array_like (n,)
    bins : sequence
        Each a number of equal-width bins, an EqualMass or edges, as in `reliability_table`.
    indices : ndarray int (replicates, n)

    Returns
    -------
    ndarray float64 (replicates, len(bins))

    Examples
    --------
    >>> indices = np.array([[0, 1], [0, 0]])
    >>> bootstrap_ece([0.9, 0.8], [1, 1], [10, 5], indices).round(2).tolist()
    [[0.15, 0.15], [0.1, 0.1]]
    """
    confidence = as_confidence(confidence)
    difference = as_correct(correct, len(confidence)) - confidence.astype(np.float64)
    indices = _check_indices(indices, len(confidence))
    if not hasattr(bins, "__len__") or len(bins) == 0:
        raise ValueError(f"bins: expected a sequence of declarations of bins, such as [15], got {bins!r}")
    columns = []
    for declared in bins:
        edges = bin_edges(confidence, declared)
        members = assign_bins(confidence, edges)
        used, members = np.unique(members, return_inverse=True)
        spread = np.zeros((len(confidence), len(used)))
        spread[np.arange(len(confidence)), members] = difference
        columns.append(spread)
    starts = np.cumsum([0, *(spread.shape[1] for spread in columns[:-1])])
    sums = np.abs(_weighted_sums(np.hstack(columns), indices))
    return np.add.reduceat(sums, starts, axis=1) / indices.shape[1]


def interval(replicates, level=0.95):
    """Percentile interval along the first axis, by linear interpolation.

    Returns
    -------
    low, high : float or ndarray

    Examples
    --------
    >>> low, high = interval(np.arange(101.0))
    >>> float(low), float(high)
    (2.5, 97.5)
    """
    if not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
    outside = (100 - 100 * level) / 2
    return tuple(np.percentile(replicates, [outside, 100 - outside], axis=0))


def _check_indices(indices, n):
    indices = np.asarray(indices)
    if indices.ndim != 2 or indices.dtype.kind not in "iu" or indices.size == 0:
        shape = f"shape {indices.shape} of type {indices.dtype}"
        raise ValueError(f"indices: expected integers (replicates, n), got {shape}")
    if indices.min() < 0 or indices.max() >= n:
        raise ValueError(f"indices: expected values from 0 to {n - 1}, got {indices.min()} to {indices.max()}")
    return indices


def _weighted_sums(columns, indices):
    """Sum of each column over the rows of each replicate: how often a row was drawn, times its values."""
    n = len(columns)
    step = max(1, BLOCK // max(n, indices.shape[1]))
    sums = []
    for block in np.split(indices, range(step, len(indices), step)):
        flat = block + n * np.arange(len(block))[:, None]
        times_drawn = np.bincount(flat.ravel(), minlength=n * len(block)).reshape(len(block), n)
        sums.append(times_drawn.astype(np.float64) @ columns)
    return np.concatenate(sums)

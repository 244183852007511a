"""Paired bootstrap: every quantity sees the same resampled rows, so differences keep their pairing (Efron 1979)."""

import numpy as np

from calib.checks import as_array, as_confidence, as_correct, as_count, as_floats, as_level
from calib.reliability import assign_bins, bin_edges

BLOCK = 1 << 20  # drawn rows held at once


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


def bootstrap_blocks(n, replicates=2000, seed=113):
    """The rows of `bootstrap_indices`, a block of replicates at a time, where the whole array would be too large.

    Examples
    --------
    >>> blocks = bootstrap_blocks(4, replicates=2)
    >>> np.array_equal(np.concatenate(list(blocks)), bootstrap_indices(4, replicates=2))
    True
    """
    n, replicates = as_count(n, "n"), as_count(replicates, "replicates")
    generator = np.random.default_rng(seed)
    step = max(1, BLOCK // n)
    for start in range(0, replicates, step):
        yield generator.integers(0, n, size=(min(step, replicates - start), n))


def bootstrap_mean(values, indices):
    """Mean of each replicate.

    Parameters
    ----------
    values : array_like (n,) or (n, m)
        One number per row, or m numbers per row that are resampled together.
    indices : ndarray int (replicates, n), or an iterable of such blocks

    Returns
    -------
    ndarray float64 (replicates,) or (replicates, m)

    Examples
    --------
    >>> bootstrap_mean([1.0, 2.0], np.array([[0, 0], [0, 1]])).tolist()
    [1.0, 1.5]
    """
    values = np.asarray(values)
    if values.ndim not in (1, 2):
        raise ValueError(f"values: expected shape (n,) or (n, m), got shape {values.shape} of type {values.dtype}")
    columns = as_floats("values", values if values.ndim == 2 else values[:, None], 2).astype(np.float64, copy=False)
    if not np.isfinite(columns).all():
        row = int((~np.isfinite(columns)).any(axis=1).argmax())
        raise ValueError(f"values: expected finite numbers, got {columns[row]} in row {row}")
    n = len(columns)
    means = []
    for block in _blocks(indices, n):
        flat = block + n * np.arange(len(block))[:, None]
        times_drawn = np.bincount(flat.ravel(), minlength=n * len(block)).reshape(len(block), n)
        means.append(times_drawn @ columns / block.shape[1])
    means = np.concatenate(means)
    return means if values.ndim == 2 else means[:, 0]


def bootstrap_ece(confidence, correct, bins, indices):
    """ECE of each replicate, for several declarations of bins on the same resampled rows.

    Edges are those of the whole sample; only the rows are resampled. Read percentiles of these replicates as the
    spread of the estimate, not as an interval of the truth: the ECE takes absolute values, and resampling adds the
    noise once more. For a calibrated forecaster at n = 256 the 95% interval did not contain the true 0 in any of
    1,000 simulations; for an overconfident one it contained the truth in 88% with 5 bins and in 10% with 20. Nor does
    the interval of a difference of nested ECEs cover, which cannot be negative (``tests/measure/simulations.py``).

    Parameters
    ----------
    confidence, correct : array_like (n,)
    bins : sequence
        Each a number of equal-width bins, an EqualMass or edges, as in `reliability_table`.
    indices : ndarray int (replicates, n), or an iterable of such blocks

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
    if not hasattr(bins, "__len__") or len(bins) == 0:
        raise ValueError(f"bins: expected a sequence of declarations of bins, such as [15], got {bins!r}")
    members = [assign_bins(confidence, bin_edges(confidence, declared)) for declared in bins]
    group, groups = _common_refinement(members)
    blocks = _blocks(indices, len(confidence))
    shares = np.concatenate([_group_sums(block, group, difference, len(groups)) / block.shape[1] for block in blocks])
    replicates = [np.abs(shares @ (column[:, None] == np.unique(column))).sum(axis=1) for column in groups.T]
    return np.column_stack(replicates)


def _common_refinement(members):
    """Group of each row, (n,), where groups share all their bins; bins of each group, (groups, declarations)."""
    code = np.zeros(len(members[0]), dtype=np.int64)
    for member in members:
        _, code = np.unique(code * (member.max() + 1) + member, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    return code, np.column_stack(members)[first]


def _group_sums(block, group, difference, n_groups):
    """Sum of the differences of the drawn rows, by group, (replicates, groups)."""
    numbers = group[block] + n_groups * np.arange(len(block))[:, None]
    sums = np.bincount(numbers.ravel(), weights=difference[block].ravel(), minlength=n_groups * len(block))
    return sums.reshape(len(block), n_groups)


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
    outside = (100 - 100 * as_level(level)) / 2
    replicates = as_array("replicates", replicates)
    if replicates.ndim == 0 or len(replicates) == 0 or replicates.dtype.kind not in "fiu":
        got = f"shape {replicates.shape} of type {replicates.dtype}"
        raise ValueError(f"replicates: expected numbers, a row for each replicate, got {got}")
    if np.isnan(replicates).any():
        raise ValueError("replicates: expected numbers, got NaN")
    return tuple(np.percentile(replicates, [outside, 100 - outside], axis=0))


def _blocks(indices, n):
    """Check drawn rows, an array or an iterable of arrays, and yield them so many at a time as memory should hold."""
    if isinstance(indices, (np.ndarray, list, tuple)):
        indices = [as_array("indices", indices)]
    elif not hasattr(indices, "__iter__") or isinstance(indices, str):
        raise ValueError(f"indices: expected integers (replicates, n) or blocks of them, got {indices!r}")
    for array in map(np.asarray, indices):
        if array.ndim != 2 or array.dtype.kind not in "iu" or array.size == 0:
            shape = f"shape {array.shape} of type {array.dtype}"
            raise ValueError(f"indices: expected integers (replicates, n), got {shape}")
        if array.shape[0] == n != array.shape[1]:
            raise ValueError(f"indices: expected shape (replicates, {n}), got {array.shape}; is it the transpose?")
        if array.min() < 0 or array.max() >= n:
            raise ValueError(f"indices: expected values from 0 to {n - 1}, got {array.min()} to {array.max()}")
        step = max(1, BLOCK // max(n, array.shape[1]))
        for start in range(0, len(array), step):
            yield array[start : start + step].astype(np.int64, copy=False)

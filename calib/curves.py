"""Scores of every row on a grid of temperatures: then a fit to resampled rows is a matrix product and a minimum.

A mean over rows with weights w is ``w @ curves``; so thousands of fits, to resampled rows, other halves or other votes,
cost one product. The minimum is found between the points of the grid by a parabola in log T.
"""

from functools import lru_cache
from itertools import chain

import numpy as np

from calib.checks import as_clusters, as_logits, as_targets, as_temperature, one_hot
from calib.probabilities import shift
from calib.resampling import bootstrap_blocks
from calib.scores import cross_entropy

TEMPERATURES = np.geomspace(0.05, 50, 346)
"""Grid with steps of 2% in T."""


def score_curves(logits, targets, objective, temperatures=TEMPERATURES):
    """NLL or Brier score of each row at each temperature.

    Parameters
    ----------
    logits : array_like (n, K)
    targets : array_like
        Hard labels (n,) or distributions (n, K).
    objective : {"nll", "brier"}
    temperatures : ndarray (m,)

    Returns
    -------
    ndarray float64 (n, m)

    Examples
    --------
    >>> score_curves([[2.0, 0.0]], [0], "nll", np.array([1.0, 2.0])).round(4).tolist()
    [[0.1269, 0.3133]]
    """
    if objective not in ("nll", "brier"):
        raise ValueError(f'objective: expected "nll" or "brier", got {objective!r}')
    shifted = shift(as_logits(logits))
    targets = as_targets(targets, *shifted.shape)
    scaled = (np.divide(shifted.T, as_temperature(T), order="C") for T in temperatures)  # classes first: faster sums
    if objective == "nll":
        distance = cross_entropy(shifted, targets)
        curves = [np.log(np.exp(z).sum(axis=0)) + distance / T for z, T in zip(scaled, temperatures)]
    else:
        shares = np.ascontiguousarray(one_hot(targets, shifted.shape[1]).T)
        weights = (np.exp(z) for z in scaled)
        curves = [((p / p.sum(axis=0) - shares) ** 2).sum(axis=0) for p in weights]
    return np.array(curves).T


def lowest(means, temperatures=TEMPERATURES):
    """Temperature at the minimum of each mean curve, between the points of the grid.

    Parameters
    ----------
    means : ndarray (r, m)
        Mean scores of r fits at m temperatures with equal steps in log T.
    temperatures : ndarray (m,)

    Returns
    -------
    ndarray float64 (r,)
        The end of the grid where the minimum is there.

    Raises
    ------
    ValueError
        If a curve is not finite, or flat: then there is no lowest point.

    Examples
    --------
    >>> grid = np.geomspace(0.5, 8, 100)
    >>> lowest((np.log(grid) - np.log(3)) ** 2 + np.zeros((2, 1)), grid).round(6).tolist()
    [3.0, 3.0]
    """
    means, at = np.atleast_2d(means), np.log(temperatures)
    if means.ndim != 2 or means.shape[1] != len(at):
        raise ValueError(f"means: expected {len(at)} values per curve, as temperatures, got shape {means.shape}")
    finite = np.isfinite(means).all(axis=1)
    if not finite.all():
        raise ValueError(f"means: expected finite scores, got others in curve {finite.argmin()}")
    flat = np.ptp(means, axis=1) <= 1e-12 * np.abs(means).max(axis=1)  # a sum of equal numbers is rounded
    if flat.any():
        raise ValueError(
            "means: expected curves that identify a temperature, got the same score at every one in curve "
            f"{flat.argmax()}"
        )
    best = means.argmin(axis=1)
    inner = np.clip(best, 1, len(at) - 2)
    left, middle, right = (np.take_along_axis(means, (inner + k)[:, None], axis=1)[:, 0] for k in (-1, 0, 1))
    bend = left - 2 * middle + right
    offset = np.divide(left - right, 2 * bend, out=np.zeros(len(bend)), where=bend > 0)
    return np.exp(np.where(best == inner, at[inner] + offset * (at[1] - at[0]), at[best]))


def values_at(means, where, temperatures=TEMPERATURES):
    """Value of each mean curve at its own temperature, by cubic interpolation in log T.

    Parameters
    ----------
    means : ndarray (r, m) or (m,)
        One curve for each temperature in `where`, or one for all of them.
    where : ndarray (r,)
        Temperatures inside the grid.

    Returns
    -------
    ndarray float64 (r,)

    Examples
    --------
    >>> grid = np.geomspace(0.5, 8, 100)
    >>> values_at(np.log(grid) ** 3, np.array([1.0, np.e]), grid).round(6).tolist()
    [0.0, 1.0]
    """
    at = np.log(temperatures)
    position = (np.log(where) - at[0]) / (at[1] - at[0])
    start = np.clip(np.floor(position).astype(int) - 1, 0, len(at) - 4)
    x = (position - start)[:, None]
    nodes = np.arange(4)
    weights = [np.prod([(x[:, 0] - j) / (k - j) for j in nodes if j != k], axis=0) for k in nodes]
    points = start[:, None] + nodes
    values = np.asarray(means)[points] if np.ndim(means) == 1 else np.take_along_axis(means, points, axis=1)
    return (values * np.column_stack(weights)).sum(axis=1)


def bootstrap_weights(n, clusters=None, replicates=2000, seed=113):
    """How often each row is drawn in each replicate, rows or whole clusters with replacement.

    The last few arrays are kept: models that are judged on the same rows share their replicates.

    Parameters
    ----------
    n : int
        Rows.
    clusters : array_like (n,), optional
        Rows with the same value share, say, an image or a premise, and are drawn together (Field and Welsh 2007).
    replicates, seed : int
        The rows drawn are those of `calib.bootstrap_indices`.

    Returns
    -------
    ndarray float64 (replicates, n)
        Read-only.

    Examples
    --------
    >>> weights = bootstrap_weights(4, clusters=["a", "b", "b", "c"], replicates=100)
    >>> np.array_equal(weights[:, 1], weights[:, 2]), set(weights[:, [0, 1, 3]].sum(axis=1).tolist())
    (True, {3.0})
    """
    members = np.arange(n) if clusters is None else as_clusters(clusters, n)[1]
    if members.max() == 0:
        raise ValueError(f"clusters: expected at least two different names, got one for all {n} rows")
    return _weights_of(members.astype(np.int64).tobytes(), replicates, seed)


@lru_cache(maxsize=3)
def _weights_of(members, replicates, seed):
    members = np.frombuffer(members, dtype=np.int64)
    size = members.max() + 1
    weights = np.empty((replicates, len(members)))
    draws = chain.from_iterable(bootstrap_blocks(size, replicates, seed))
    for weight, drawn in zip(weights, draws, strict=True):
        weight[:] = np.bincount(drawn, minlength=size)[members]
    weights.flags.writeable = False
    return weights


def weighted_means(weights, values):
    """Means of the columns of `values` (n, m), or of one column (n,), by each row of weights (r, n)."""
    totals = weights.sum(axis=1)
    if not totals.all():
        raise ValueError(f"weights: expected rows in each replicate, got none in replicate {totals.argmin()}")
    return (weights @ values) / (totals if np.ndim(values) == 1 else totals[:, None])

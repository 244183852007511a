"""Scores of every row on a grid of temperatures: then a fit to resampled rows is a matrix product and a minimum.

A mean over rows with weights w is ``w @ curves``; so thousands of fits, to resampled rows, other halves or other votes,
cost one product. The minimum is found between the points of the grid by a parabola in log T.
"""

import numpy as np

from calib.checks import as_count, as_logits, as_targets, as_temperature
from calib.probabilities import shift
from calib.scores import cross_entropy, squared_distance

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
    logits = as_logits(logits)
    targets = as_targets(targets, *logits.shape)
    shifted, columns = shift(logits), []
    for temperature in temperatures:
        scaled = shifted / as_temperature(temperature)
        logs = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
        columns.append(cross_entropy(logs, targets) if objective == "nll" else squared_distance(np.exp(logs), targets))
    return np.column_stack(columns)


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

    Examples
    --------
    >>> grid = np.geomspace(0.5, 8, 100)
    >>> lowest((np.log(grid) - np.log(3)) ** 2 + np.zeros((2, 1)), grid).round(6).tolist()
    [3.0, 3.0]
    """
    means, at = np.atleast_2d(means), np.log(temperatures)
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

    Examples
    --------
    >>> weights = bootstrap_weights(4, clusters=["a", "b", "b", "c"], replicates=100)
    >>> np.array_equal(weights[:, 1], weights[:, 2]), set(weights[:, [0, 1, 3]].sum(axis=1).tolist())
    (True, {3.0})
    """
    n, replicates = as_count(n, "n"), as_count(replicates, "replicates")
    members = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    if len(members) != n:
        raise ValueError(f"clusters: expected {n} values, one per row, got {len(members)}")
    size = members.max() + 1
    drawn = np.random.default_rng(seed).integers(0, size, size=(replicates, size))
    times = np.bincount((drawn + size * np.arange(replicates)[:, None]).ravel(), minlength=size * replicates)
    return times.reshape(replicates, size)[:, members].astype(np.float64)


def weighted_means(weights, values):
    """Means of the columns of `values` (n, m), or of one column (n,), by each row of weights (r, n)."""
    totals = weights.sum(axis=1)
    return (weights @ values) / (totals if np.ndim(values) == 1 else totals[:, None])

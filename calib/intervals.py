"""How far a number may be from its truth: intervals of temperatures and differences, ECE without its bias.

How often the intervals cover, and what bias is left, is measured by ``tests/measure/simulations.py``.
"""

import numpy as np

from calib.checks import (
    as_clusters,
    as_confidence,
    as_correct,
    as_count,
    as_floats,
    as_level,
    as_logits,
    as_targets,
)
from calib.probabilities import moments, shift
from calib.reliability import assign_bins, bin_edges
from calib.temperature import fit_temperature

BLOCK = 1 << 20  # numbers held at once


def temperature_interval(logits, targets, level=0.95, clusters=None):
    """Interval of the temperature that `fit_temperature` finds by NLL, from the spread of its estimating equation.

    With b = 1/T the fit solves ``mean(s) = 0`` for ``s_i = E_p[z_i] - z_i,target``, p the softmax at b, and the
    variance of b is ``mean(s^2) / (n * mean(Var_p[z])^2)``: the sandwich (Huber 1967; White 1982), which holds where
    no temperature is the true one, too; then the interval is for the T that is best on the population. It is symmetric
    in 1/T, in which the NLL is convex and the estimate least skewed: with few rows, intervals in log T, and more so in
    T, miss more often.

    Parameters
    ----------
    logits : array_like (n, K)
        One independent row per example, at least two.
    targets : array_like
        Hard labels (n,) or distributions (n, K).
    level : float
    clusters : array_like (n,), optional
        Rows with the same value share, say, an image or a premise; then clusters are what is independent, and the
        scores `s_i` are summed by cluster before they are squared (Liang and Zeger 1986). No cluster may hold more
        than a third of the rows.

    Returns
    -------
    low, high : float
        `high` is inf where the data do not exclude 1/T = 0.

    Raises
    ------
    ValueError
        If every temperature gives the same predictions, the best one is not finite and above 0, rows or clusters
        do not differ, or one cluster holds more than a third of the rows.

    Notes
    -----
    Student's t with n - 1 degrees of freedom, n the number of rows or clusters. Where few predictions are wrong, the
    interval is a little too short: those few rows carry most of the information. So it is with clusters of unlike
    size: beside 99 small clusters, one with a third of the rows leaves an interval of level 0.95 that covers about
    0.85 of the time, one with half of them 0.72.

    Examples
    --------
    >>> low, high = temperature_interval([[6.0, 0.0]] * 40, [0] * 30 + [1] * 10)
    >>> round(low, 2), round(high, 2)
    (3.25, 17.11)
    """
    return fit_with_interval(logits, targets, level, clusters)[1:]


def fit_with_interval(logits, targets, level=0.95, clusters=None):
    """Fit of `fit_temperature` by NLL and the ends of its `temperature_interval`, which see, with one fit for both.

    Examples
    --------
    >>> fit, low, high = fit_with_interval([[6.0, 0.0]] * 40, [0] * 30 + [1] * 10)
    >>> round(fit.temperature, 2), round(low, 2), round(high, 2)
    (5.46, 3.25, 17.11)
    """
    fit = fit_temperature(logits, targets)
    logits = as_logits(logits)
    targets = as_targets(targets, *logits.shape)
    members = np.arange(len(logits)) if clusters is None else _comparable(clusters, len(logits))
    n_units = int(members.max()) + 1
    quantile = _student(level, n_units, "logits")
    if not fit.identified:
        raise ValueError("logits: expected rows that identify a temperature, got the same predictions at every one")
    if fit.at_bound is not None:
        end = {"lower": "every target at a row maximum", "upper": "targets that favour low logits"}[fit.at_bound]
        raise ValueError(f"targets: expected a fit inside its bounds, got T at the {fit.at_bound} one ({end})")
    scores, curvature = _estimating_equation(logits, targets, 1 / fit.temperature)
    sums = np.bincount(members, weights=scores)
    deviation = sums.std(ddof=1) * np.sqrt(n_units) / len(logits) / curvature
    centre = 1 / fit.temperature
    if deviation <= 1e-9 * centre:
        units = "rows" if clusters is None else "clusters"
        raise ValueError(f"targets: expected {units} that differ, got the same best temperature from each")
    half = quantile * deviation
    return fit, float(1 / (centre + half)), float(1 / (centre - half)) if centre > half else np.inf


def mean_difference_interval(a, b, level=0.95):
    """Interval of the mean of ``a - b`` over paired rows, by Student's t with n - 1 degrees of freedom.

    For scores per row, such as the NLL or Brier score of the same held-out rows at two temperatures. It holds the
    temperatures fixed: what varies is which rows were drawn. On these scores it covers like the percentile bootstrap
    of `calib.resampling`, and needs no random numbers. For 50 rows both miss more often than
    they should, since few rows hold the large losses.

    Parameters
    ----------
    a, b : array_like (n,)
        Finite numbers, at least two.
    level : float

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> low, high = mean_difference_interval([0.2, 0.4, 0.9, 0.1], [0.1, 0.2, 0.6, 0.1])
    >>> round(low, 3), round(high, 3)
    (-0.055, 0.355)
    """
    a, b = as_floats("a", a, 1), as_floats("b", b, 1)
    if a.shape != b.shape:
        raise ValueError(f"b: expected shape {a.shape}, as a, got {b.shape}")
    for name, values in (("a", a), ("b", b)):
        if not np.isfinite(values).all():
            row = int((~np.isfinite(values)).argmax())
            raise ValueError(f"{name}: expected finite numbers, got {values[row]} in row {row}")
    difference = a.astype(np.float64) - b
    half = _student(level, len(a), "a") * difference.std(ddof=1) / np.sqrt(len(a))
    return float(difference.mean() - half), float(difference.mean() + half)


def debiased_ece(confidence, correct, bins, folds=5, splits=20, seed=113):
    """ECE with the sign of each bin's gap taken from other rows than its size.

    The ECE takes the absolute value of noise: on average it is too high, most of all for calibrated
    predictions. Here the rows of a bin are dealt into folds at random. Each fold adds the sum of its
    ``correct - confidence``, with the sign of that sum over the other folds; `splits` such deals are averaged.

    Parameters
    ----------
    confidence, correct, bins
        As in `calib.ece`.
    folds : int
        At least 2. More folds: less bias for miscalibrated predictions, more variance.
    splits, seed : int
        How often the rows are dealt anew, and by which random numbers.

    Returns
    -------
    float
        At most the ECE; it can be negative, and for calibrated predictions it is so about half the time.

    Notes
    -----
    It estimates the sum over bins of ``n_bin / n * |E[correct - confidence | bin]|``, as the ECE does; neither sees
    what cancels within a bin (Kumar et al. 2019, section 3). The rows being independent, and the counts given, its
    mean is 0 where all those gaps are 0 and never above the truth (a wrong sign subtracts), as the mean of
    the ECE is never below: on average the two enclose the truth. A bin of one row adds 0.

    Examples
    --------
    >>> round(debiased_ece([0.9] * 4, [True, True, True, False], bins=1), 3)
    -0.3
    >>> round(debiased_ece([0.75] * 40, [True] * 40, bins=10), 3)
    0.25
    """
    difference, members, _ = _binned(confidence, correct, bins)
    folds, splits = as_count(folds, "folds", minimum=2), as_count(splits, "splits")
    rng = np.random.default_rng(seed)
    n, size = len(difference), members.max() + 1
    total = np.bincount(members, weights=difference, minlength=size)[:, None]
    dealt = 0.0
    for _ in range(splits):
        order = rng.permutation(n)
        order = order[np.argsort(members[order], kind="stable")]  # bin by bin, at random within
        cell = members[order] * folds + np.arange(n) % folds
        part = np.bincount(cell, weights=difference[order], minlength=size * folds).reshape(size, folds)
        dealt += (np.sign(total - part) * part).sum()
    return float(dealt / (splits * n))


def debiased_squared_ece(confidence, correct, bins):
    """Squared calibration error of the bins, without bias, by pairs of different rows.

    Parameters
    ----------
    confidence, correct, bins
        As in `calib.ece`.

    Returns
    -------
    float
        It can be negative, for calibrated predictions a little over half the time.

    Notes
    -----
    Over the bins with two rows or more, the mean of ``n_bin / n * E[correct - confidence | bin]^2`` given the counts is
    met exactly, at any n. It is the debiased estimator of Kumar et al. (2019, section 4) for confidences that
    vary within a bin: the squared gap less the variance of its mean. A bin of one row adds 0. Its square root is the
    error in root mean square, not the ECE, and biased again.

    Examples
    --------
    >>> round(debiased_squared_ece([0.75] * 40, [True] * 40, bins=10), 4)
    0.0625
    """
    difference, members, counts = _binned(confidence, correct, bins)
    total = np.bincount(members, weights=difference)
    pairs = total**2 - np.bincount(members, weights=difference**2)  # sum over i != j of d_i * d_j
    return float((pairs / np.maximum(counts - 1, 1)).sum() / len(difference))


def _student(level, n, name):
    """Two-sided quantile of Student's t with n - 1 degrees of freedom."""
    from scipy.special import stdtrit

    level = as_level(level)
    if n < 2:
        raise ValueError(f"{name}: expected at least two rows for an interval, got {n}")
    return stdtrit(n - 1, (1 + level) / 2)


def _comparable(clusters, n):
    """Cluster of each row, (n,), where none is so large that the spread between clusters is its own deviation."""
    names, members = as_clusters(clusters, n)
    counts = np.bincount(members)
    if 3 * counts.max() > n:
        largest = names[[counts.argmax()]].tolist()[0]
        raise ValueError(
            f"clusters: expected at most a third of the rows in each, got {counts.max() / n:.0%} of them in {largest!r}"
        )
    return members


def _estimating_equation(logits, targets, beta):
    """Derivative of the NLL by 1/T of each row, (n,), and the mean of the second derivatives."""
    scores, curvature = np.empty(len(logits)), 0.0
    step = max(1, BLOCK // logits.shape[1])
    for rows in (slice(start, start + step) for start in range(0, len(logits), step)):
        margins = shift(logits[rows])
        _, mean, variance = moments(beta * margins)
        margins[np.isneginf(margins)] = 0  # a masked class: its weight in the target is 0
        if targets.ndim == 1:
            at_target = np.take_along_axis(margins, targets[rows, None], axis=1)[:, 0]
        else:
            at_target = (targets[rows] * margins).sum(axis=1)
        scores[rows] = mean / beta - at_target
        curvature += variance.sum() / beta**2
    return scores, curvature / len(logits)


def _binned(confidence, correct, bins):
    """Correct less confidence (n,), the number of each row's bin among the filled ones (n,), and their counts."""
    confidence = as_confidence(confidence)
    difference = as_correct(correct, len(confidence)) - confidence.astype(np.float64)
    members = assign_bins(confidence, bin_edges(confidence, bins))
    _, members, counts = np.unique(members, return_inverse=True, return_counts=True)
    return difference, members, counts

"""The soft-label gap taken apart: population, labels and objective, changed one at a time.

==========  =================================  ===========
step        fitted to                          objective
==========  =================================  ===========
hard        hard labels of the validation set  NLL
population  hard labels of the first half      NLL
soft_nll    votes of the first half            NLL
oracle      votes of the first half            Brier score
==========  =================================  ===========

All are judged on the second half, by the Brier score against the votes. A part of the gap is the difference of two
neighbours. Functions named ``*_scores`` return Brier scores with one column for each step.
"""

from typing import NamedTuple

import numpy as np

from calib.curves import bootstrap_weights, lowest, score_curves, values_at, weighted_means
from calib.isotonic import IsotonicCalibration
from calib.probabilities import log_softmax, softmax
from calib.resampling import interval
from calib.scores import cross_entropy, squared_distance
from calib.temperature import fit_temperature

STEPS = ("hard", "population", "soft_nll", "oracle")
PARTS = ("gap_population", "gap_label", "gap_objective", "gap")
FITS = ("hard", "hard_brier", "population", "population_brier", "soft_nll", "oracle")
"""The steps, and what lies on the other ways from the first to the last: hard labels, fitted by the Brier score."""
ORDERS = {
    ("population", "label", "objective"): STEPS,
    ("population", "objective", "label"): ("hard", "population", "population_brier", "oracle"),
    ("objective", "population", "label"): ("hard", "hard_brier", "population_brier", "oracle"),
}
"""Orders of the changes, and the fits on the way. Labels come after the population: only the halves have votes."""
ISOTONIC_PARTS = ("iso_gap_population", "iso_gap_label", "iso_gap")
GRID = np.geomspace(0.4, 16, 187)
"""Temperatures of the resampled fits, in steps of 2%."""
NEAR = 20  # points of the grid to each side: temperatures up to 1.5 times higher or lower
_ENDS = f"temperatures from {GRID[0]:g} to {GRID[-1]:g}"


def parts_of(scores):
    """Differences of neighbouring steps along the last axis, then their sum, which is the gap.

    Examples
    --------
    >>> parts_of([0.5, 0.25, 0.125]).tolist()
    [0.25, 0.125, 0.375]
    """
    scores = np.asarray(scores)
    return np.concatenate([-np.diff(scores), scores[..., :1] - scores[..., -1:]], axis=-1)


def gap_parts(study):
    """Four temperatures, what each scores on the second half, and the three parts of the gap.

    Parameters
    ----------
    study : calib.softlabels.study.Study
        Only T_population is fitted to the hard labels of its soft-labelled examples.

    Returns
    -------
    dict of str to float
        ``T_<step>`` and ``brier_<step>`` for hard, population, soft_nll, oracle; gap_population, gap_label,
        gap_objective, gap.
    """
    temperatures = fit_steps(study)
    scores = temperature_scores(study, temperatures).mean(axis=0)
    found = {f"T_{step}": T for step, T in zip(STEPS, temperatures)}
    found |= {f"brier_{step}": score for step, score in zip(STEPS, scores.tolist())}
    return found | dict(zip(PARTS, parts_of(scores).tolist()))


def fit_steps(study):
    """The four temperatures, in the order of `STEPS`."""
    return _fit_on(study.validation, study.first)


def _fit_on(validation, first, steps=STEPS):
    fitted_to = {
        "hard": (validation.logits, validation.labels, "nll"),
        "hard_brier": (validation.logits, validation.labels, "brier"),
        "population": (first.logits, first.labels, "nll"),
        "population_brier": (first.logits, first.labels, "brier"),
        "soft_nll": (first.logits, first.distributions, "nll"),
        "oracle": (first.logits, first.distributions, "brier"),
    }
    return [fit_temperature(*fitted_to[step]).temperature for step in steps]


def temperature_scores(study, temperatures):
    """Score of each example of the second half at each temperature, (n, len(temperatures))."""
    logits, targets = study.second.logits, study.second.distributions
    return np.column_stack([squared_distance(softmax(logits, T), targets) for T in temperatures])


def isotonic_scores(study):
    """Score of each example of the second half under three isotonic calibrations, (n, 3).

    They are fitted to the hard labels of the validation set, the hard labels of the first half and its votes. There
    is no fourth: the map that minimises the Brier score of a class minimises its NLL too (Brummer and du Preez 2013).
    """
    validation, first, second = study.validation, study.first, study.second
    fits = ((validation, validation.labels), (first, first.labels), (first, first.distributions))
    maps = [IsotonicCalibration().fit(fitted.logits, targets) for fitted, targets in fits]
    return np.column_stack([squared_distance(one.predict_proba(second.logits), second.distributions) for one in maps])


def resampled_scores(scores, clusters=None, replicates=2000, seed=113):
    """Mean scores of each replicate of the second half, the fits held fixed.

    Parameters
    ----------
    scores : ndarray (n, steps)
        From `temperature_scores` or `isotonic_scores`.
    clusters : array_like (n,), optional
        Examples with the same value are drawn together.
    replicates, seed : int

    Returns
    -------
    ndarray (replicates, steps)
    """
    return weighted_means(bootstrap_weights(len(scores), clusters, replicates, seed), scores)


def step_curves(study):
    """Curves over `GRID` that the steps are fitted to: the first of the validation set, the others of both halves.

    A temperature of `fit_steps` outside the grid is an error: resampled fits end at its ends.
    """
    for step, T in zip(STEPS, fit_steps(study)):
        if not GRID[0] < T < GRID[-1]:
            raise ValueError(f"T_{step}: expected a fit inside the grid of {_ENDS}, got {T:.4g}")
    validation, soft = study.validation, study.soft
    return (
        score_curves(validation.logits, validation.labels, "nll", GRID),
        score_curves(soft.logits, soft.labels, "nll", GRID),
        score_curves(soft.logits, soft.distributions, "nll", GRID),
        score_curves(soft.logits, soft.distributions, "brier", GRID),
    )


def refitted_scores(curves, clusters, replicates=2000, seed=113):
    """Mean scores of each replicate of all three sets, with the four temperatures fitted in each.

    Clusters are drawn from the three sets together: what is in several of them is drawn for all at once.

    Parameters
    ----------
    curves : tuple of ndarray
        From `step_curves`.
    clusters : array_like
        Examples with the same value are drawn together: those of the validation set, then those of `soft`.
    replicates, seed : int

    Returns
    -------
    ndarray (replicates, 4)
    """
    n, n_soft = len(curves[0]), len(curves[1])
    middle = n_soft // 2
    weights = bootstrap_weights(n + n_soft, clusters, replicates, seed)
    validation, first, second = np.split(weights, [n, n + middle], axis=1)
    fits = ((validation, curves[0]), *((first, of_step[:middle]) for of_step in curves[1:]))
    return scores_at(weighted_fits(fits), second, curves[-1][middle:])


def shuffled_scores(curves, draws=200, seed=113):
    """Mean scores for halves drawn at random in place of those in the order of the file, (draws, 4)."""
    n, n_soft = len(curves[0]), len(curves[1])
    places = np.random.default_rng(seed).permuted(np.tile(np.arange(n_soft), (draws, 1)), axis=1)
    first = (places < n_soft // 2).astype(np.float64)
    fits = ((np.ones((1, n)), curves[0]), *((first, of_step) for of_step in curves[1:]))
    return scores_at(weighted_fits(fits), 1 - first, curves[-1])


def crossfitted_scores(study):
    """Mean scores of six fits, with the halves in the order of the file, and swapped: fitted on the second.

    The mean of both is the cross-fitted estimate: every example is fitted once and judged once.

    Returns
    -------
    brier, nll : ndarray (2, 6)
        Scores against the votes, a column for each of `FITS`.
    """
    by_brier, by_nll = [], []
    for fitted, judged in ((study.first, study.second), (study.second, study.first)):
        temperatures, votes = _fit_on(study.validation, fitted, FITS), judged.distributions
        by_brier.append([squared_distance(softmax(judged.logits, T), votes).mean() for T in temperatures])
        by_nll.append([cross_entropy(log_softmax(judged.logits, T), votes).mean() for T in temperatures])
    return np.array(by_brier), np.array(by_nll)


def ordered_parts(scores):
    """Parts of the gap for each of `ORDERS`.

    Parameters
    ----------
    scores : ndarray (..., 6)
        A column for each of `FITS`.

    Returns
    -------
    ndarray (3, ..., 4)
        `PARTS`. The mean over the orders is the Shapley value of each change (Shapley 1953), among the orders that the
        data allow.

    Examples
    --------
    >>> ordered_parts(np.array([8.0, 7.0, 5.0, 4.5, 2.0, 1.0])).tolist()
    [[3.0, 3.0, 1.0, 7.0], [3.0, 3.5, 0.5, 7.0], [2.5, 3.5, 1.0, 7.0]]
    """
    found = []
    for changes, fits in ORDERS.items():
        parts = parts_of(scores[..., [FITS.index(fit) for fit in fits]])
        found.append(parts[..., [*(changes.index(name) for name in ("population", "label", "objective")), 3]])
    return np.array(found)


def crossfitted_parts(curves, clusters=None, replicates=2000, seed=113):
    """Cross-fitted parts in each replicate: clusters drawn anew, halves drawn anew, all temperatures fitted in each.

    So their spread holds which examples were drawn, which of them were fitted and which judged.

    Parameters
    ----------
    curves : tuple of ndarray
        From `step_curves`.
    clusters : array_like, optional
        As in `refitted_scores`.
    replicates, seed : int

    Returns
    -------
    by_brier : ndarray (replicates, 4)
        `PARTS`, mean of both orders of the halves.
    by_nll : ndarray (replicates, 3)
        Judged by the NLL of the votes: what population and labels change, and both together.
    """
    n, n_soft = len(curves[0]), len(curves[1])
    validation, soft = np.split(bootstrap_weights(n + n_soft, clusters, replicates, seed), [n], axis=1)
    places = np.random.default_rng([seed, 1]).permuted(np.tile(np.arange(n_soft), (replicates, 1)), axis=1)
    first = soft * (places < n_soft // 2)
    by_brier, by_nll = [], []
    for fitted, judged in ((first, soft - first), (soft - first, first)):
        fits = weighted_fits(((validation, curves[0]), *((fitted, of_step) for of_step in curves[1:])))
        by_brier.append(parts_of(scores_at(fits, judged, curves[3])))
        by_nll.append(parts_of(scores_at(fits[:3], judged, curves[2])))
    return np.mean(by_brier, axis=0), np.mean(by_nll, axis=0)


def weighted_fits(fits):
    """Temperatures of the steps, a list of (r,), where `fits` are pairs of weights (r, n) and curves (n, m).

    A fit at an end of the grid is an error: the best temperature may lie beyond it.
    """
    temperatures = [_fit_near(*fit) for fit in fits]
    for step, found in zip(STEPS, temperatures):
        at_end = np.isclose(found[:, None], GRID[[0, -1]]).any(axis=1)
        if at_end.any():
            raise ValueError(
                f"T_{step}: expected resampled fits inside the grid of {_ENDS}, got {at_end.sum()} of {len(found)} "
                f"at its ends, the first in replicate {at_end.argmax()}"
            )
    return temperatures


def _fit_near(weights, curves):
    """Temperatures (r,): near the lowest point of the mean curve where all are inside there, else on the whole grid."""
    centre = int(curves.mean(axis=0).argmin())
    near = slice(max(centre - NEAR, 0), centre + NEAR + 1)
    found = lowest(weighted_means(weights, curves[:, near]), GRID[near])
    at_end = np.isclose(found[:, None], GRID[near][[0, -1]]).any()
    return lowest(weighted_means(weights, curves), GRID) if at_end else found


def scores_at(temperatures, weights, curves):
    """Mean score of weighted rows at each of the temperatures, (r, steps), from the curves (n, m) of the rows."""
    low, high = (extreme(np.concatenate(temperatures)) for extreme in (np.min, np.max))
    used = slice(max(np.searchsorted(GRID, low) - 3, 0), np.searchsorted(GRID, high) + 3)  # a cubic needs two beside
    means, grid = weighted_means(weights, curves[:, used]), GRID[used]
    return np.column_stack([values_at(means, np.broadcast_to(T, len(means)), grid) for T in temperatures])


def part_intervals(scores, names=PARTS):
    """95% percentile intervals of the parts and of the gap.

    Parameters
    ----------
    scores : ndarray (replicates, steps)
    names : sequence of str
        A name for each part and for the gap.

    Returns
    -------
    dict of str to float
        ``<name>_low`` and ``<name>_high``.
    """
    ends = dict(zip(("low", "high"), interval(parts_of(scores))))
    return {f"{name}_{end}": value for end, values in ends.items() for name, value in zip(names, values.tolist())}


class PartsStudy(NamedTuple):
    """The parts of one gap, and how they move.

    Attributes
    ----------
    found : dict of str to float
        What `gap_parts` gives; ``iso_brier_population`` and `ISOTONIC_PARTS`; of each part ``_low`` and ``_high`` with
        the fits held fixed and, but for the isotonic, ``_refit_low`` and ``_refit_high`` with the fits inside; of
        `PARTS` the mean over random halves, ``random_<part>``, and its standard deviation, ``random_<part>_sd``.
    fixed, refitted : ndarray (replicates, 4)
        `PARTS` in each replicate, fits held fixed and inside.
    random : ndarray (draws, 4)
        `PARTS` for random halves.
    curves : tuple of ndarray
        From `step_curves`, for other resampling.
    """

    found: dict
    fixed: np.ndarray
    refitted: np.ndarray
    random: np.ndarray
    curves: tuple


def study_parts(study, replicates=2000, draws=200):
    """Parts of the gap with intervals over examples, fits fixed and inside, and over random halves.

    Parameters
    ----------
    study : calib.softlabels.study.Study
    replicates, draws : int
        Of every bootstrap, and of random halves.

    Returns
    -------
    PartsStudy
    """
    found = gap_parts(study)
    isotonic = isotonic_scores(study)
    scores = temperature_scores(study, [found[f"T_{step}"] for step in STEPS])
    resampled = resampled_scores(np.hstack([scores, isotonic]), study.judged_clusters, replicates)
    fixed, of_isotonic = np.split(resampled, [len(STEPS)], axis=1)
    curves = step_curves(study)
    refitted = refitted_scores(curves, study.clusters, replicates)
    random = parts_of(shuffled_scores(curves, draws))
    found |= part_intervals(fixed) | part_intervals(refitted, [f"{part}_refit" for part in PARTS])
    means = isotonic.mean(axis=0)
    found |= {"iso_brier_population": float(means[1])} | dict(zip(ISOTONIC_PARTS, parts_of(means).tolist()))
    found |= part_intervals(of_isotonic, ISOTONIC_PARTS)
    for part, mean, deviation in zip(PARTS, random.mean(axis=0).tolist(), random.std(axis=0).tolist()):
        found |= {f"random_{part}": mean, f"random_{part}_sd": deviation}
    return PartsStudy(found, parts_of(fixed), parts_of(refitted), random, curves)

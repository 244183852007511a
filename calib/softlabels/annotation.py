"""How many annotations does a temperature need? Fits to raw votes, and to votes drawn many times over.

The NLL is linear in its target: ``NLL_i(T; q) = NLL_i(T; top) + q @ (z_top - z) / T``, with top the largest logit of
row i. So one label drawn at random from an item's votes gives, on average, the objective of all its votes; and a fit
to other votes on the same items needs one number per item, not a new curve.
"""

from dataclasses import dataclass

import numpy as np

from calib.checks import as_count, as_logits, as_names, as_probabilities, as_targets, as_temperature
from calib.curves import TEMPERATURES, lowest, score_curves
from calib.intervals import fit_with_interval
from calib.probabilities import moments, shift
from calib.softlabels.votes import as_counts, count_votes, refuse_unvoted


@dataclass(frozen=True)
class VoteFit:
    """A temperature fitted to votes.

    Attributes
    ----------
    temperature, low, high : float
        The fit, and the ends of its interval.
    n_items, n_votes : int
    """

    temperature: float
    low: float
    high: float
    n_items: int
    n_votes: int

    @property
    def votes_per_item(self):
        """Mean number of votes on an item."""
        return self.n_votes / self.n_items


def fit_temperature_to_votes(logits, votes, items=None, class_names=None, clusters=None, level=0.95):
    """Fit the temperature that minimises the NLL of raw votes, with an interval.

    One vote per item is enough for an unbiased objective. Pass every vote: the majority of three or more is sharper
    than the votes, and a temperature fitted to it too low.

    Parameters
    ----------
    logits : array_like (n, K)
    votes : array_like (n, K), or table
        Counts of each class; or one row per vote, as anything with columns by name (a dict of lists, a pandas data
        frame): "item", "label", and "annotator" where it is known.
    items : sequence (n,), optional
        Names of the rows of `logits`, by which a table says what was voted on; by default 0 to n - 1.
    class_names : sequence (K,), optional
        What a table calls the classes, in the order of the columns; by default 0 to K - 1.
    clusters : array_like (n,), optional
        Items with the same value share, say, a premise or an image, and are not independent.
    level : float

    Returns
    -------
    VoteFit

    Raises
    ------
    ValueError
        For votes that do not fit the items; and where the votes give no temperature, for example since each is for
        the largest logit of its item: then more items are needed.

    Notes
    -----
    Every item weighs the same, however many votes it has: the temperature is that of the population from which the
    items come. The number of votes on an item may depend on the item, but not on the votes themselves. Where
    collection went on because the first votes differed, or stopped because they agreed, the shares are biased and so
    is the temperature: pass the first m votes on every item, m the number that all of them have.

    The interval is that of `temperature_interval`. Its independent units are items, or clusters: many votes on an item
    do not make many items.

    Examples
    --------
    One vote on each of 400 items, drawn at T = 2:

    >>> rng = np.random.default_rng(1)
    >>> logits = 3 * rng.normal(size=(400, 3))
    >>> items = [f"item-{i}" for i in range(400)]
    >>> votes = {"item": items, "label": (logits / 2 + rng.gumbel(size=(400, 3))).argmax(axis=1)}
    >>> fit = fit_temperature_to_votes(logits, votes, items)
    >>> round(fit.temperature, 2), round(fit.low, 2), round(fit.high, 2)
    (1.95, 1.69, 2.3)
    >>> fit.n_items, fit.n_votes, fit.votes_per_item
    (400, 400, 1.0)
    """
    logits = as_logits(logits)
    items = as_names("items", range(len(logits)) if items is None else items)
    class_names = as_names("class_names", range(logits.shape[1]) if class_names is None else class_names)
    for name, values, size in (("items", items, len(logits)), ("class_names", class_names, logits.shape[1])):
        if len(values) != size:
            raise ValueError(f"{name}: expected {size} names, as logits of shape {logits.shape}, got {len(values)}")
    counts = count_votes(votes, items, class_names) if hasattr(votes, "keys") else as_counts(votes, logits.shape)
    refuse_unvoted(counts, items)
    shares = counts / counts.sum(axis=1, keepdims=True)
    fit, low, high = fit_with_interval(logits, shares, level, clusters)
    return VoteFit(fit.temperature, low, high, len(logits), int(counts.sum()))


def draw_votes(distributions, votes_per_item, draws=200, seed=113):
    """Draw votes on every item again and again, with replacement from its own votes.

    Parameters
    ----------
    distributions : array_like (n, K)
        Share of each class among the votes of an item.
    votes_per_item : sequence of int
        Ascending. The votes of a smaller number are the first of those of a larger one.
    draws, seed : int

    Yields
    ------
    counts : ndarray int64 (draws, n, K)
        For each number of votes per item, in turn.
    majority : ndarray int64 (draws, n)
        Class with most of these votes, ties at random.

    Examples
    --------
    >>> for counts, majority in draw_votes([[0.5, 0.5], [0.0, 1.0]], [1, 3], draws=1, seed=4):
    ...     print(counts.tolist(), majority.tolist())
    [[[1, 0], [0, 1]]] [[0, 1]]
    [[[2, 1], [0, 3]]] [[0, 1]]
    """
    distributions, draws = as_probabilities(distributions, "distributions"), as_count(draws, "draws")
    votes_per_item = [as_count(m, "votes_per_item") for m in votes_per_item]
    if votes_per_item != sorted(votes_per_item):
        raise ValueError(f"votes_per_item: expected ascending numbers, got {votes_per_item}")
    rng, counts = np.random.default_rng(seed), 0
    for more in np.diff(votes_per_item, prepend=0):
        counts = counts + rng.multinomial(more, distributions, size=(draws, len(distributions)))
        yield counts, (counts + rng.random(counts.shape)).argmax(axis=-1)


def simulate_annotation(logits, distributions, designs, draws=200, seed=113):
    """Fit temperatures by NLL to votes drawn anew: to their distribution, and to their majority.

    Parameters
    ----------
    logits : array_like (n, K)
        Finite.
    distributions : array_like (n, K)
        From which the votes of each item are drawn.
    designs : sequence of (int, int)
        Votes per item, and items, which are drawn without replacement. All designs see the same draws.
    draws, seed : int

    Returns
    -------
    distribution, majority : ndarray float64 (designs, draws)
        Temperatures, on and between the points of `calib.curves.TEMPERATURES`; at an end of it where the drawn
        votes ask for less or more.

    Examples
    --------
    >>> logits, votes = [[2.0, 0.0], [4.0, 0.0], [6.0, 0.0]] * 100, [[0.6, 0.4], [0.7, 0.3], [0.8, 0.2]] * 100
    >>> distribution, majority = simulate_annotation(logits, votes, [(1, 300), (5, 300)])
    >>> distribution.mean(axis=1).round(1).tolist(), majority.mean(axis=1).round(1).tolist()
    ([4.6, 4.5], [4.6, 2.3])
    """
    logits = _as_finite(logits)
    distributions = as_targets(distributions, *logits.shape, name="distributions")
    draws, n, designs = as_count(draws, "draws"), len(logits), list(designs)
    if not designs or any(np.shape(design) != (2,) for design in designs):
        raise ValueError(f"designs: expected pairs, votes per item and items, at least one, got {designs}")
    designs = [(as_count(number, "designs"), as_count(size, "designs")) for number, size in designs]
    numbers, sizes = (sorted(set(of_designs)) for of_designs in zip(*designs))
    if sizes[-1] > n:
        raise ValueError(f"designs: expected at most {n} items, one per row of the logits, got {sizes[-1]}")
    curves = score_curves(logits, logits.argmax(axis=1), "nll")
    shortfall = logits.max(axis=1, keepdims=True) - logits  # NLL = curve + shortfall of the target / T
    likely_first = np.argsort(-distributions, axis=1, kind="stable")  # drawing is faster so, for many classes
    distributions, shortfall = (np.take_along_axis(a, likely_first, axis=1) for a in (distributions, shortfall))
    by_items, by_votes = np.random.default_rng(seed).spawn(2)
    order = by_items.permuted(np.tile(np.arange(n), (draws, 1)), axis=1)
    weights = {size: (order < size) / size for size in sizes}  # of each item in each draw, (draws, n)
    mean_curves = {size: weights[size] @ curves for size in sizes}
    fitted = {}
    for m, (counts, majority) in zip(numbers, draw_votes(distributions, numbers, draws, by_votes)):
        of_votes = np.einsum("dnk,nk->dn", counts, shortfall) / m
        of_majority = shortfall[np.arange(n), majority]
        for size in sizes:
            if (m, size) in designs:
                means = [np.einsum("dn,dn->d", weights[size], short) for short in (of_votes, of_majority)]
                fitted[m, size] = [lowest(mean_curves[size] + mean[:, None] / TEMPERATURES) for mean in means]
    distribution, majority = zip(*(fitted[design] for design in designs))
    return np.array(distribution), np.array(majority)


def vote_variance(logits, votes, temperature):
    """Variance of an item's part in the fit: between items, and between the votes on an item.

    With N items and m votes on each, the variance of the fitted 1/T is ``(between + within / m) / N``, over the square
    of a curvature that depends on neither. Under a budget of m * N votes it is lowest at m = 1. Where an item costs as
    much as c votes before its first, it is lowest near ``m = sqrt(c * within / between)`` (Cochran 1977, chapter 10).

    Parameters
    ----------
    logits : array_like (n, K)
        Finite.
    votes : array_like (n, K)
        Counts on at least two items, at least two votes on every item.
    temperature : float
        The fitted one.

    Returns
    -------
    between, within : float
        Unbiased for the votes that might have been given, but that `between` is 0 where the estimate is below: there
        the votes explain all that items differ, and where items cost anything, more votes on an item always pay.

    Examples
    --------
    >>> between, within = vote_variance([[2.0, 0.0], [0.0, 4.0]], [[9, 3], [5, 7]], 3.0)
    >>> round(between, 2), round(within, 2)
    (0.3, 2.53)
    """
    logits = _as_finite(logits)
    votes = as_counts(votes, logits.shape)
    number = votes.sum(axis=1)
    if len(votes) < 2:
        raise ValueError(f"votes: expected at least two items, got {len(votes)}")
    if number.min() < 2:
        raise ValueError(f"votes: expected at least two on every item, got {number.min()} in row {number.argmin()}")
    margins = shift(logits)
    _, mean, _ = moments(margins / as_temperature(temperature))
    centred = margins - temperature * mean[:, None]
    means = (votes * centred).sum(axis=1) / number
    spread = (votes * (centred - means[:, None]) ** 2).sum(axis=1) / (number - 1)
    return max(float(means.var(ddof=1) - (spread / number).mean()), 0.0), float(spread.mean())


def _as_finite(logits):
    logits = as_logits(logits).astype(np.float64)
    if not np.isfinite(logits).all():
        raise ValueError("logits: expected finite values, got a masked class (-inf)")
    return logits

"""Shares of the gap, cross-fitted and from the votes that chose the examples, by other means.

Sets of examples are those of `gap_sets`: ids, logits and labels of the validation set; ids, logits, distributions and
labels of either half.
"""

import numpy as np

from calib.audit.methods import brier, lowest_brier, lowest_nll, mean, nll, probabilities

BOUNDS = (1e-2, 1e2)
GRID = np.geomspace(0.4, 16, 601)


def six_fits(kept, fitted, judged):
    """Brier score and NLL of the votes of `judged`, for hard labels and votes, fitted by NLL and by Brier score.

    Returns
    -------
    dict
        From (population, labels, objective) to a pair of scores.
    """
    _, logits, shares, _ = judged
    sources = {
        ("validation", "hard"): (kept[1], kept[2]),
        ("half", "hard"): (fitted[1], fitted[3]),
        ("half", "votes"): (fitted[1], fitted[2]),
    }
    found = {}
    for source, (z, y) in sources.items():
        fits = {"nll": lowest_nll(lambda t, z=z, y=y: nll(z, y, t))}
        fits["brier"] = lowest_brier(lambda t, z=z, y=y: brier(probabilities(z, t), y), BOUNDS)
        for objective, t in fits.items():
            found[*source, objective] = brier(probabilities(logits, t), shares), nll(logits, shares, t)
    return found


def label_shares(sets):
    """Shares of labels in the gap of several models, from pairs of `six_fits`: halves in file order, and swapped."""
    first, swapped = zip(*sets)
    both = [*first, *swapped]

    def share(runs, before, after, start, end, score):
        between = [mean([run[key][score] for run in runs]) for key in (before, after, start, end)]
        return (between[0] - between[1]) / (between[2] - between[3])

    start, end = ("validation", "hard", "nll"), ("half", "votes", "brier")
    by_nll = ("half", "hard", "nll"), ("half", "votes", "nll")
    by_brier = ("half", "hard", "brier"), ("half", "votes", "brier")

    def shapley(runs):  # labels change between fits by NLL in one of the three orders, between fits by Brier in two
        return (share(runs, *by_nll, start, end, 0) + 2 * share(runs, *by_brier, start, end, 0)) / 3

    return {
        "share_label": share(first, *by_nll, start, end, 0),
        "share_label_swapped": share(swapped, *by_nll, start, end, 0),
        "share_label_crossfit": share(both, *by_nll, start, end, 0),
        "share_label_objective_first": share(first, *by_brier, start, end, 0),
        "share_label_objective_first_crossfit": share(both, *by_brier, start, end, 0),
        "share_label_shapley": shapley(first),
        "share_label_shapley_crossfit": shapley(both),
        "share_label_nll": share(first, *by_nll, start, by_nll[1], 1),
        "share_label_nll_crossfit": share(both, *by_nll, start, by_nll[1], 1),
    }


class Table:
    """Slopes and scores of examples over `GRID`: what fits to weighted examples are read from."""

    def __init__(self, logits, targets):
        logits, targets = np.asarray(logits, dtype=np.float64), np.asarray(targets)
        targets = np.eye(logits.shape[1])[targets] if targets.ndim == 1 else targets
        own = (targets * logits).sum(axis=1)
        self.nll_slope, self.brier_slope, self.brier = (np.empty((len(logits), len(GRID))) for _ in range(3))
        for k, t in enumerate(GRID):
            p = probabilities(logits, t)
            expected = (p * logits).sum(axis=1)
            self.nll_slope[:, k] = expected - own
            self.brier_slope[:, k] = ((p - targets) * p * (logits - expected[:, None])).sum(axis=1)
            self.brier[:, k] = ((p - targets) ** 2).sum(axis=1)

    def fit_nll(self, weights):
        """Temperature of each row of weights (r, n) where the slope by 1/T, which falls with T, is zero."""
        return root(weights @ self.nll_slope, (weights @ self.nll_slope > 0).sum(axis=1))

    def fit_brier(self, weights):
        """Temperature of each row of weights where the slope is zero, next to the lowest score of the grid."""
        slopes, at = weights @ self.brier_slope, (weights @ self.brier).argmin(axis=1)
        return root(slopes, at + (slopes[np.arange(len(at)), at] > 0))

    def score(self, weights, temperatures):
        """Mean Brier score of weighted examples at the temperature of each row."""
        means = weights @ self.brier / weights.sum(axis=1, keepdims=True)
        return np.array([np.interp(np.log(t), np.log(GRID), row) for t, row in zip(temperatures, means)])


def root(slopes, right):
    """Temperature between two points of the grid, the second of them `right`, where each row of slopes is zero."""
    rows = np.arange(len(slopes))
    above, below = slopes[rows, right - 1], slopes[rows, right]
    step = np.log(GRID[1] / GRID[0])
    return GRID[right - 1] * np.exp(step * above / (above - below))


def crossfitted_labels(kept, first, second, clusters, drawn, places):
    """Label part and gap, cross-fitted, for each resampling, as (replicates, 2).

    Parameters
    ----------
    kept, first, second
        As in `gap_sets`.
    clusters : list
        Name of the cluster of every example: of the validation set, then of both halves.
    drawn : iterable of ndarray int
        For each replicate, which of the sorted names are drawn.
    places : ndarray int (replicates, n)
        Where each example of both halves stands in a new order: the first half is fitted, and then the second.
    """
    number = {name: k for k, name in enumerate(sorted(set(clusters)))}
    members = np.array([number[name] for name in clusters])
    weights = np.array([np.bincount(names, minlength=len(number))[members] for names in drawn], dtype=np.float64)
    validation, soft = weights[:, : len(kept[0])], weights[:, len(kept[0]) :]
    logits, shares, labels = (np.concatenate([one, two]) for one, two in zip(first[1:], second[1:]))
    hard = Table(kept[1], kept[2]).fit_nll(validation)
    of_labels, of_votes = Table(logits, labels), Table(logits, shares)
    chosen = soft * (places < len(first[0]))
    found = []
    for fitted, judged in ((chosen, soft - chosen), (soft - chosen, chosen)):
        fits = hard, of_labels.fit_nll(fitted), of_votes.fit_nll(fitted), of_votes.fit_brier(fitted)
        scores = [of_votes.score(judged, t) for t in fits]
        found.append(np.column_stack([scores[1] - scores[2], scores[0] - scores[3]]))
    return np.mean(found, axis=0)


def own_votes(kept, first, second, five, draws):
    """Share of the gap closed by one drawn vote, by all five and by their majority, and the temperature of one.

    Parameters
    ----------
    kept, first, second
        As in `gap_sets`.
    five : ndarray int (n, K)
        The original votes on the first half.
    draws : ndarray int (draws, n)
        Class of one vote on each example, drawn again and again.
    """
    logits, five = np.asarray(first[1], dtype=np.float64), np.asarray(five)

    def score(t):
        return brier(probabilities(second[1], t), second[2])

    hard = score(lowest_nll(lambda t: nll(kept[1], kept[2], t)))
    gap = hard - score(lowest_brier(lambda t: brier(probabilities(logits, t), first[2]), BOUNDS))
    expected = -(probabilities_on_grid(logits) * logits).sum(axis=2).mean(axis=1)  # rises with T
    own = -logits[np.arange(len(logits)), draws].mean(axis=1)
    one = np.interp(own, expected, GRID)
    votes = five / five.sum(axis=1, keepdims=True)
    fits = {"five": lowest_nll(lambda t: nll(logits, votes, t))}
    fits["majority"] = lowest_nll(lambda t: nll(logits, five.argmax(axis=1), t))
    found = {f"closed_{name}": (hard - score(t)) / gap for name, t in fits.items()}
    return found | {"T_one": mean(one), "closed_one": mean([(hard - score(t)) / gap for t in one])}


def probabilities_on_grid(logits):
    """Softmax at each temperature of the grid, (temperatures, n, K)."""
    return np.array([probabilities(logits, t) for t in GRID])

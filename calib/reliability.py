"""Reliability: declared bins, the table of what each bin holds, and the ECE that sums it up."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calib.checks import as_array, as_confidence, as_correct, as_count, as_floats, as_labels, as_probabilities
from calib.tiles import FEW_CLASSES, each, tiles

Z95 = 1.959963984540054  # two-sided 95% quantile of the standard normal distribution


@dataclass(frozen=True)
class EqualMass:
    """Declare bins that hold about the same number of examples.

    Tied values stay together, whatever the order of the rows, so ties can leave fewer bins than asked for.
    """

    n_bins: int

    def __post_init__(self):
        as_count(self.n_bins, "n_bins")


def top_label(probabilities, labels):
    """Return the confidence (n,) of the most probable class and whether it is the label (n,).

    The confidence keeps the type of `probabilities`; ties go to the lower class.

    Examples
    --------
    >>> confidence, correct = top_label([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    >>> confidence.tolist(), correct.tolist()
    ([0.75, 0.5], [True, False])
    """
    probabilities = as_probabilities(probabilities)
    labels = as_labels(labels, *probabilities.shape)
    cut = tiles(*probabilities.shape)
    if len(cut) == 1 or probabilities.shape[1] > FEW_CLASSES:
        return _top_label(probabilities, labels)
    confidence, correct = np.empty(len(labels), probabilities.dtype), np.empty(len(labels), bool)

    def fill(rows):
        confidence[rows], correct[rows] = _top_label(probabilities[rows], labels[rows])

    each(fill, cut)
    return confidence, correct


def _top_label(probabilities, labels):
    if probabilities.shape[1] == 2:
        first, second = probabilities.T
        return np.maximum(first, second), (second > first) == labels
    rows = np.arange(len(labels))
    if probabilities.shape[1] <= FEW_CLASSES:  # maxima along rows of the turned array, where no two classes tie
        turned = np.ascontiguousarray(probabilities.T)
        confidence = np.maximum.reduce(turned)
        if np.count_nonzero(turned == confidence) == len(rows):
            return confidence, probabilities[rows, labels] == confidence
    top = probabilities.argmax(axis=1)
    return probabilities[rows, top], top == labels


def bin_edges(confidence, bins):
    """Return the edges that `bins` declares for these confidences, at the precision of their type.

    Parameters
    ----------
    confidence : array_like (n,)
    bins : int, EqualMass or array_like
        A number of equal-width bins on [0, 1]; equal-mass bins; or ascending edges from 0 to 1.

    Examples
    --------
    >>> bin_edges([0.3, 0.9], 4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> bin_edges([0.5, 0.5, 0.5, 0.9], EqualMass(2)).tolist()
    [0.0, 0.9, 1.0]
    """
    return declared_edges(as_confidence(confidence), bins)


def declared_edges(confidence, bins):
    """Edges as in `bin_edges`, for checked confidences."""
    if isinstance(bins, EqualMass):
        return _equal_mass_edges(confidence, bins.n_bins)
    if isinstance(bins, int) or np.ndim(bins) == 0:
        edges = _equal_width(as_count(bins, "bins"), confidence.dtype)
        _refuse_collapsed(edges, f"{bins} equal-width bins")
        return edges
    edges = as_floats("bins", bins, 1)
    widths = np.diff(edges)
    ascending = len(edges) > 1 and (widths[:-1] > 0).all() and widths[-1] >= 0  # [1, 1] may close the edges
    if not ascending or edges[0] != 0 or edges[-1] != 1:
        raise ValueError(f"bins: expected ascending edges from 0 to 1, got {edges}")
    cast = edges.astype(confidence.dtype)
    if widths[-1] > 0 or len(cast) > 2:
        _refuse_collapsed(cast if widths[-1] > 0 else cast[:-1], "these edges")
    return cast


def _refuse_collapsed(edges, declared):
    """Raise where edges that differ are one number in the type of the confidences."""
    equal = np.flatnonzero(np.diff(edges) == 0)
    if len(equal):
        raise ValueError(
            f"bins: expected edges that {edges.dtype} can tell apart, but two of {declared} are both "
            f"{edges[equal[0]]}; convert the confidences to float64, or declare fewer bins"
        )


@lru_cache(maxsize=64)
def _equal_width(n_bins, dtype):
    """Edges of equal-width bins, the same array at every call."""
    edges = (np.arange(n_bins + 1) / n_bins).astype(dtype)
    edges.flags.writeable = False
    return edges


def _equal_mass_edges(confidence, n_bins):
    ordered = np.sort(confidence)
    values = np.unique(ordered)
    starts = ordered[np.arange(1, n_bins) * len(ordered) // n_bins]
    starts[starts == values[0]] = values[min(1, len(values) - 1)]  # a cut among the smallest ties moves behind them
    inner = np.unique(starts[starts > values[0]])
    return np.concatenate([[0], inner, [1]]).astype(confidence.dtype)


def assign_bins(confidence, edges):
    """Index of the bin of each confidence: left-closed ``[a, b)``, the last one closed ``[a, b]``.

    A confidence is compared with the edges rounded to its own type: float32 0.7 starts the bin at 7/10.
    """
    n_bins, rounding = len(edges) - 1, 4 * np.finfo(edges.dtype).eps
    equal = _equal_width(n_bins, edges.dtype)
    equally_wide = edges is equal or np.array_equal(edges, equal)
    if not equally_wide or n_bins * rounding > 0.5:
        return np.searchsorted(edges[1:-1], confidence, side="right")
    # A product, rounded up, is quicker than a search: it gives the bin, or the one above, whose start is then too high.
    members = (confidence * edges.dtype.type(n_bins * (1 + rounding))).astype(np.intp)
    np.minimum(members, n_bins - 1, out=members)
    members -= confidence < edges.take(members)
    return members


def wilson_interval(successes, totals):
    """95% Wilson score interval of a proportion (Wilson 1927); NaN where the total is 0.

    Returns
    -------
    low, high : ndarray float64

    Examples
    --------
    >>> low, high = wilson_interval([9], [10])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.5958], [0.9821])
    """
    successes, totals = (
        as_array(name, value, np.float64) for name, value in (("successes", successes), ("totals", totals))
    )
    if not (np.isfinite(totals) & (totals >= 0)).all():
        raise ValueError(f"totals: expected finite numbers of 0 or more, got {totals}")
    if not ((successes >= 0) & (successes <= totals)).all():  # false for NaN
        raise ValueError(f"successes: expected numbers from 0 to the totals, got {successes} of {totals}")
    n = np.where(totals > 0, totals, np.nan)
    share = successes / n
    centre = (share + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * np.sqrt(share * (1 - share) / n + Z95**2 / (4 * n**2))
    return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)  # rounded, an end may pass the share


@dataclass(frozen=True, eq=False)
class ReliabilityTable:
    """What each of M bins holds. Empty bins have NaN for confidence, accuracy and interval.

    Attributes
    ----------
    edges : ndarray (M + 1,)
    counts : ndarray int64 (M,)
    confidence, accuracy : ndarray float64 (M,)
        Mean confidence and share of correct predictions in each bin.
    low, high : ndarray float64 (M,)
        95% Wilson interval of the accuracy.
    """

    edges: np.ndarray
    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def n(self):
        """Number of examples in all bins."""
        return int(self.counts.sum())

    @property
    def filled(self):
        """Which bins hold at least one example, bool (M,)."""
        return self.counts > 0

    @property
    def contributions(self):
        """What each bin adds to the ECE, (M,); an empty bin adds 0."""
        gap = np.abs(self.accuracy - self.confidence)
        return np.where(self.filled, self.counts / self.n * gap, 0.0)

    @property
    def ece(self):
        """Expected calibration error of this table (Guo et al. 2017, eq. 3)."""
        return float(self.contributions.sum())


def reliability_table(confidence, correct, bins):
    """Count, mean confidence and accuracy with its Wilson interval, bin by bin.

    Parameters
    ----------
    confidence : array_like (n,)
        Confidence in the predicted class, in [0, 1].
    correct : array_like (n,)
        Whether the prediction was right.
    bins : int, EqualMass or array_like
        A number of equal-width bins on [0, 1]; equal-mass bins; or ascending edges from 0 to 1.

    Examples
    --------
    >>> table = reliability_table([0.92, 1.0], [1, 0], bins=10)
    >>> int(table.counts.sum()), round(table.ece, 2)
    (2, 0.46)
    """
    confidence = as_confidence(confidence)
    correct = as_correct(correct, len(confidence))
    edges = declared_edges(confidence, bins)
    members = assign_bins(confidence, edges)
    size = len(edges) - 1
    counts = np.bincount(members, minlength=size)
    hits = np.bincount(members, weights=correct, minlength=size)
    total = np.bincount(members, weights=confidence, minlength=size)
    filled = np.where(counts > 0, counts, np.nan)
    return ReliabilityTable(edges, counts, total / filled, hits / filled, *wilson_interval(hits, counts))


def ece(confidence, correct, bins):
    """Expected calibration error: distance of accuracy and mean confidence in a bin, weighted by the counts.

    An estimate that depends on the bins (Guo et al. 2017, eq. 3): name them when you report it.
    Parameters as in `reliability_table`.

    Examples
    --------
    >>> round(ece([0.9, 0.8], [True, True], bins=10), 12)
    0.15
    """
    confidence = as_confidence(confidence)
    difference = as_correct(correct, len(confidence)) - confidence.astype(np.float64, copy=False)
    members = assign_bins(confidence, declared_edges(confidence, bins))
    return float(np.add.reduce(np.abs(np.bincount(members, weights=difference))) / len(confidence))

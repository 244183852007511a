"""Scores, fits, bins and intervals by other means: plain arrays, taken as they are; logits are finite."""

import hashlib
import math
from bisect import bisect_left
from itertools import pairwise
from statistics import NormalDist

import numpy as np

GOLDEN = (math.sqrt(5) - 1) / 2
Z = NormalDist().inv_cdf(0.975)


def mean(values):
    """Mean, by a sum that is rounded once."""
    values = np.asarray(values, dtype=np.float64).tolist()
    return math.fsum(values) / len(values)


def probabilities(logits, temperature=1.0):
    """Softmax, class by class: ``p_k = 1 / sum_j exp((z_j - z_k) / T)``."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    with np.errstate(over="ignore"):  # 1 / inf is the 0 that is meant
        return np.column_stack([1 / np.exp(scaled - column[:, None]).sum(axis=1) for column in scaled.T])


def nll(logits, targets, temperature=1.0):
    """Mean NLL of labels (n,) or distributions (n, K): ``-log p_k = log sum_j exp((z_j - z_k) / T)``."""
    scaled, targets = np.asarray(logits, dtype=np.float64) / temperature, np.asarray(targets)
    if targets.ndim == 1:
        return mean(log_sum(scaled - scaled[range(len(scaled)), targets][:, None]))
    losses = [log_sum(scaled - column[:, None]) for column in scaled.T]
    return mean(sum(share * loss for share, loss in zip(targets.T, losses)))


def log_sum(exponents):
    """Logarithm of the sum of the exponentials in each row: the largest, and ``log1p`` of what others add."""
    rows, at = np.arange(len(exponents)), exponents.argmax(axis=1)
    largest = exponents[rows, at]
    others = np.exp(exponents - largest[:, None])
    others[rows, at] = 0
    return largest + np.log1p(others.sum(axis=1))


def brier(probabilities, targets):
    """Mean Brier score against labels (n,) or distributions (n, K), class by class."""
    targets = np.asarray(targets)
    shares = [targets == k for k in range(probabilities.shape[1])] if targets.ndim == 1 else targets.T
    return mean(sum((column - share) ** 2 for column, share in zip(probabilities.T, shares)))


def square_distances(probabilities, shares):
    """Squared distance of each row to its distribution, class by class."""
    return sum((column - share) ** 2 for column, share in zip(probabilities.T, shares.T))


def two_class(logits, labels, temperature=1.0):
    """NLL, Brier score, confidences and outcomes of two classes, from the margins of the labels, row by row."""
    rows = np.asarray(logits, dtype=np.float64).tolist()
    margins = [(b - a if label else a - b) / temperature for (a, b), label in zip(rows, labels)]
    losses = [max(-m, 0.0) + math.log1p(math.exp(-abs(m))) for m in margins]  # softplus(-m)
    squares = [2 * (1 / (1 + math.exp(m)) if m < 700 else 0.0) ** 2 for m in margins]
    confidence = [1 / (1 + math.exp(-abs(m))) for m in margins]
    correct = [m > 0 or (m == 0 and label == 0) for m, label in zip(margins, labels)]
    return mean(losses), mean(squares), confidence, correct


def top_label(scores, labels):
    """First largest score of each row, and whether it is at the label."""
    rows = np.asarray(scores).tolist()
    return [max(row) for row in rows], [row.index(max(row)) == label for row, label in zip(rows, labels)]


def golden_section(score, low, high):
    """Temperature between low and high where a score with one valley is lowest, by golden section of log T.

    By values alone: to about 1e-8 of T in a bent valley, and only as well as rounding allows in a flat one.
    """
    a, b = low, high
    left, right = b / (b / a) ** GOLDEN, a * (b / a) ** GOLDEN
    at_left, at_right = score(left), score(right)
    while b / a > 1 + 1e-10:
        if at_left <= at_right:
            b, right, at_right = right, left, at_left
            left = b / (b / a) ** GOLDEN
            at_left = score(left)
        else:
            a, left, at_left = left, right, at_right
            right = a * (b / a) ** GOLDEN
            at_right = score(right)
    return min(math.sqrt(a * b), low, high, key=score)


def lowest_nll(score, bounds=(1e-6, 1e6)):
    """Temperature where a score with one valley is lowest: widen until it rises on both sides, then golden section."""
    low, high = bounds
    middle = min(max(1.0, low), high)
    left, right = max(middle / 2, low), min(middle * 2, high)
    while score(left) < score(middle):
        left, middle, right = max(left * (left / middle) ** 2, low), left, middle
    while score(right) < score(middle):
        left, middle, right = middle, right, min(right * (right / middle) ** 2, high)
    return golden_section(score, left, right)


def lowest_brier(score, bounds=(1e-6, 1e6), step=0.1):
    """Temperature where any score is lowest: a grid of log T, then golden section in every valley of the grid."""
    grid = np.geomspace(*bounds, 2 + math.ceil(math.log(bounds[1] / bounds[0]) / step)).tolist()
    values = [math.inf, *map(score, grid), math.inf]
    padded = [grid[0], *grid, grid[-1]]
    valleys = [i for i in range(1, len(grid) + 1) if values[i - 1] > values[i] <= values[i + 1]]
    return min((golden_section(score, padded[i - 1], padded[i + 1]) for i in valleys), key=score)


def cut(confidence, correct, bins):
    """Pairs of confidence and outcome, sorted and cut at the edges of equal-width bins (a number) or at given edges."""
    confidence = np.asarray(confidence)
    edges = [k / bins for k in range(bins + 1)] if np.ndim(bins) == 0 else bins
    pairs = sorted(zip(confidence.tolist(), map(bool, correct)))
    values = [value for value, _ in pairs]
    inner = [bisect_left(values, float(confidence.dtype.type(edge))) for edge in edges[1:-1]]
    return [pairs[start:stop] for start, stop in pairwise([0, *inner, len(pairs)])]


def ece(confidence, correct, bins):
    """Expected calibration error: ``sum_b |sum of confidences - number correct| / n``."""
    parts = cut(confidence, correct, bins)
    gaps = [math.fsum(value for value, _ in pairs) - sum(right for _, right in pairs) for pairs in parts]
    return math.fsum(map(abs, gaps)) / sum(map(len, parts))


def wilson(successes, n):
    """95% Wilson interval: the roots p of ``(n + z^2) p^2 - (2 successes + z^2) p + successes^2 / n = 0``."""
    a, b, c = n + Z**2, 2 * successes + Z**2, successes**2 / n
    larger = (b + math.sqrt(max(b * b - 4 * a * c, 0.0))) / 2  # a times the larger root; c over it is the smaller
    return c / larger, min(larger / a, 1.0)


def reliability(confidence, correct, bins):
    """Count, mean confidence, accuracy and the ends of its Wilson interval for every bin; NaN where it is empty."""
    table = []
    for pairs in cut(confidence, correct, bins):
        n, hits = len(pairs), sum(right for _, right in pairs)
        table.append((n, mean([p for p, _ in pairs]), hits / n, *wilson(hits, n)) if n else (0, *[math.nan] * 4))
    return table


def bootstrap_ece(confidence, correct, bins, indices):
    """ECE of each replicate (a list of rows) for each number of bins, by resampling the rows themselves."""
    pairs = list(zip(confidence, correct))
    samples = [sorted(pairs[i] for i in rows) for rows in np.asarray(indices).tolist()]
    return [[ece(*zip(*sample), m) for m in bins] for sample in samples]


def bootstrap_clusters(columns, clusters, indices=None):
    """Means of each column of values in each replicate, by drawing clusters of rows: one list for each column."""
    members = {}
    for row, name in enumerate(clusters):
        members.setdefault(name, []).append(row)
    members = [members[name] for name in sorted(members)]
    if indices is None:
        indices = np.random.default_rng(113).integers(0, len(members), size=(2000, len(members)))
    columns = np.array([*columns, np.ones(len(columns[0]))])
    sums = np.array([columns[:, rows].sum(axis=1) for rows in members])
    drawn = np.array([sums[replicate].sum(axis=0) for replicate in indices])
    return (drawn[:, :-1] / drawn[:, -1:]).T.tolist()


def percentile(values, percent):
    """Percentile by linear interpolation between the order statistics."""
    values, place = sorted(values), percent / 100 * (len(values) - 1)
    below = min(int(place), len(values) - 2)
    return values[below] + (place - below) * (values[below + 1] - values[below])


def distributions(votes):
    """Votes over their row sum."""
    return np.array([[vote / sum(row) for vote in row] for row in np.asarray(votes).tolist()])


def majority(votes):
    """Class with most votes; ties to the lower one."""
    return [row.index(max(row)) for row in np.asarray(votes).tolist()]


def hash_split(ids, key, sizes):
    """Row numbers of consecutive parts, in the order of the hex SHA-256 of ``"<key>:<id>"``."""
    order = [
        i for _, i in sorted((hashlib.sha256(f"{key}:{name}".encode()).hexdigest(), i) for i, name in enumerate(ids))
    ]
    return [order[sum(sizes[:part]) : sum(sizes[: part + 1])] for part in range(len(sizes))]


def image_of(uid):
    """Image that an SNLI pair is about."""
    return uid.split(".jpg")[0]


def premise_of(uid):
    """Premise of an MNLI pair."""
    return uid[:-1]


def isotonic_map(scores, targets, resolution=1e-15):
    """Isotonic regression by pooling adjacent violators: knots, and the values there.

    Scores less than `resolution` above the first of their group count as equal to it, as in scikit-learn.
    """
    groups = []  # first score, sum of targets, count
    for score, target in sorted(zip(scores, targets)):
        if groups and (score == groups[-1][0] or score - groups[-1][0] < resolution):
            groups[-1][1:] = groups[-1][1] + target, groups[-1][2] + 1
        else:
            groups.append([score, target, 1])
    blocks = []  # sum of targets, count, number of groups
    for _, total, count in groups:
        size = 1
        while blocks and blocks[-1][0] * count >= total * blocks[-1][1]:  # the mean before is not below this one
            before = blocks.pop()
            total, count, size = before[0] + total, before[1] + count, before[2] + size
        blocks.append((total, count, size))
    return [group[0] for group in groups], [total / count for total, count, size in blocks for _ in range(size)]


def isotonic(scores, targets, new):
    """One map per class, from probabilities and labels or distributions, at new ones: linear, clipped, floor 1e-9."""
    targets, columns = np.asarray(targets), []
    for k in range(scores.shape[1]):
        share = (targets == k) * 1.0 if targets.ndim == 1 else targets[:, k]
        mapped = np.interp(new[:, k], *isotonic_map(scores[:, k].tolist(), share.tolist()))
        columns.append([max(value, 1e-9) for value in mapped.tolist()])
    return np.array([[value / math.fsum(row) for value in row] for row in zip(*columns)])

"""An independent second computation of the numbers of the book, by other means and without any other module of `calib`.

Differences of logits in place of a softmax, golden section in place of Newton, sorting in place of binning, loops over
votes, an own isotonic regression. Arguments are plain arrays, taken as they are; logits are finite.
"""

import hashlib
import math
from bisect import bisect_left
from itertools import pairwise
from statistics import NormalDist

import numpy as np

GOLDEN = (math.sqrt(5) - 1) / 2
Z = NormalDist().inv_cdf(0.975)
KEY, SIZES = "calib-sst2-v1", (256, 256, 360)
BIN_COUNTS = (5, 10, 15, 20)


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
        return mean(np.logaddexp.reduce(scaled - scaled[range(len(scaled)), targets][:, None], axis=1))
    losses = [np.logaddexp.reduce(scaled - column[:, None], axis=1) for column in scaled.T]
    return mean(sum(share * loss for share, loss in zip(targets.T, losses)))


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
            total, count, size = (a + b for a, b in zip(blocks.pop(), (total, count, size)))
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


# One function per chapter. `at` takes recorded numbers: then scores are computed at their temperatures, so that a
# difference of two temperatures is not found again in every score. Temperatures returned are always fitted here.


def audit_six_examples(logits, labels, at=None):
    """Numbers of the chapter six-examples, from its logits (n, K) and labels (n,)."""
    found = {
        "temperature": lowest_nll(lambda t: nll(logits, labels, t)),
        "temperature_grid": min(np.linspace(0.25, 4, 15_001).tolist(), key=lambda t: nll(logits, labels, t)),
        "accuracy": mean(top_label(logits, labels)[1]),
    }
    for state, t in (("t1", 1.0), ("fitted", (at or found)["temperature"])):
        found[f"nll_{state}"] = nll(logits, labels, t)
        found[f"ece4_{state}"] = ece(*top_label(probabilities(logits, t), labels), [0, 0.25, 0.5, 0.75, 1])
    return found


def audit_sst2(ids, logits, labels, at=None):
    """Numbers of the chapter sst2-isolated-fit, from ids (n,), logits (n, 2) and labels (n,) of all sentences."""
    logits, labels = np.asarray(logits), np.asarray(labels)
    pools = dict(zip(("exploration", "calibration", "audit"), hash_split(ids, KEY, SIZES)))
    fitted = pools["calibration"]
    found = {"temperature": lowest_nll(lambda t: two_class(logits[fitted], labels[fitted], t)[0], (0.05, 20))}
    for pool, rows in pools.items():
        for state, t in (("t1", 1.0), ("fitted", (at or found)["temperature"])):
            loss, square, confidence, correct = two_class(logits[rows], labels[rows], t)
            sure = [right for value, right in zip(confidence, correct) if value >= 0.9]
            names = {"nll": loss, "brier": square, "confidence": mean(confidence), "at90": len(sure)}
            names |= {"wrong90": sure.count(False), "ece10": ece(confidence, correct, 10)}
            found |= {f"{pool}_{name}_{state}": value for name, value in names.items()}
        found[f"{pool}_correct"] = sum(correct)
    return found


def audit_binning(ids, logits, labels, indices=None):
    """Numbers of the chapter binning-sensitivity; with `indices`, from its kept array of resampled rows."""
    rows = hash_split(ids, KEY, SIZES)[0]
    _, _, confidence, correct = two_class(np.asarray(logits)[rows], np.asarray(labels)[rows])
    if indices is None:
        indices = np.random.default_rng(113).integers(0, len(rows), size=(2000, len(rows)))
    found = {}
    for m, replicates in zip(BIN_COUNTS, zip(*bootstrap_ece(confidence, correct, BIN_COUNTS, indices))):
        counts = [len(pairs) for pairs in cut(confidence, correct, m)]
        found |= {f"ece_{m}": ece(confidence, correct, m), f"nonempty_{m}": m - counts.count(0)}
        found |= {f"ece_{m}_low": percentile(replicates, 2.5), f"ece_{m}_high": percentile(replicates, 97.5)}
        found[f"rightmost_{m}"] = counts[-1]
    return found


def gap_sets(validation, predicted, voted, labels=None, clean=False):
    """Validation set, first half and second half of one run of the gap study, from the arguments of `audit_gap`.

    Returns
    -------
    tuple
        Ids, logits and labels of the validation set; ids, logits, distributions and hard labels of either half.
    """
    logits_of = dict(zip(*predicted))
    hard = majority(voted[1]) if labels is None else labels
    items = [(name, logits_of[name], votes, label) for name, votes, label in zip(*voted, hard) if name in logits_of]
    removed = {name for name, *_ in items} if clean else set()
    kept = tuple(map(np.array, zip(*(row for row in zip(*validation) if row[0] not in removed))))
    middle, halves = len(items) // 2, []
    for half in (items[:middle], items[middle:]):
        ids, logits, votes, labels = zip(*half)
        halves.append((np.array(ids), np.array(logits), distributions(votes), np.array(labels)))
    return kept, *halves


def audit_gap(validation, predicted, voted, labels=None, clean=False, at=None):
    """Numbers of one run of the gap study.

    Parameters
    ----------
    validation : tuple
        Ids (n,), logits (n, K) and labels (n,) of the validation set as published.
    predicted : tuple
        Ids and logits, among which the examples with votes are looked up.
    voted : tuple
        Ids and votes (n, K), in the order of their file.
    labels : sequence of int, optional
        Hard labels of the rows of `voted`; by default the majority of the votes.
    clean : bool
        Remove the examples with votes from the validation set.
    at : mapping, optional
        Recorded numbers, for their T_hard and T_oracle.
    """
    kept, first, second = gap_sets(validation, predicted, voted, labels, clean)
    val_ids, val_logits, val_labels = kept
    _, fit_logits, fit_shares, _ = first
    ids, logits, shares, labels = second
    p = probabilities(logits)

    found = {
        "n_val": len(val_ids),
        "n": len(first[0]) + len(ids),
        "n_missing": len(voted[0]) - len(first[0]) - len(ids),
        "n_overlap": len(set(val_ids.tolist()) & set(ids.tolist())),
        "accuracy": mean(top_label(logits, labels)[1]),
        "T_hard": lowest_nll(lambda t: nll(val_logits, val_labels, t)),
        "T_oracle": lowest_brier(lambda t: brier(probabilities(fit_logits, t), fit_shares)),
    }
    for state, t in (("uncal", 1.0), ("hard", (at or found)["T_hard"]), ("oracle", (at or found)["T_oracle"])):
        found[f"brier_{state}"] = brier(probabilities(logits, t), shares)
        found[f"ece_{state}"] = ece(*top_label(probabilities(logits, t), labels), 15)
    for state, z, targets in (("hard", val_logits, val_labels), ("oracle", fit_logits, fit_shares)):
        found[f"iso_brier_{state}"] = brier(isotonic(probabilities(z), targets, p), shares)
    found["gap"] = found["brier_hard"] - found["brier_oracle"]
    found["iso_gap"] = found["iso_brier_hard"] - found["iso_brier_oracle"]
    return found


def audit_parts(validation, predicted, voted, labels=None, clean=False, at=None, cluster=str, indices=None):
    """Parts of the gap of one run, with intervals for which the fits are held fixed.

    Parameters
    ----------
    validation, predicted, voted, labels, clean, at
        As in `audit_gap`.
    cluster : callable
        Name of what an example shares with others, from its id.
    indices : ndarray int (replicates, number of clusters), optional
        Clusters drawn, in the order of their sorted names.
    """
    (_, val_logits, val_labels), first, second = gap_sets(validation, predicted, voted, labels, clean)
    _, fit_logits, fit_shares, fit_labels = first
    ids, logits, shares, _ = second
    found = {
        "T_population": lowest_nll(lambda t: nll(fit_logits, fit_labels, t)),
        "T_soft_nll": lowest_nll(lambda t: nll(fit_logits, fit_shares, t)),
    }
    fitted = at or found | {
        "T_hard": lowest_nll(lambda t: nll(val_logits, val_labels, t)),
        "T_oracle": lowest_brier(lambda t: brier(probabilities(fit_logits, t), fit_shares)),
    }
    hard, population, soft_nll, oracle = (
        square_distances(probabilities(logits, fitted[f"T_{step}"]), shares)
        for step in ("hard", "population", "soft_nll", "oracle")
    )
    iso_hard, iso_population, iso_oracle = (
        square_distances(isotonic(probabilities(z), targets, probabilities(logits)), shares)
        for z, targets in ((val_logits, val_labels), (fit_logits, fit_labels), (fit_logits, fit_shares))
    )
    rows = {"gap_population": hard - population, "gap_label": population - soft_nll}
    rows |= {"gap_objective": soft_nll - oracle, "gap": hard - oracle}
    rows |= {"iso_gap_population": iso_hard - iso_population, "iso_gap_label": iso_population - iso_oracle}
    rows["iso_gap"] = iso_hard - iso_oracle

    found |= {"brier_population": mean(population), "brier_soft_nll": mean(soft_nll)}
    found["iso_brier_population"] = mean(iso_population)
    found |= {name: mean(values) for name, values in rows.items()}
    for name, replicates in zip(rows, bootstrap_clusters(list(rows.values()), map(cluster, ids.tolist()), indices)):
        found |= {f"{name}_low": percentile(replicates, 2.5), f"{name}_high": percentile(replicates, 97.5)}
    return found


def audit_budget(logits, evaluation, drawn):
    """Temperatures and scores of one run of the chapter how-many-annotations: means over the draws.

    A fit by NLL is where the mean logit that the softmax expects is that of the labels. What it expects falls with T,
    so one table of it, read backwards, holds the fit to any labels of the same items.

    Parameters
    ----------
    logits : ndarray (n, K)
        Of the items that were voted on.
    evaluation : tuple
        Logits and distributions on which the temperatures are judged.
    drawn : iterable of tuple
        Number of votes m, their counts (draws, n, K) and majorities (draws, n).
    """
    temperatures, found = np.geomspace(1, 10, 501), {}
    expected = [-mean(sum((probabilities(logits, t) * logits).T)) for t in temperatures]
    scores = [brier(probabilities(evaluation[0], t), evaluation[1]) for t in temperatures]
    for m, counts, majority in drawn:
        labelled = {"distribution": np.tensordot(counts, logits) / (m * len(logits))}
        labelled["majority"] = [mean(logits[range(len(logits)), row]) for row in majority]
        for kind, means in labelled.items():
            fits = np.interp(np.negative(means), expected, temperatures)
            found[f"T_{kind}_{m}"] = mean(fits)
            found[f"brier_{kind}_{m}"] = mean(np.interp(fits, temperatures, scores))
    return found


def differences(recorded, audited):
    """Absolute difference of every audited number to the recorded one of its name; infinite where one is NaN."""
    found = {name: float(abs(recorded[name] - value)) for name, value in audited.items()}
    return {name: math.inf if math.isnan(value) else value for name, value in found.items()}


def largest(recorded, audited):
    """Largest relative difference of the temperatures, and largest absolute one of all other numbers."""
    found = differences(recorded, audited)
    temperatures = [name for name in found if name.startswith(("temperature", "T_"))]
    relative = [found[name] / abs(recorded[name]) if found[name] < math.inf else math.inf for name in temperatures]
    absolute = [found[name] for name in found.keys() - set(temperatures)]
    return max(relative, default=0.0), max(absolute, default=0.0)

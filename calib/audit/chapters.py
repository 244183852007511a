"""One function per chapter, which gives its numbers by the names under which the chapter records them.

`at` takes recorded numbers: then scores are computed at their temperatures, so that a difference of two temperatures is
not found again in every score. Temperatures returned are always fitted here.
"""

import math

import numpy as np

from calib.audit.methods import (
    bootstrap_clusters,
    bootstrap_ece,
    brier,
    cut,
    distributions,
    ece,
    hash_split,
    isotonic,
    lowest_brier,
    lowest_nll,
    majority,
    mean,
    nll,
    percentile,
    probabilities,
    square_distances,
    top_label,
    two_class,
)

KEY, SIZES = "calib-sst2-v1", (256, 256, 360)
BIN_COUNTS = (5, 10, 15, 20)
BOUNDS = (1e-2, 1e2)  # of an oracle


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
        "T_oracle": lowest_brier(lambda t: brier(probabilities(fit_logits, t), fit_shares), BOUNDS),
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
        "T_oracle": lowest_brier(lambda t: brier(probabilities(fit_logits, t), fit_shares), BOUNDS),
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
    for m, counts, majorities in drawn:
        labelled = {"distribution": np.tensordot(counts, logits) / (m * len(logits))}
        labelled["majority"] = [mean(logits[range(len(logits)), row]) for row in majorities]
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

"""Many temperatures, or many declarations of bins, at a fraction of the cost of one call for each."""

import numpy as np

from calib.checks import as_confidence, as_correct, as_floats, as_labels, as_logits, as_temperature
from calib.probabilities import shift
from calib.reliability import declared_edges, reliability_table


def sweep_temperatures(logits, labels, temperatures, bins):
    """NLL, mean confidence and ECE at many temperatures.

    Dividing logits by T changes no predicted class, so what is right is found once.

    Parameters
    ----------
    logits : array_like (n, K)
    labels : array_like (n,)
    temperatures : array_like (m,)
    bins : int, EqualMass or array_like
        As in `reliability_table`.

    Returns
    -------
    dict of str to ndarray float64 (m,)
        nll, confidence, ece.

    Examples
    --------
    >>> sweep = sweep_temperatures([[2.0, 0.0], [0.0, 1.0]], [0, 1], [0.5, 1.0], bins=10)
    >>> sweep["nll"].round(4).tolist()
    [0.0725, 0.2201]
    """
    logits = as_logits(logits)
    labels = as_labels(labels, *logits.shape)
    temperatures = as_floats("temperatures", temperatures, 1).tolist()
    correct = logits.argmax(axis=1) == labels
    margins = np.ascontiguousarray(shift(logits).T)
    at_label = margins[labels, np.arange(len(labels))]
    rows = []
    for temperature in temperatures:
        total = np.exp(margins / as_temperature(temperature, "temperatures")).sum(axis=0)
        confidence = 1 / total
        nll = np.log(total).mean() - at_label.mean() / temperature
        rows.append((nll, confidence.mean(), reliability_table(confidence, correct, bins).ece))
    return dict(zip(("nll", "confidence", "ece"), np.array(rows).T))


def sweep_bins(confidence, correct, bins):
    """ECE for many declarations of bins, from one sort.

    Parameters
    ----------
    confidence, correct : array_like (n,)
    bins : sequence of length m
        Each as in `reliability_table`.

    Returns
    -------
    ndarray float64 (m,)

    Examples
    --------
    >>> sweep_bins([0.92, 1.0], [1, 0], [1, 10]).round(2).tolist()
    [0.46, 0.46]
    """
    confidence = as_confidence(confidence)
    order = np.argsort(confidence)
    confidence, correct = confidence[order], as_correct(correct, len(confidence))[order]
    total = np.concatenate([[0.0], np.cumsum(correct - confidence.astype(np.float64))])
    result = []
    for declared in bins:
        cuts = np.searchsorted(confidence, declared_edges(confidence, declared)[1:-1], side="left")
        ends = np.concatenate([[0], cuts, [len(confidence)]])
        result.append(np.abs(np.diff(total[ends])).sum() / len(confidence))
    return np.array(result)

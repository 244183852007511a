"""Scores of probabilistic predictions: proper scoring rules, accuracy, entropy."""

import numpy as np

from calib.checks import as_floats, as_labels, as_probabilities, as_targets, one_hot
from calib.probabilities import log_softmax


def nll(logits, targets, temperature=1.0):
    """Mean negative log-likelihood of ``softmax(logits / temperature)``, in nats.

    For distributions it is the cross-entropy ``-sum_k q_k log p_k``, with ``0 log 0 = 0`` and
    +inf where a target gives weight to a class of probability zero.

    Parameters
    ----------
    logits : array_like (n, K)
    targets : array_like
        Hard labels (n,) or distributions (n, K).
    temperature : float

    Examples
    --------
    >>> round(nll([[2.0, 0.0], [0.0, 1.0]], [0, 1]), 4)
    0.2201
    >>> nll([[-np.inf, 0.0]], [[0.0, 1.0]])
    0.0
    """
    log_probabilities = log_softmax(logits, temperature)
    return float(np.mean(cross_entropy(log_probabilities, as_targets(targets, *log_probabilities.shape))))


def cross_entropy(log_probabilities, targets):
    """Cross-entropy per row, (n,), of checked log-probabilities and targets."""
    if targets.ndim == 1:
        return 0.0 - np.take_along_axis(log_probabilities, targets[:, None], axis=1)[:, 0]
    weighted = np.zeros(targets.shape)
    np.multiply(targets, log_probabilities, where=targets > 0, out=weighted)
    return 0.0 - weighted.sum(axis=1)


def brier(probabilities, targets):
    """Brier score (Brier 1950): squared distance to the target, summed over the classes, from 0 to 2.

    Parameters
    ----------
    probabilities : array_like (n, K)
    targets : array_like
        Hard labels (n,) or distributions (n, K).

    Examples
    --------
    >>> brier([[1.0, 0.0, 0.0]], [1])
    2.0
    """
    probabilities = as_probabilities(probabilities)
    return float(np.mean(squared_distance(probabilities, as_targets(targets, *probabilities.shape))))


def squared_distance(probabilities, targets):
    """Squared distance per row, (n,), of checked probabilities to checked targets."""
    difference = probabilities - one_hot(targets, probabilities.shape[1]).astype(np.float64, copy=False)
    return np.einsum("ij,ij->i", difference, difference)


def accuracy(scores, labels):
    """Share of rows whose largest score is at the label; ties go to the lower class.

    Parameters
    ----------
    scores : array_like (n, K)
        Logits or probabilities: only their order within a row counts.
    labels : array_like (n,)

    Examples
    --------
    >>> accuracy([[2.0, 0.0], [0.0, 1.0]], [0, 0])
    0.5
    """
    scores = as_floats("scores", scores, 2)
    labels = as_labels(labels, *scores.shape)
    if np.isnan(scores).any():
        raise ValueError(f"scores: expected numbers, got NaN in row {int(np.isnan(scores).any(axis=1).argmax())}")
    return float(np.mean(scores.argmax(axis=1) == labels))


def entropy(probabilities):
    """Shannon entropy per row, (n,), in nats, with ``0 log 0 = 0``.

    Examples
    --------
    >>> entropy([[0.76, 0.24, 0.0]]).round(4).tolist()
    [0.5511]
    """
    probabilities = as_probabilities(probabilities).astype(np.float64, copy=False)
    logs = np.log(probabilities, where=probabilities > 0, out=np.zeros_like(probabilities))
    return 0.0 - (probabilities * logs).sum(axis=1)

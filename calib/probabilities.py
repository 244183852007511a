"""Softmax, log-softmax and the moments of the logits under the softmax."""

import numpy as np

from calib.checks import as_logits, as_temperature


def log_softmax(logits, temperature=1.0):
    """Logarithm of the softmax of ``logits / temperature``, row by row.

    Parameters
    ----------
    logits : array_like (n, K)
    temperature : float
        Positive divisor of the logits (Guo et al. 2017, eq. 9).

    Returns
    -------
    ndarray float64 (n, K)
        -inf for a masked class.

    Examples
    --------
    >>> log_softmax([[0.0, -np.inf]]).tolist()
    [[0.0, -inf]]
    """
    shifted = shift(as_logits(logits)) / as_temperature(temperature)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def softmax(logits, temperature=1.0):
    """Softmax of ``logits / temperature``, row by row.

    Parameters
    ----------
    logits : array_like (n, K)
    temperature : float
        Positive divisor of the logits (Guo et al. 2017, eq. 9): above 1 flattens, below 1 sharpens.

    Returns
    -------
    ndarray float64 (n, K)

    Examples
    --------
    >>> softmax([[3.0, 1.0, 0.0]]).round(3).tolist()
    [[0.844, 0.114, 0.042]]
    >>> softmax([[3.0, 1.0, 0.0]], temperature=1.23).round(3).tolist()
    [[0.779, 0.153, 0.068]]
    """
    weights = np.exp(shift(as_logits(logits)) / as_temperature(temperature))
    return weights / weights.sum(axis=1, keepdims=True)


def shift(logits):
    """Logits less the largest of their row, in float64: at most 0, so that no exponential overflows."""
    return logits - logits.max(axis=1, keepdims=True).astype(np.float64)


def moments(scaled, axis=1, masked=True):
    """Log of the sum of ``exp(scaled)``, and mean and variance of `scaled` under its softmax, row by row.

    With ``scaled = beta * margins`` they are what the NLL as a function of beta and its derivatives are made of: the
    derivative of the first by beta is the second over beta, and of that the third over beta squared.

    Parameters
    ----------
    scaled : ndarray (n, K), or (K, n) with axis 0
        At most 0, the largest of each row 0. It is kept as it is, and the sums over classes are in its type.
    axis : int
        That of the classes.
    masked : bool
        Whether there may be -inf, for a masked class.

    Returns
    -------
    log_total, mean, variance : ndarray float64 (n,)

    Examples
    --------
    >>> [found.round(4).tolist() for found in moments(np.log([[1.0, 0.5, 0.5], [1.0, 1.0, 1.0]]))]
    [[0.6931, 1.0986], [-0.3466, 0.0], [0.1201, 0.0]]
    """
    weights = np.exp(scaled)
    if masked:
        scaled = np.where(np.isneginf(scaled), 0, scaled)
    total = np.add.reduce(weights, axis=axis).astype(np.float64, copy=False)
    weights *= scaled
    mean = np.add.reduce(weights, axis=axis) / total
    weights *= scaled
    variance = np.add.reduce(weights, axis=axis) / total - mean * mean
    return np.log(total), mean, variance

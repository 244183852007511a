"""Softmax and log-softmax at a temperature."""

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

"""Relatives of temperature scaling: affine maps of the logits before the softmax."""

import numpy as np

from calib.checks import as_logits, as_targets, one_hot
from calib.probabilities import log_softmax, softmax
from calib.scores import cross_entropy

KINDS = ("platt", "vector", "matrix")


class AffineScaling:
    """Softmax of ``logits @ W + b`` with W and b fitted by NLL.

    Parameters
    ----------
    kind : {"platt", "vector", "matrix"}
        What may vary. "platt": for K = 2, one slope and one intercept on the difference of the logits
        (Platt 1999). "vector": a diagonal W and b. "matrix": a full W and b (both Guo et al. 2017, section 4.2).

    Attributes
    ----------
    weights_ : ndarray (K, K)
    bias_ : ndarray (K,)

    Notes
    -----
    With equal diagonal weights 1/T and no bias this is temperature scaling. Any other solution can change
    the predicted class. Separable data have no finite solution: then `fit` raises. Where only part of the data can be
    separated, weights grow until the gradient is below 1e-9, and say little by themselves.

    Examples
    --------
    >>> scaling = AffineScaling("platt").fit([[0.0, 2.0]] * 4 + [[0.0, -2.0]] * 4, [1, 1, 1, 0, 0, 0, 0, 1])
    >>> scaling.predict_proba([[0.0, 2.0]]).round(3).tolist()
    [[0.25, 0.75]]
    """

    def __init__(self, kind):
        if kind not in KINDS:
            raise ValueError(f"kind: expected one of {KINDS}, got {kind!r}")
        self.kind = kind

    def fit(self, logits, targets):
        """Fit on hard labels (n,) or distributions (n, K); returns self."""
        from scipy.optimize import minimize

        logits = self._finite(logits)
        n, n_classes = logits.shape
        targets = as_targets(targets, n, n_classes)
        if self.kind == "platt" and n_classes != 2:
            raise ValueError(f"logits: expected two columns for Platt scaling, got {n_classes}")
        dense = one_hot(targets, n_classes)
        centre = logits.mean(axis=0)  # the search works on centred logits of a size of about 1
        spread = float(np.median(np.abs(logits - centre))) or 1.0
        scaled = (logits - centre) / spread

        def objective(parameters):
            weights, bias = self._unpack(parameters, n_classes)
            log_probabilities = log_softmax(scaled @ weights + bias)
            residual = (np.exp(log_probabilities) - dense) / n
            gradient = self._gradient(scaled.T @ residual, residual.sum(axis=0))
            return cross_entropy(log_probabilities, dense).mean(), gradient

        def curvature(parameters, direction):
            """Product of the Hessian with a direction."""
            weights, bias = self._unpack(parameters, n_classes)
            p = softmax(scaled @ weights + bias)
            weights, bias = self._unpack(direction, n_classes)
            change = p * (scaled @ weights + bias)
            change -= p * change.sum(axis=1, keepdims=True)
            return self._gradient(scaled.T @ change, change.sum(axis=0)) / n

        # The quasi-Newton search stops where the last bits of its gradient lead it; Newton's steps end at the minimum.
        options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-9}
        found = minimize(objective, self._start(n_classes), jac=True, method="L-BFGS-B", options=options)
        if found.fun < 1e-6:
            raise ValueError(f"targets: expected data with a finite fit, got separable ones (NLL {found.fun:.1e})")
        options = {"gtol": 1e-13, "maxiter": 50}
        found = minimize(objective, found.x, jac=True, hessp=curvature, method="trust-ncg", options=options)
        if np.abs(found.jac).max() > 1e-5:
            raise ValueError(f"targets: the fit of {self.kind} scaling did not end ({found.message})")
        weights, bias = self._unpack(found.x, n_classes)
        self.weights_ = weights / spread
        bias = bias - centre @ self.weights_
        self.bias_ = bias - bias[0]  # a bias common to all classes changes nothing
        return self

    def predict_proba(self, logits):
        """Softmax of the mapped logits, float64 (n, K)."""
        if not hasattr(self, "weights_"):
            raise ValueError("AffineScaling: expected a fitted object; call fit(logits, targets) first")
        logits = self._finite(logits)
        if logits.shape[1] != len(self.bias_):
            raise ValueError(f"logits: expected {len(self.bias_)} columns, as in fit, got {logits.shape[1]}")
        return softmax(logits @ self.weights_ + self.bias_)

    @staticmethod
    def _finite(logits):
        logits = as_logits(logits).astype(np.float64, copy=False)
        if not np.isfinite(logits).all():
            raise ValueError("logits: expected finite values, got -inf; an affine map cannot mask a class")
        return logits

    def _start(self, n_classes):
        """Parameters of the identity map."""
        diagonal = {"platt": np.ones(1), "vector": np.ones(n_classes), "matrix": np.eye(n_classes).ravel()}[self.kind]
        return np.concatenate([diagonal, np.zeros(1 if self.kind == "platt" else n_classes)])

    def _unpack(self, parameters, n_classes):
        """Weights (K, K) and bias (K,) that the parameters stand for."""
        if self.kind == "platt":
            return parameters[0] * np.eye(2), np.array([0.0, parameters[1]])
        weights, bias = parameters[:-n_classes], parameters[-n_classes:]
        return np.diag(weights) if self.kind == "vector" else weights.reshape(n_classes, n_classes), bias

    def _gradient(self, weights, bias):
        """Gradient by the parameters, from the gradients by weights and bias."""
        if self.kind == "platt":
            return np.array([np.trace(weights), bias[1]])
        return np.concatenate([np.diag(weights) if self.kind == "vector" else weights.ravel(), bias])

"""One-vs-rest isotonic regression on softmax probabilities (Zadrozny and Elkan 2002)."""

import numpy as np

from calib.checks import as_targets, one_hot
from calib.probabilities import softmax

FLOOR = 1e-9


class IsotonicCalibration:
    """One monotone map per class on the softmax at T = 1, then renormalised.

    Each map is scikit-learn's `IsotonicRegression`: linear between the scores it was fitted on, with values in [0, 1],
    clipped outside their range; scores less than 1e-15 apart count as one. Mapped values get a floor of 1e-9 before
    the rows are divided by their sums, so a class that no label names keeps its column. The maps differ between
    classes: the predicted class can change.

    Attributes
    ----------
    maps_ : list of sklearn.isotonic.IsotonicRegression, one per class

    Examples
    --------
    >>> calibration = IsotonicCalibration().fit([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 1])
    >>> calibration.predict_proba([[2.0, 0.0], [0.0, 3.0]]).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def fit(self, logits, targets):
        """Fit on hard labels (n,) or distributions (n, K); returns self."""
        from sklearn.isotonic import IsotonicRegression

        scores = softmax(logits)
        targets = one_hot(as_targets(targets, *scores.shape), scores.shape[1])
        self.maps_ = [
            IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(column, target)
            for column, target in zip(scores.T, targets.T)
        ]
        return self

    def predict_proba(self, logits):
        """Mapped and renormalised probabilities, float64 (n, K)."""
        if not hasattr(self, "maps_"):
            raise ValueError("IsotonicCalibration: expected a fitted object; call fit(logits, targets) first")
        scores = softmax(logits)
        if scores.shape[1] != len(self.maps_):
            raise ValueError(f"logits: expected {len(self.maps_)} columns, as in fit, got {scores.shape[1]}")
        mapped = np.column_stack([one.predict(column) for one, column in zip(self.maps_, scores.T)])
        mapped = np.maximum(mapped, FLOOR)
        return mapped / mapped.sum(axis=1, keepdims=True)

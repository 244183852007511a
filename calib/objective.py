"""The objectives of a temperature fit as functions of ``beta = 1 / T``, computed in tiles that stay in the cache.

Large float16 and float32 logits are summed over classes in float32 and over rows in float64; a fit that could notice,
one on few numbers, is in float64 throughout. Nothing of the size of the logits is ever copied as a whole.
"""

import numpy as np

from calib.checks import as_matrix, as_targets, refuse_nonfinite
from calib.probabilities import moments
from calib.tiles import FEW_CLASSES, each, tiles

BURIED = -1e30  # a logit so far below the largest is a masked class: no temperature gives it any probability
SMALL = 1 << 15  # up to so many numbers float64 throughout costs nothing


class Objective:
    """Mean NLL and Brier score of checked logits and targets at any beta.

    Attributes
    ----------
    at_target : float
        Mean under the target of the logits less their row maximum: 0 where every target is at a maximum.
    spread : float
        Sum of all finite logits less their row maximum.
    resolution : float
        Relative step of beta below which the objective does not change.
    flat : bool
        True where every temperature gives the same predictions.
    """

    def __init__(self, logits, targets):
        self.logits = as_matrix("logits", logits)
        self.targets = as_targets(targets, *self.logits.shape)
        n, n_classes = self.logits.shape
        self.turned = n_classes <= FEW_CLASSES
        self.axis = 0 if self.turned else 1
        single = self.logits.size > SMALL and self.logits.dtype.itemsize < 8
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.resolution = max(1e-12, float(np.finfo(self.dtype).eps) if single else 0)
        self.tiles = tiles(n, n_classes)
        self.top = np.empty(n, self.dtype)
        self.kept, self.buried = {}, np.zeros(len(self.tiles), dtype=bool)
        at_target, spread, self.masked = zip(*each(self._prepare, range(len(self.tiles))))
        self.at_target = float(np.sum(at_target)) / n
        self.spread = float(np.sum(spread))
        self.flat = self.spread == 0

    def thinned(self):
        """The same objective on few of its rows, evenly spaced."""
        every = -(-self.logits.size // SMALL) * 2
        return Objective(self.logits[::every], self.targets[::every])

    def sizes(self):
        """Smallest and largest distance of a finite logit to its row maximum, above 0."""
        found = [self._sizes(i) for i in range(len(self.tiles))]
        return min(small for small, _ in found), max(large for _, large in found)

    def nll(self, beta):
        """Mean NLL and its first two derivatives by beta; first the beta itself, at the precision that was used."""
        beta = float(self.dtype.type(beta))
        value, mean, variance = self._mean(lambda i: self._nll(i, beta))
        return beta, float(value - beta * self.at_target), float(mean - self.at_target), float(variance)

    def brier(self, beta):
        """Mean Brier score and its derivative by beta."""
        value, slope = self._mean(lambda i: self._brier(i, beta))
        return float(value), float(slope)

    def _mean(self, function):
        """Sums of all tiles, over the number of rows."""
        return np.add.reduce(each(function, range(len(self.tiles)))) / len(self.logits)

    def _prepare(self, i):
        """Row maxima of a tile, kept; margin at the target and all margins, summed; whether classes are masked."""
        rows = self.tiles[i]
        logits = self._turn(self.logits[rows]).astype(self.dtype, copy=False)
        self.top[rows] = logits.max(axis=self.axis)
        if not np.isfinite(self.top[rows]).all():
            refuse_nonfinite(self.logits)
        margins = self._margins(i)
        spread = float(margins.sum(dtype=np.float64))
        if spread < BURIED:
            self.buried[i] = True
            margins = self._margins(i)
            spread = float(margins.sum(dtype=np.float64))
        if len(self.tiles) == 1:
            self.kept[0] = margins
        masked = spread == -np.inf
        if masked:
            spread = float(margins.sum(dtype=np.float64, where=np.isfinite(margins)))
        at_target = self._at_target(margins, self.targets[rows])
        if at_target.min() == -np.inf:
            row = rows.start + int(at_target.argmin())
            raise ValueError(f"logits: expected a finite logit wherever the target has weight, got -inf in row {row}")
        return float(at_target.sum(dtype=np.float64)), spread, masked

    def _sizes(self, i):
        distances = -self._margins(i)
        distances = distances[(distances > 0) & (distances < np.inf)]
        return (float(distances.min()), float(distances.max())) if distances.size else (np.inf, 0.0)

    def _turn(self, rows):
        return rows.T if self.turned else rows

    def _margins(self, i):
        """Logits of a tile less their row maximum; at most 0."""
        if i in self.kept:
            return self.kept[i]
        rows = self.tiles[i]
        top = self.top[rows] if self.turned else self.top[rows, None]
        with np.errstate(over="ignore"):
            margins = np.subtract(self._turn(self.logits[rows]), top, dtype=self.dtype, order="C")
        if self.buried[i]:
            margins[margins < BURIED] = -np.inf
        return margins

    def _at_target(self, margins, targets):
        """Mean margin of each row under its target, (n,)."""
        if targets.ndim == 1:
            return self._turn(margins)[np.arange(len(targets)), targets]
        weights = self._turn(targets)
        with np.errstate(invalid="ignore"):  # 0 times -inf, mended below
            at_target = np.einsum("ij,ij->j" if self.turned else "ij,ij->i", weights, margins, dtype=np.float64)
        if np.isnan(at_target).any():
            weighted = np.multiply(weights, margins, where=weights > 0, out=np.zeros(margins.shape))
            at_target = weighted.sum(axis=self.axis)
        return at_target

    def _nll(self, i, beta):
        found = moments(self._margins(i) * self.dtype.type(beta), self.axis, self.masked[i])
        log_total, mean, variance = (np.add.reduce(of_rows) for of_rows in found)
        return log_total, mean / beta, variance / beta**2

    def _brier(self, i, beta):
        margins, targets = self._margins(i).astype(np.float64, copy=False), self.targets[self.tiles[i]]
        p = np.exp(margins * beta)
        p /= p.sum(axis=self.axis, keepdims=True)
        residual = p.copy()
        if targets.ndim == 1:
            self._turn(residual)[np.arange(len(targets)), targets] -= 1
        else:
            residual -= self._turn(targets)
        finite = np.where(np.isneginf(margins), 0, margins) if self.masked[i] else margins
        spread = finite - (p * finite).sum(axis=self.axis, keepdims=True)
        return (residual**2).sum(), 2 * (residual * p * spread).sum()

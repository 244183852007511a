"""Temperature scaling: one positive number that divides the logits (Guo et al. 2017)."""

from dataclasses import dataclass

import numpy as np

from calib.checks import as_count, as_logits, as_targets
from calib.probabilities import shift, softmax

BOUNDS = (1e-6, 1e6)


@dataclass(frozen=True, eq=False)
class TemperatureFit:
    """A fitted temperature and how it was found.

    Attributes
    ----------
    temperature : float
        The divisor of the logits.
    objective : float
        Value of the objective at the temperature.
    at_bound : str or None
        "lower" or "upper" where the optimum lies at or beyond that bound of T.
    identified : bool
        False where every temperature gives the same predictions; then the temperature is 1, or the bound nearest to it.
    trace : ndarray (iterations, 3)
        Temperature, objective and derivative of the objective by 1/T, step by step.
    """

    temperature: float
    objective: float
    at_bound: str | None
    identified: bool
    trace: np.ndarray

    @property
    def iterations(self):
        """How often the objective was computed."""
        return len(self.trace)


def fit_temperature(logits, targets, objective="nll", bounds=BOUNDS):
    """Fit the temperature that minimises the mean NLL or Brier score.

    The NLL is convex in 1/T: a Newton iteration kept inside a bracket finds its only minimum. The Brier
    score can have several minima: its search covers the whole range and refines every valley it finds.

    Parameters
    ----------
    logits : array_like (n, K)
        -inf for a masked class, which then must carry no weight in the target.
    targets : array_like
        Hard labels (n,) of integer type, or distributions (n, K) whose rows sum to one.
    objective : {"nll", "brier"}
    bounds : tuple of float
        Smallest and largest temperature.

    Returns
    -------
    TemperatureFit

    Examples
    --------
    >>> fit = fit_temperature([[6.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> round(fit.temperature, 4), round(fit.objective, 5), fit.at_bound
    (5.4614, 0.56234, None)
    """
    problem = _Problem.check(logits, targets, bounds)
    if objective not in ("nll", "brier"):
        raise ValueError(f'objective: expected "nll" or "brier", got {objective!r}')
    if problem.flat:
        return problem.unidentified(objective)
    return _newton(problem) if objective == "nll" else _global_search(problem)


def bisect_temperature(logits, targets, bounds=BOUNDS, steps=100):
    """Fit the temperature for the NLL by a fixed number of bisections of 1/T: slow, and easy to audit.

    Parameters and result as in `fit_temperature`; the trace has one row per step.
    """
    problem = _Problem.check(logits, targets, bounds)
    steps = as_count(steps, "steps")
    if problem.flat:
        return problem.unidentified("nll")
    low, high = 1 / bounds[1], 1 / bounds[0]
    trace = [(low, *problem.nll(low)[:2]), (high, *problem.nll(high)[:2])]
    if trace[0][2] >= 0:
        return problem.fit(low, trace[:1])
    if trace[1][2] <= 0:
        return problem.fit(high, trace[1:])
    trace = []
    for _ in range(steps):
        beta = (low + high) / 2
        value, slope, _ = problem.nll(beta)
        trace.append((beta, value, slope))
        low, high = (beta, high) if slope < 0 else (low, beta)
    return problem.fit(beta, trace)


class TemperatureScaling:
    """Temperature scaling with the interface of scikit-learn.

    Parameters
    ----------
    objective : {"nll", "brier"}
    bounds : tuple of float

    Attributes
    ----------
    temperature_ : float
    fit_ : TemperatureFit

    Examples
    --------
    >>> scaling = TemperatureScaling().fit([[6.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> scaling.predict_proba([[6.0, 0.0]]).round(4).tolist()
    [[0.75, 0.25]]
    """

    def __init__(self, objective="nll", bounds=BOUNDS):
        self.objective = objective
        self.bounds = bounds

    def fit(self, logits, targets):
        """Fit the temperature; returns self. An earlier fit leaves no trace."""
        self.fit_ = fit_temperature(logits, targets, self.objective, self.bounds)
        self.temperature_ = self.fit_.temperature
        return self

    def predict_proba(self, logits):
        """Softmax of the logits at the fitted temperature, float64 (n, K)."""
        if not hasattr(self, "temperature_"):
            raise ValueError("TemperatureScaling: expected a fitted object; call fit(logits, targets) first")
        return softmax(logits, self.temperature_)


class _Problem:
    """Checked data of one fit: margins to the row maximum, class by class, and their mean under the target."""

    def __init__(self, logits, targets, bounds):
        self.bounds = bounds
        self.targets = targets
        self.margins = np.ascontiguousarray(shift(logits).T)  # (K, n): sums over few classes run along rows
        self.finite = np.where(np.isneginf(self.margins), 0.0, self.margins)
        if targets.ndim == 1:
            at_target = self.margins[targets, np.arange(len(targets))]
        else:
            self.targets = np.ascontiguousarray(targets.T, dtype=np.float64)
            at_target = np.where(self.targets > 0, self.margins, 0.0)
            at_target = (self.targets * at_target).sum(axis=0)
        if np.isneginf(at_target).any():
            row = int(np.isneginf(at_target).argmax())
            raise ValueError(f"logits: expected a finite logit wherever the target has weight, got -inf in row {row}")
        self.at_target = float(at_target.mean())
        self.flat = not self.finite.any()

    @classmethod
    def check(cls, logits, targets, bounds):
        logits = as_logits(logits)
        if np.shape(bounds) != (2,) or not 0 < bounds[0] < bounds[1] < np.inf:
            raise ValueError(f"bounds: expected two temperatures, 0 < low < high, got {bounds}")
        return cls(logits, as_targets(targets, *logits.shape), bounds)

    def nll(self, beta):
        """Mean NLL at 1/T = beta, with its first and second derivative by beta."""
        weights = np.exp(self.margins * beta)
        total = weights.sum(axis=0)
        mean = np.einsum("kn,kn->n", weights, self.finite) / total
        variance = np.einsum("kn,kn,kn->n", weights, self.finite, self.finite) / total - mean**2
        value = np.log(total).mean() - beta * self.at_target
        return float(value), float(mean.mean() - self.at_target), float(variance.mean())

    def brier(self, beta):
        """Mean Brier score at 1/T = beta, with its derivative by beta."""
        p = np.exp(self.margins * beta)
        p /= p.sum(axis=0)
        residual = p.copy()
        if self.targets.ndim == 1:
            residual[self.targets, np.arange(p.shape[1])] -= 1
        else:
            residual -= self.targets
        spread = self.finite - np.einsum("kn,kn->n", p, self.finite)
        slope = 2 * np.einsum("kn,kn,kn->n", residual, p, spread)
        return float(np.einsum("kn,kn->n", residual, residual).mean()), float(slope.mean())

    def fit(self, beta, trace, value=None):
        """The result of a search that ended at `beta`, by default its last step; at a bound of T if it lies there."""
        at_bound = {1 / self.bounds[0]: "lower", 1 / self.bounds[1]: "upper"}.get(beta)
        temperature = {"lower": self.bounds[0], "upper": self.bounds[1]}.get(at_bound, 1 / beta)
        rows = np.array([(1 / b, value, slope) for b, value, slope in trace])
        value = rows[-1, 1] if value is None else value
        return TemperatureFit(float(temperature), float(value), at_bound, True, rows)

    def unidentified(self, objective):
        """The result where every temperature gives the same predictions: 1, or the bound that is nearest to it."""
        temperature = min(max(1.0, self.bounds[0]), self.bounds[1])
        value = self.nll(1.0)[0] if objective == "nll" else self.brier(1.0)[0]
        return TemperatureFit(float(temperature), value, None, False, np.empty((0, 3)))


def _newton(problem):
    """Newton's iteration on the derivative of the NLL by 1/T, kept inside a bracket of its root."""
    low, high = 1 / problem.bounds[1], 1 / problem.bounds[0]
    present = np.isfinite(problem.margins).sum(axis=0)
    if (problem.finite.sum(axis=0) / present).mean() >= problem.at_target:
        return problem.fit(low, [(low, *problem.nll(low)[:2])])  # scores point away from targets: flat is best
    if problem.at_target == 0:
        return problem.fit(high, [(high, *problem.nll(high)[:2])])  # targets at the maxima: sharp is best
    beta = min(max(-1 / problem.finite.mean(), low), high)
    untried = {low, high}
    trace = []
    while True:
        value, slope, curvature = problem.nll(beta)
        trace.append((beta, value, slope))
        low, high = (beta, high) if slope < 0 else (low, beta)
        step = -slope / curvature if curvature > 0 else -np.sign(slope) * np.inf
        if slope == 0 or abs(step) <= 1e-12 * beta or low == high or len(trace) == 200:
            return problem.fit(beta, trace)
        beta += step
        if not low < beta < high:
            end = low if beta <= low else high
            beta = end if end in untried else np.sqrt(low * high)
            untried.discard(end)


def _global_search(problem):
    """Follow the Brier score over all of 1/T, and solve for the bottom of every valley.

    The score of a row changes over a factor of e in 1/T at the fastest; steps of a tenth of that see each valley.
    Beyond the grid all rows are uniform, or all at their maximum.
    """
    from scipy.optimize import brentq

    low, high = 1 / problem.bounds[1], 1 / problem.bounds[0]
    sizes = -problem.finite[problem.finite < 0]
    start, stop = np.clip([1e-3 / sizes.max(), 40 / sizes.min()], low, high)
    inner = np.geomspace(start, stop, 2 + int(np.log(stop / start) / 0.1))
    betas = np.unique(np.concatenate([[low], inner[1:-1], [high]]))
    trace = [(beta, *problem.brier(beta)) for beta in betas]
    slopes = np.array([slope for _, _, slope in trace])
    valleys = np.flatnonzero((slopes[:-1] < 0) & (slopes[1:] >= 0))
    bottoms = [brentq(lambda beta: problem.brier(beta)[1], betas[i], betas[i + 1], xtol=1e-300) for i in valleys]
    candidates = [trace[0], trace[-1], *((beta, *problem.brier(beta)) for beta in bottoms)]
    best = min(candidates, key=lambda candidate: candidate[1])
    return problem.fit(best[0], [*trace, *candidates[2:]], best[1])

"""Temperature scaling: one positive number that divides the logits (Guo et al. 2017)."""

from dataclasses import dataclass

import numpy as np

from calib.checks import as_count
from calib.objective import SMALL, Objective
from calib.probabilities import softmax

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
    if objective not in ("nll", "brier"):
        raise ValueError(f'objective: expected "nll" or "brier", got {objective!r}')
    _check_bounds(bounds)
    problem = Objective(logits, targets)
    if problem.flat:
        return _unidentified(problem, objective, bounds)
    return _newton(problem, bounds) if objective == "nll" else _global_search(problem, bounds)


def bisect_temperature(logits, targets, bounds=BOUNDS, steps=100):
    """Fit the temperature for the NLL by a fixed number of bisections of 1/T: slow, and easy to audit.

    Parameters and result as in `fit_temperature`; the trace has one row per step.
    """
    steps = as_count(steps, "steps")
    _check_bounds(bounds)
    problem = Objective(logits, targets)
    if problem.flat:
        return _unidentified(problem, "nll", bounds)
    low, high = 1 / bounds[1], 1 / bounds[0]
    ends = [problem.nll(beta)[1:3] for beta in (low, high)]
    if ends[0][1] >= 0:
        return _result(low, [(low, *ends[0])], bounds)
    if ends[1][1] <= 0:
        return _result(high, [(high, *ends[1])], bounds)
    trace = []
    for _ in range(steps):
        beta = (low + high) / 2
        value, slope = problem.nll(beta)[1:3]
        trace.append((beta, value, slope))
        low, high = (beta, high) if slope < 0 else (low, beta)
    if high - low > 1e-6 * high:
        ends = f"{1 / high:.3g} and {1 / low:.3g}"
        raise ValueError(f"steps: expected enough to find T to six digits, got {steps}, which leave it between {ends}")
    return _result(beta, trace, bounds)


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
    n_classes_ : int

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
        self.n_classes_ = np.shape(logits)[1]
        return self

    def predict_proba(self, logits):
        """Softmax of the logits at the fitted temperature, float64 (n, K)."""
        if not hasattr(self, "temperature_"):
            raise ValueError("TemperatureScaling: expected a fitted object; call fit(logits, targets) first")
        probabilities = softmax(logits, self.temperature_)
        n_classes = probabilities.shape[1]
        if n_classes != self.n_classes_:
            raise ValueError(f"logits: expected {self.n_classes_} columns, as in fit, got {n_classes}")
        return probabilities


def _check_bounds(bounds):
    if np.shape(bounds) != (2,) or not 0 < bounds[0] < bounds[1] < np.inf:
        raise ValueError(f"bounds: expected two temperatures, 0 < low < high, got {bounds}")


def _result(beta, trace, bounds, value=None):
    """The result of a search that ended at `beta`, by default its last step; at a bound of T if it lies there."""
    at_bound = {1 / bounds[0]: "lower", 1 / bounds[1]: "upper"}.get(beta)
    temperature = {"lower": bounds[0], "upper": bounds[1]}.get(at_bound, 1 / beta)
    rows = np.array([(1 / b, f, slope) for b, f, slope in trace])
    value = rows[-1, 1] if value is None else value
    return TemperatureFit(float(temperature), float(value), at_bound, True, rows)


def _unidentified(problem, objective, bounds):
    """The result where every temperature gives the same predictions: 1, or the bound that is nearest to it."""
    temperature = min(max(1.0, bounds[0]), bounds[1])
    value = problem.nll(1.0)[1] if objective == "nll" else problem.brier(1.0)[0]
    return TemperatureFit(float(temperature), value, None, False, np.empty((0, 3)))


def _newton(problem, bounds):
    """Newton's iteration on the derivative of the NLL by beta = 1/T, kept inside a bracket of its root.

    A step that would leave the bracket goes to the bound of T that it passes, if that was never tried, and else to
    the middle of the bracket. The last step is taken unseen: by quadratic convergence no further one would count.
    """
    low, high = 1 / bounds[1], 1 / bounds[0]
    if problem.at_target == 0:  # every target is at a row maximum: sharper is better, without end
        return _result(high, [(high, *problem.nll(high)[1:3])], bounds)
    beta = min(max(_start(problem, bounds), low), high)
    untried, previous, trace = {low, high}, None, []
    while True:
        used, value, slope, curvature = problem.nll(beta)
        beta = beta if beta in (low, high) else used
        trace.append((beta, value, slope))
        low, high = (beta, high) if slope < 0 else (low, beta)
        if slope == 0 or low == high or len(trace) == 200:
            return _result(beta, trace, bounds)
        step = -slope / curvature if curvature > 0 else -np.sign(slope) * np.inf
        inside = low < beta + step < high
        if abs(step) <= problem.resolution * beta or (inside and _ends_with(step, previous, beta)):
            return _result(beta + step, trace, bounds, value + slope * step / 2)
        if inside:
            beta, previous = beta + step, step
            continue
        end = low if beta + step <= low else high
        beta, previous = end if end in untried else np.sqrt(low * high), None
        untried.discard(end)


def _ends_with(step, previous, beta):
    """Whether the step after this one would be too small to count: steps shrink as the square of the one before."""
    return previous is not None and abs(step) ** 3 / previous**2 <= 1e-13 * beta


def _start(problem, bounds):
    """First 1/T of the iteration: the fit to some of the rows where there are many."""
    if problem.logits.size <= SMALL:
        return -problem.logits.size / problem.spread
    some = problem.thinned()
    return 1.0 if some.flat else 1 / _newton(some, bounds).temperature


def _global_search(problem, bounds):
    """Follow the Brier score over all of 1/T, and solve for the bottom of every valley.

    The score of a row changes over a factor of e in 1/T at the fastest; steps of a fifth of that see each valley.
    Beyond the grid all rows are uniform, or all at their maximum.
    """
    from scipy.optimize import brentq

    low, high = 1 / bounds[1], 1 / bounds[0]
    smallest, largest = problem.sizes()
    start, stop = np.clip([1e-3 / largest, 40 / smallest], low, high)
    inner = np.geomspace(start, stop, 2 + int(np.log(stop / start) / 0.2))
    betas = np.unique(np.concatenate([[low], inner[1:-1], [high]]))
    trace = [(beta, *problem.brier(beta)) for beta in betas]
    slopes = np.array([slope for _, _, slope in trace])
    valleys = np.flatnonzero((slopes[:-1] < 0) & (slopes[1:] >= 0))
    bottoms = [brentq(lambda beta: problem.brier(beta)[1], betas[i], betas[i + 1], xtol=1e-300) for i in valleys]
    candidates = [trace[0], trace[-1], *((beta, *problem.brier(beta)) for beta in bottoms)]
    best = min(candidates, key=lambda candidate: candidate[1])
    return _result(best[0], [*trace, *candidates[2:]], bounds, best[1])

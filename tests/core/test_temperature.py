"""The fitted temperature: known answers, a global optimum, and honesty about bounds."""

import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calib import TemperatureScaling, accuracy, bisect_temperature, brier, fit_temperature, nll, softmax
from calib.temperature import BOUNDS

LN3 = np.log(3)
BY_BRIER = partial(fit_temperature, objective="brier")
EVERY_FIT = pytest.mark.parametrize(
    "fit", [fit_temperature, bisect_temperature, BY_BRIER], ids=["newton", "bisection", "brier"]
)
BOTH_OBJECTIVES = pytest.mark.parametrize("objective", ["nll", "brier"])
ANTI = [[4, 0], [4, 0], [0, 4]], [1, 1, 0]


def score(logits, targets, temperature, objective="nll"):
    if objective == "nll":
        return nll(logits, targets, temperature)
    return brier(softmax(logits, temperature), targets)


@st.composite
def problems(draw):
    """Logits of any scale, some tied, and hard labels, good or bad, or distributions."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_classes = draw(st.integers(1, 30)), draw(st.integers(2, 5))
    logits = draw(st.sampled_from([1e-2, 1, 30, 1e3])) * rng.normal(size=(n, n_classes)).round(1)
    if draw(st.booleans()):
        return logits, rng.dirichlet(np.ones(n_classes), n)
    right = rng.random(n) < draw(st.sampled_from([0, 0.5, 0.9, 1]))
    return logits, np.where(right, logits.argmax(axis=1), rng.integers(0, n_classes, n))


# --- known answers ---------------------------------------------------------------------------------------------------


@EVERY_FIT
@pytest.mark.parametrize("targets", [[0, 0, 0, 1], [[0.75, 0.25]] * 4], ids=["hard", "soft"])
@pytest.mark.parametrize("margin, temperature", [(LN3 / 2, 0.5), (6, 5.4614), (40 * LN3, 40), (1e-3 * LN3, 1e-3)])
def test_equal_rows_have_the_temperature_of_their_margin(fit, targets, margin, temperature):
    found = fit([[margin, 0]] * 4, targets)
    assert found.temperature == pytest.approx(temperature, rel=1e-5)
    assert (found.at_bound, found.identified) == (None, True)
    assert nll([[margin, 0]] * 4, targets, found.temperature) == pytest.approx(0.56234, abs=5e-6)


@EVERY_FIT
@pytest.mark.parametrize("n_wrong, temperature", [(1, 691.95), (5, 2000 / np.log(2))])
def test_logits_of_a_thousand_overflow_nothing(fit, n_wrong, temperature):
    logits = np.full((10, 3), -1000.0)
    logits[:, 0] = 1000
    labels = (np.arange(10) < n_wrong).astype(int)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert fit(logits, labels).temperature == pytest.approx(temperature, rel=1e-5)


def test_log_probabilities_are_logits_and_probabilities_are_not_guessed():
    probabilities = np.array([[0.98, 0.02]] * 4)
    assert fit_temperature(np.log(probabilities), [0, 0, 0, 1]).temperature == pytest.approx(3.5425, abs=5e-5)
    assert fit_temperature(probabilities, [0, 0, 0, 1]).temperature == pytest.approx(0.874, abs=5e-4)


@pytest.mark.parametrize(
    "n_narrow, bounds, temperature, value",
    [
        (5, BOUNDS, 13.70, 0.37310),
        (5, (0.01, 5), 0.721, 0.37333),
        (6, BOUNDS, 0.621, 0.35417),
        (6, (5, 100), 13.436, 0.37877),
    ],
)
def test_brier_finds_the_global_one_of_two_minima_within_the_bounds(n_narrow, bounds, temperature, value):
    logits = [[1, 0]] * n_narrow + [[20, 0]] * 10
    targets = [1] + [0] * (n_narrow - 1) + [1] * 2 + [0] * 8
    found = fit_temperature(logits, targets, "brier", bounds)
    assert found.temperature == pytest.approx(temperature, rel=1e-3)
    assert found.objective == pytest.approx(value, abs=5e-6)
    assert found.at_bound is None


@BOTH_OBJECTIVES
def test_calibrated_logits_need_no_temperature(objective, simulate):
    logits, labels = simulate(20_000, 4)
    assert fit_temperature(logits, labels, objective).temperature == pytest.approx(1, abs=0.03)


@BOTH_OBJECTIVES
@pytest.mark.parametrize("temperature", [0.3, 1.8, 6])
def test_known_temperature_is_recovered(objective, temperature, simulate):
    logits, labels = simulate(20_000, 4, temperature)
    assert fit_temperature(logits, labels, objective).temperature == pytest.approx(temperature, rel=0.04)
    exact = fit_temperature(logits, softmax(logits, temperature), objective)
    assert exact.temperature == pytest.approx(temperature, rel=1e-7)


# --- the optimum -----------------------------------------------------------------------------------------------------


@BOTH_OBJECTIVES
@given(problem=problems())
def test_no_temperature_on_a_dense_grid_does_better(objective, problem):
    found = fit_temperature(*problem, objective)
    assert found.objective == pytest.approx(score(*problem, found.temperature, objective), rel=1e-12, abs=1e-15)
    grid = [1, *np.geomspace(*BOUNDS, 121), *(found.temperature * np.geomspace(0.9, 1.1, 21)).clip(*BOUNDS)]
    assert found.objective <= min(score(*problem, temperature, objective) for temperature in grid) + 1e-12


@given(problems())
def test_newton_agrees_with_bisection(problem):
    newton, bisection = fit_temperature(*problem), bisect_temperature(*problem)
    assert newton.temperature == pytest.approx(bisection.temperature, rel=1e-6)
    assert newton.objective == pytest.approx(bisection.objective, abs=1e-12)
    assert (newton.at_bound, newton.identified) == (bisection.at_bound, bisection.identified)
    assert newton.iterations <= 50


@EVERY_FIT
def test_trace_ends_at_the_result_and_holds_the_derivative_by_the_inverse_temperature(fit, simulate):
    logits, labels = simulate(300, 3, temperature=2)
    found = fit(logits, labels)
    objective = "brier" if fit is BY_BRIER else "nll"
    assert found.trace.shape == (found.iterations, 3)
    assert found.trace[-1, :2].tolist() == pytest.approx([found.temperature, found.objective], rel=1e-6)
    assert found.trace[-1, 2] == pytest.approx(0, abs=1e-6)
    for temperature, value, slope in found.trace[found.trace[:, 0] > 0.1]:
        assert value == pytest.approx(score(logits, labels, temperature, objective))
        step = 1e-5 / temperature
        sides = [score(logits, labels, 1 / (1 / temperature + sign * step), objective) for sign in (-1, 1)]
        assert slope == pytest.approx((sides[1] - sides[0]) / (2 * step), rel=1e-4, abs=1e-4)


# --- bounds and flat objectives --------------------------------------------------------------------------------------


@EVERY_FIT
@pytest.mark.parametrize("bounds", [BOUNDS, (0.05, 20), (2, 3)])
@pytest.mark.parametrize(
    "logits, targets, side",
    [
        (*ANTI, "upper"),
        (ANTI[0], [[0.1, 0.9], [0.1, 0.9], [0.9, 0.1]], "upper"),
        ([[4, 0], [0, 4]], [0, 1], "lower"),
        ([[4, 0], [0, 1e-3]], [0, 1], "lower"),
        ([[4, 0, -np.inf], [0, 4, 4]], [0, 1], "lower"),  # a tie at the top is as good as that row can get
    ],
    ids=["anti-correlated", "anti-correlated soft", "separable", "barely separable", "tied at the top"],
)
def test_an_optimum_at_a_bound_is_there_and_says_so(fit, bounds, logits, targets, side):
    found = fit(logits, targets, bounds=bounds)
    assert found.temperature == {"lower": bounds[0], "upper": bounds[1]}[side]
    assert (found.at_bound, found.identified) == (side, True)


def test_anti_correlated_scores_never_reach_a_negative_temperature():
    assert nll(*ANTI) == pytest.approx(4.018, abs=5e-4)
    assert fit_temperature(*ANTI).objective == pytest.approx(np.log(2), abs=1e-5)


@EVERY_FIT
@pytest.mark.parametrize(
    "bounds, temperature, side", [((1, 2), 2, "upper"), ((6, 9), 6, "lower"), ((1, 9), 5.461, None)]
)
def test_a_bound_cuts_off_an_optimum_beyond_it(fit, bounds, temperature, side):
    found = fit([[6, 0]] * 4, [0, 0, 0, 1], bounds=bounds)
    assert found.temperature == pytest.approx(temperature, rel=1e-4)
    assert found.at_bound == side


@EVERY_FIT
@pytest.mark.parametrize("targets", [[0, 1, 1], [[0.5, 0.5, 0]] * 3], ids=["hard", "soft"])
@pytest.mark.parametrize("row", [[0, 0, 0], [7.1, 7.1, 7.1], [2, 2, -np.inf]])
def test_constant_logits_do_not_identify_a_temperature(fit, targets, row):
    found = fit([row] * 3, targets)
    assert (found.temperature, found.identified, found.at_bound, found.iterations) == (1, False, None, 0)
    objective = "brier" if fit is BY_BRIER else "nll"
    assert found.objective == pytest.approx(score([row] * 3, targets, 1, objective))


# --- invariance ------------------------------------------------------------------------------------------------------


@EVERY_FIT
@pytest.mark.parametrize("factor", [1e-2, 0.7, 1e3])
def test_temperature_scales_with_the_logits(fit, factor, simulate):
    logits, labels = simulate(500, 3, temperature=2)
    assert fit(logits * factor, labels).temperature == pytest.approx(factor * fit(logits, labels).temperature, rel=1e-7)


@EVERY_FIT
def test_shifted_rows_give_the_same_temperature(fit, simulate):
    logits, labels = simulate(500, 3, temperature=2)
    logits = logits.round()  # so that adding 1e4 is exact
    offsets = np.where(np.arange(500) % 2, 1e4, -1e4)[:, None]
    assert fit(logits + offsets, labels).temperature == fit(logits, labels).temperature


@EVERY_FIT
def test_order_of_rows_and_classes_does_not_matter(fit, simulate):
    logits, labels = simulate(500, 4, temperature=2)
    rows, classes = np.random.default_rng(0).permutation(500), np.array([2, 0, 3, 1])
    moved = fit(logits[rows][:, classes], np.argsort(classes)[labels[rows]])
    assert moved.temperature == pytest.approx(fit(logits, labels).temperature, rel=1e-9)


@EVERY_FIT
def test_hard_labels_equal_one_hot_distributions(fit, simulate):
    logits, labels = simulate(500, 4, temperature=2)
    hard, soft = fit(logits, labels), fit(logits, np.eye(4)[labels])
    assert soft.temperature == pytest.approx(hard.temperature, rel=1e-9)
    assert soft.objective == pytest.approx(hard.objective, rel=1e-12)


@EVERY_FIT
@pytest.mark.parametrize("dtype, tolerance", [(np.float16, 2e-3), (np.float32, 1e-6)])
def test_input_type_costs_only_its_own_precision(fit, dtype, tolerance, simulate):
    logits, labels = simulate(1000, 4, temperature=2)
    soft = softmax(logits, 2)
    rounded = logits.astype(dtype)
    assert fit(rounded, labels).temperature == fit(rounded.astype(np.float64), labels).temperature
    assert fit(rounded, labels).temperature == pytest.approx(fit(logits, labels).temperature, rel=tolerance)
    assert fit(rounded, soft.astype(dtype)).temperature == pytest.approx(fit(logits, soft).temperature, rel=tolerance)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_labels_of_any_integer_type_mean_the_same(dtype, simulate):
    logits, labels = simulate(100, 3)
    assert fit_temperature(logits, labels.astype(dtype)).temperature == fit_temperature(logits, labels).temperature


@EVERY_FIT
@pytest.mark.parametrize("mask", [-np.inf, -1e9])
def test_a_masked_class_changes_nothing(fit, mask, simulate):
    logits, labels = simulate(300, 3, temperature=15)  # hardly informative: a mask must not tip it to the bound
    masked = np.insert(logits, 1, mask, axis=1)
    classes = np.array([0, 2, 3])
    temperature = fit(logits, labels).temperature
    assert fit(masked, classes[labels]).temperature == pytest.approx(temperature, rel=1e-9)
    assert fit(masked, np.eye(4)[classes[labels]]).temperature == pytest.approx(temperature, rel=1e-9)


@EVERY_FIT
@pytest.mark.parametrize("targets", [[0, 2, 1], [[1, 0, 0], [0, 0.9, 0.1], [0, 1, 0]]], ids=["hard", "soft"])
def test_weight_on_a_masked_class_is_refused_by_row(fit, targets):
    with pytest.raises(ValueError, match=r"^logits: expected a finite logit wherever .* weight, got -inf in row 1"):
        fit([[0, 1, 2], [0, 1, -np.inf], [0, 1, 2]], targets)


# --- the estimator ---------------------------------------------------------------------------------------------------


@BOTH_OBJECTIVES
def test_an_earlier_fit_leaves_no_trace(objective, simulate):
    first, second = simulate(100, 3, temperature=0.2), simulate(200, 5, temperature=4, seed=1)
    fresh = [TemperatureScaling(objective).fit(*data).temperature_ for data in (first, second)]
    used = TemperatureScaling(objective)
    again = [used.fit(*data).temperature_ for data in (second, first, first, second)]
    assert again == [fresh[1], fresh[0], fresh[0], fresh[1]]


def test_estimator_applies_what_the_function_finds(simulate):
    logits, labels = simulate(100, 3, temperature=2)
    scaling = TemperatureScaling(objective="brier", bounds=(0.5, 1.5)).fit(logits, labels)
    assert scaling.temperature_ == fit_temperature(logits, labels, "brier", (0.5, 1.5)).temperature == 1.5
    assert scaling.fit_.at_bound == "upper"
    new = [[3.0, 1.0, 0.0]]
    np.testing.assert_array_equal(scaling.predict_proba(new), softmax(new, 1.5))
    assert accuracy(scaling.predict_proba(logits), labels) == accuracy(logits, labels)


# --- arguments and speed ---------------------------------------------------------------------------------------------


@EVERY_FIT
@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (2, 1), (1, 1), (1, np.inf), (np.nan, 1), (1, 2, 3)])
def test_bounds_that_are_no_range_are_refused(fit, bounds):
    with pytest.raises(ValueError, match=r"^bounds: expected two temperatures, 0 < low < high, got "):
        fit([[1.0, 0.0]], [0], bounds=bounds)


def test_unknown_objective_and_zero_steps_are_refused():
    with pytest.raises(ValueError, match=r'^objective: expected "nll" or "brier", got \'ece\''):
        fit_temperature([[1.0, 0.0]], [0], objective="ece")
    with pytest.raises(ValueError, match=r"^steps: expected a whole number of at least 1, got 0"):
        bisect_temperature([[1.0, 0.0]], [0], steps=0)


def test_a_fit_of_ten_thousand_rows_is_quick(simulate):
    logits, labels = simulate(10_000, 10, temperature=2.5)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        fit_temperature(logits, labels)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) <= 0.05


@pytest.mark.parametrize("bounds", [(0.5, 2), (0.25, 4), (0.05, 20), (1e-6, 1e6)])
def test_a_brier_minimum_on_a_point_of_the_grid_is_found(bounds):
    logits = np.random.default_rng(0).normal(size=(50, 3))
    assert fit_temperature(logits, softmax(logits), "brier", bounds).temperature == pytest.approx(1, abs=1e-6)
    exact = fit_temperature([[np.log(3), 0]], [[0.75, 0.25]], "brier", bounds)
    assert exact.temperature == pytest.approx(1, abs=1e-6) and exact.at_bound is None


@pytest.mark.parametrize(("bounds", "temperature"), [((2, 5), 2), ((0.1, 0.5), 0.5), ((0.5, 2), 1)])
def test_an_unidentified_temperature_stays_within_the_bounds(bounds, temperature):
    assert fit_temperature(np.ones((4, 3)), [0, 1, 2, 0], bounds=bounds).temperature == temperature


@pytest.mark.parametrize("bounds", [1.0, None, (1,), (1, 2, 3), (2, 1), (0, 1)])
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="^bounds: expected two temperatures"):
        fit_temperature(np.eye(3), [0, 1, 1], bounds=bounds)


@pytest.mark.parametrize("objective", ["nll", "brier"])
def test_an_unidentified_fit_has_the_score_of_equal_probabilities_and_no_trace(objective):
    found = fit_temperature(np.full((3, 4), 7.0), [0, 1, 2], objective)
    assert found.objective == pytest.approx({"nll": np.log(4), "brier": 0.75}[objective])
    assert found.trace.shape == (0, 3) and found.iterations == 0


def test_bisection_takes_a_hundred_steps_by_default():
    assert bisect_temperature([[6.0, 0.0]] * 4, [0, 0, 0, 1]).iterations == 100


def test_valleys_of_the_brier_score_that_lie_close_are_told_apart():
    """A dense grid of 1/T, ten times as fine as that of the search, sees no lower score."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        margins = np.exp(rng.normal(0, 2, 12))
        logits, labels = np.column_stack([margins, np.zeros(12)]), rng.integers(0, 2, 12)
        found = fit_temperature(logits, labels, "brier")
        grid = [brier(softmax(logits, T), labels) for T in np.geomspace(1e-4, 1e4, 1000)]
        assert found.objective <= min(grid) + 1e-12

"""Fits on a grid are the exact fits, within the error of the grid; clusters are drawn whole."""

import numpy as np
import pytest

from calib import brier, fit_temperature, nll, softmax
from calib.curves import TEMPERATURES, bootstrap_weights, lowest, score_curves, values_at, weighted_means
from calib.resampling import bootstrap_indices

GRID = np.array([0.5, 3.0])


@pytest.mark.parametrize("objective", ["nll", "brier"])
@pytest.mark.parametrize("truth", [0.4, 1.0, 3.0, 12.0])
def test_the_lowest_point_of_the_curve_is_the_fitted_temperature(simulate, objective, truth):
    logits, labels = simulate(2000, 4, truth, seed=1)
    mean = score_curves(logits, labels, objective).mean(axis=0)
    fitted = fit_temperature(logits, labels, objective=objective).temperature
    assert lowest(mean)[0] == pytest.approx(fitted, rel=2e-4)


def test_a_curve_read_between_its_points_is_the_score(simulate):
    logits, labels = simulate(500, 3, 2.0)
    curves = score_curves(logits, labels, "brier")
    where = np.array([0.31, 1.234, 2.0, 17.7])
    exact = [brier(softmax(logits, T), labels) for T in where]
    assert values_at(curves.mean(axis=0), where) == pytest.approx(exact, abs=1e-7)
    repeated = np.tile(curves.mean(axis=0), (4, 1))
    assert values_at(repeated, where) == pytest.approx(exact, abs=1e-7)


def test_several_minima_give_the_lowest():
    logits = [[1.0, 0.0]] * 5 + [[20.0, 0.0]] * 10
    labels = [1] + [0] * 4 + [1] * 2 + [0] * 8
    assert lowest(score_curves(logits, labels, "brier").mean(axis=0))[0] == pytest.approx(13.70, abs=0.01)


def test_a_minimum_beyond_the_grid_is_its_end():
    logits = [[1.0, 0.0], [0.0, 1.0]]
    assert lowest(score_curves(logits, [0, 1], "nll").mean(axis=0))[0] == pytest.approx(TEMPERATURES[0])
    assert lowest(score_curves(logits, [1, 0], "nll").mean(axis=0))[0] == pytest.approx(TEMPERATURES[-1])


def test_a_replicate_is_the_fit_to_its_rows(simulate):
    logits, labels = simulate(300, 3, 2.0)
    weights = bootstrap_weights(300, replicates=3, seed=5)
    rows = [np.repeat(np.arange(300), w.astype(int)) for w in weights]
    found = lowest(weighted_means(weights, score_curves(logits, labels, "nll")))
    assert found == pytest.approx([fit_temperature(logits[r], labels[r]).temperature for r in rows], rel=2e-4)


def test_the_rows_drawn_are_those_of_the_paired_bootstrap():
    weights = bootstrap_weights(50, replicates=20)
    for row, drawn in zip(weights, bootstrap_indices(50, 20)):
        assert np.array_equal(row, np.bincount(drawn, minlength=50))


def test_clusters_widen_the_spread_of_a_mean_by_what_theory_says():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=200), 5)
    clusters = np.repeat(np.arange(200), 5)
    alone = weighted_means(bootstrap_weights(1000, replicates=4000), values).std()
    together = weighted_means(bootstrap_weights(1000, clusters, 4000), values).std()
    assert together / alone == pytest.approx(np.sqrt(5), rel=0.1)
    assert together == pytest.approx(values.std() / np.sqrt(200), rel=0.05)


def test_curves_are_the_scores_row_by_row(simulate):
    logits, labels = simulate(20, 3)
    q = softmax(logits, 3.0)
    grid = np.array([0.7, 2.5])
    for k, T in enumerate(grid):
        assert score_curves(logits, q, "nll", grid)[:, k].mean() == pytest.approx(nll(logits, q, T))
        assert score_curves(logits, labels, "brier", grid)[:, k].mean() == pytest.approx(
            brier(softmax(logits, T), labels)
        )


def test_a_masked_class_without_weight_costs_nothing(simulate):
    logits, labels = simulate(30, 3)
    masked = np.column_stack([logits, np.full(30, -np.inf)])
    votes = np.random.default_rng(0).multinomial(9, softmax(logits)) / 9
    for objective, targets in (("nll", labels), ("nll", votes), ("brier", labels), ("brier", votes)):
        wider = targets if targets.ndim == 1 else np.column_stack([targets, np.zeros(30)])
        expected = score_curves(logits, targets, objective, GRID)
        assert score_curves(masked, wider, objective, GRID) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    "means, message",
    [
        (np.zeros(346), "means: expected curves that identify a temperature, got the same score .* in curve 0"),
        ([np.arange(346.0), np.full(346, 0.3)], "means: .* in curve 1"),
        (np.full(346, np.nan), "means: expected finite scores, got others in curve 0"),
        ([np.arange(346.0), np.full(346, np.inf)], "means: expected finite scores, got others in curve 1"),
        (np.arange(100.0), r"means: expected 346 values per curve, as temperatures, got shape \(1, 100\)"),
    ],
)
def test_curves_without_a_lowest_point_are_refused(means, message):
    with pytest.raises(ValueError, match=message):
        lowest(means)


def test_a_replicate_without_rows_has_no_mean():
    with pytest.raises(ValueError, match="weights: expected rows in each replicate, got none in replicate 1"):
        weighted_means(np.array([[1.0, 0.0], [0.0, 0.0]]), np.ones(2))


@pytest.mark.parametrize("missing", [None, float("nan"), np.datetime64("NaT")])
def test_a_row_without_a_cluster_is_no_cluster_of_its_own(missing):
    with pytest.raises(ValueError, match="clusters: expected a name for each row, got none in row 1"):
        bootstrap_weights(3, clusters=["a", missing, missing])


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match='objective: expected "nll" or "brier"'):
        score_curves([[1.0, 0.0]], [0], "mse")
    with pytest.raises(ValueError, match="clusters: expected 3 values"):
        bootstrap_weights(3, clusters=[0, 1])
    with pytest.raises(ValueError, match="clusters: expected strings or integers, not both"):
        bootstrap_weights(2, clusters=np.array([0, "a"], dtype=object))

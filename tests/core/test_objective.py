"""The tiled objective: the same numbers whatever the tiles, the threads, the type and the order of the input."""

import tracemalloc

import numpy as np
import pytest

from calib import brier, fit_temperature, nll, objective, softmax, tiles
from calib.objective import Objective


@pytest.fixture
def large(simulate, monkeypatch):
    """Data of several tiles, with few and many classes; the tiles are small, so that the data can be."""
    monkeypatch.setattr(tiles, "TILE", 1 << 12)
    monkeypatch.setattr(objective, "SMALL", 1 << 9)
    return {K: simulate(n, K) for n, K in ((1_500, 10), (150, 100))}


@pytest.mark.parametrize("n_classes", [10, 100])
@pytest.mark.parametrize("soft", [False, True])
def test_the_objective_is_the_score_and_its_slope_the_difference_quotient(large, n_classes, soft):
    logits, labels = large[n_classes]
    targets = softmax(logits, 2) if soft else labels
    problem = Objective(logits, targets)
    assert len(problem.tiles) > 1
    beta, step = 0.7, 1e-5
    used, value, slope, curvature = problem.nll(beta)
    assert value == pytest.approx(nll(logits, targets, 1 / used), rel=1e-12)
    low, high = (problem.nll(beta + s)[1:3] for s in (-step, step))
    assert slope == pytest.approx((high[0] - low[0]) / (2 * step), rel=1e-5)
    assert curvature == pytest.approx((high[1] - low[1]) / (2 * step), rel=1e-5)
    value, slope = problem.brier(beta)
    assert value == pytest.approx(brier(softmax(logits, 1 / beta), targets), rel=1e-12)
    low, high = (problem.brier(beta + s)[0] for s in (-step, step))
    assert slope == pytest.approx((high - low) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("n_classes", [10, 100])
def test_tiles_and_threads_change_nothing(large, n_classes, monkeypatch):
    logits, labels = large[n_classes]
    expected = fit_temperature(logits, labels).temperature
    monkeypatch.setattr(tiles, "THREADS", 1)
    assert fit_temperature(logits, labels).temperature == expected
    for tile in (1 << 8, 1 << 11, 1 << 30):
        monkeypatch.setattr(tiles, "TILE", tile)
        assert fit_temperature(logits, labels).temperature == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_classes", [10, 100])
@pytest.mark.parametrize(("dtype", "precision"), [(np.float16, 1e-3), (np.float32, 1e-7), (np.float64, 1e-12)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_type_and_order_of_the_input_change_no_more_than_their_precision(large, n_classes, dtype, precision, order):
    logits, labels = large[n_classes]
    found = fit_temperature(np.asarray(logits, dtype=dtype, order=order), labels).temperature
    assert found == pytest.approx(fit_temperature(logits, labels).temperature, rel=precision)


def test_a_memory_mapped_file_is_fitted_without_being_read_whole(tmp_path, simulate):
    logits, labels = simulate(200_000, 10)
    np.save(tmp_path / "logits.npy", logits.astype(np.float32))
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    tracemalloc.start()
    found = fit_temperature(mapped, labels).temperature
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == pytest.approx(fit_temperature(logits, labels).temperature, rel=1e-7)
    assert peak < mapped.nbytes


@pytest.mark.parametrize("n_classes", [10, 100])
def test_masked_classes_in_some_tiles_are_as_if_they_were_not_there(large, n_classes):
    logits, labels = large[n_classes]
    masked = np.column_stack([logits, np.where(np.arange(len(logits)) % 2, -np.inf, -1e300)])
    masked[: len(logits) // 2, -1] = -np.inf
    expected = fit_temperature(logits, labels)
    assert fit_temperature(masked, labels).temperature == pytest.approx(expected.temperature, rel=1e-9)
    targets = np.column_stack([softmax(logits, 3), np.zeros(len(logits))])
    soft = [fit_temperature(z, q, "brier").temperature for z, q in ((masked, targets), (logits, targets[:, :-1]))]
    assert soft[0] == pytest.approx(soft[1], rel=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_classes", [10, 100])
def test_the_offending_row_is_named_in_any_tile(large, n_classes, value):
    logits, labels = large[n_classes]
    logits = logits.copy()
    logits[-2, labels[-2]] = value
    with pytest.raises(ValueError, match=f"^logits: expected .* in row {len(logits) - 2}"):
        fit_temperature(logits, labels)


@pytest.mark.parametrize("soft", [False, True])
def test_a_start_at_the_optimum_ends_at_once(simulate, soft):
    """With float32 the start from some of the rows can lie within the resolution of 1/T from the optimum."""
    logits, labels = simulate(10_000, 10)
    logits = logits.astype(np.float32)
    targets = softmax(logits, 2.5) if soft else labels
    found = fit_temperature(logits, targets)
    assert found.iterations <= 8
    assert found.temperature == pytest.approx(fit_temperature(logits.astype(np.float64), targets).temperature, rel=1e-7)

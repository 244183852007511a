"""Paired bootstrap."""

import time

import numpy as np
import pytest

from calib import EqualMass, ece
from calib import resampling as resample
from calib.reliability import bin_edges
from calib.resampling import bootstrap_blocks, bootstrap_ece, bootstrap_indices, bootstrap_mean, interval


def test_indices_are_those_that_the_protocol_names():
    expected = np.random.default_rng(113).integers(0, 200, size=(2000, 200))
    np.testing.assert_array_equal(bootstrap_indices(200), expected)
    expected = np.random.default_rng(5).integers(0, 7, size=(3, 7))
    np.testing.assert_array_equal(bootstrap_indices(7, replicates=3, seed=5), expected)


def test_indices_neither_use_nor_move_the_global_random_state():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(bootstrap_indices(10), bootstrap_indices(10))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.fixture(scope="module")
def pair():
    """Two systems that differ by 0.1 on every example, within 0.02."""
    rng = np.random.default_rng(0)
    a = rng.normal(2, 1, 200)
    return a, a - 0.1 + rng.normal(0, 0.02, 200)


def test_paired_interval_is_narrow_where_independent_resampling_is_wide(pair):
    a, b = pair
    replicates = bootstrap_mean(np.column_stack(pair), bootstrap_indices(200))
    paired = interval(replicates[:, 0] - replicates[:, 1])
    np.testing.assert_allclose(paired, [0.099, 0.105], atol=0.003)
    np.testing.assert_allclose(paired, interval(bootstrap_mean(a - b, bootstrap_indices(200))), atol=1e-12)
    others = bootstrap_mean(b, bootstrap_indices(200, seed=114))
    independent = interval(replicates[:, 0] - others)
    np.testing.assert_allclose(independent, [-0.09, 0.28], atol=0.05)


def test_equal_systems_differ_by_exactly_zero(pair):
    a, _ = pair
    indices = bootstrap_indices(200)
    assert interval(bootstrap_mean(a - a, indices)) == (0, 0)
    replicates = bootstrap_mean(np.column_stack([a, a]), indices)
    assert interval(replicates[:, 0] - replicates[:, 1]) == (0, 0)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.float32, np.float64])
def test_means_agree_with_plain_fancy_indexing(dtype):
    values = (100 * np.random.default_rng(0).normal(size=(30, 3))).astype(dtype)
    indices = bootstrap_indices(30, replicates=50)
    expected = values.astype(np.float64)[indices].mean(axis=1)
    np.testing.assert_allclose(bootstrap_mean(values, indices), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bootstrap_mean(values[:, 1], indices), expected[:, 1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [10, 60])
def test_replicates_may_be_smaller_or_larger_than_the_sample(size):
    values = np.random.default_rng(0).normal(size=30)
    indices = np.random.default_rng(1).integers(0, 30, (20, size))
    np.testing.assert_allclose(bootstrap_mean(values, indices), values[indices].mean(axis=1))


@pytest.mark.parametrize("size", [10, 60])
def test_ece_replicates_may_be_smaller_or_larger_than_the_sample(size):
    confidence = np.random.default_rng(0).random(30)
    correct = np.random.default_rng(1).random(30) < confidence
    indices = np.random.default_rng(2).integers(0, 30, (20, size))
    expected = [[ece(confidence[rows], correct[rows], 5)] for rows in indices]
    np.testing.assert_allclose(bootstrap_ece(confidence, correct, [5], indices), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ece_replicates_equal_a_loop_over_resampled_rows(dtype):
    rng = np.random.default_rng(0)
    confidence = (rng.random(256) ** 0.3 * 0.99).round(2).astype(dtype)
    correct = rng.random(256) < confidence
    bins = [1, 5, 10, 15, 20, EqualMass(7), [0, 0.5, 0.9, 1]]
    indices = bootstrap_indices(256, replicates=40)
    fixed = [bin_edges(confidence, one) for one in bins]  # edges are those of the whole sample
    expected = [[ece(confidence[rows], correct[rows], edges) for edges in fixed] for rows in indices]
    np.testing.assert_allclose(bootstrap_ece(confidence, correct, bins, indices), expected, rtol=1e-10, atol=1e-12)


def test_working_in_blocks_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    confidence, indices = rng.random(50), bootstrap_indices(50, replicates=33)
    correct = rng.random(50) < confidence
    means, eces = bootstrap_mean(confidence, indices), bootstrap_ece(confidence, correct, [10], indices)
    for block in (1, 200, 1000):
        monkeypatch.setattr(resample, "BLOCK", block)
        np.testing.assert_allclose(bootstrap_mean(confidence, indices), means, rtol=1e-14)
        np.testing.assert_allclose(bootstrap_ece(confidence, correct, [10], indices), eces, rtol=1e-13)


def test_interval_interpolates_percentiles_along_the_replicates():
    replicates = np.random.default_rng(0).normal(size=(2000, 3))
    expected = np.percentile(replicates, [2.5, 97.5], axis=0, method="linear")
    np.testing.assert_allclose(interval(replicates), expected, rtol=1e-12)
    assert interval(np.arange(11), level=0.5) == (2.5, 7.5)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda: bootstrap_indices(0), r"^n: expected a whole number of at least 1, got 0"),
        (lambda: bootstrap_indices(5, replicates=2.0), r"^replicates: expected a whole number of at least 1, got 2.0"),
        (lambda: bootstrap_mean([1.0, 2.0], [[0, 2]]), r"^indices: expected values from 0 to 1, got 0 to 2"),
        (lambda: bootstrap_mean([1.0, 2.0], [[0, -1]]), r"^indices: expected values from 0 to 1, got -1 to 0"),
        (
            lambda: bootstrap_mean([1.0, 2.0], [0, 1]),
            r"^indices: expected integers \(replicates, n\), got shape \(2,\)",
        ),
        (lambda: bootstrap_mean([1.0, 2.0], [[0.0, 1.0]]), r"^indices: expected integers .* of type float64"),
        (lambda: bootstrap_mean([], [[0]]), r"^values: expected at least one row"),
        (lambda: bootstrap_ece([0.5, np.nan], [1, 1], [5], [[0]]), r"^confidence: expected .*, got nan in row 1"),
        (lambda: bootstrap_ece([0.5], [1, 1], [5], [[0]]), r"^correct: expected shape \(1,\), got shape \(2,\)"),
        (lambda: bootstrap_ece([0.5], [1], [0], [[0]]), r"^bins: expected a whole number of at least 1, got 0"),
        (lambda: interval([1.0], level=95), r"^level: expected a number between 0 and 1, got 95"),
    ],
)
def test_bad_arguments_are_refused_by_name(function, message):
    with pytest.raises(ValueError, match=message):
        function()


def test_two_thousand_replicates_at_four_bin_counts_are_quick():
    confidence = np.random.default_rng(0).random(256)
    indices = bootstrap_indices(256)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        bootstrap_ece(confidence, confidence > 0.5, [5, 10, 15, 20], indices)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) <= 0.5


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_value_that_is_not_finite_is_named_and_spoils_no_replicate(value):
    with pytest.raises(ValueError, match="^values: expected finite numbers, got .* in row 1"):
        bootstrap_mean([1.0, value], np.array([[0, 0], [0, 1]]))


@pytest.mark.parametrize("bins", [15, []])
def test_bins_of_a_bootstrap_are_a_sequence(bins):
    with pytest.raises(ValueError, match="^bins: expected a sequence"):
        bootstrap_ece([0.9, 0.8], [1, 1], bins, np.array([[0, 1]]))


@pytest.mark.parametrize("n", [3, 1 << 18, 1 << 20])
def test_blocks_hold_the_rows_of_the_whole_array(n):
    blocks = list(bootstrap_blocks(n, replicates=9, seed=5))
    assert max(block.size for block in blocks) <= max(1 << 20, n)
    assert len(blocks) == {3: 1, 1 << 18: 3, 1 << 20: 9}[n]
    np.testing.assert_array_equal(np.concatenate(blocks), bootstrap_indices(n, replicates=9, seed=5))


def test_replicates_do_not_depend_on_the_blocks():
    rng = np.random.default_rng(0)
    confidence, correct = rng.uniform(0.5, 1, 50), rng.integers(0, 2, 50)
    indices = bootstrap_indices(50, replicates=12)
    for cuts in ([], [5], [1, 2, 3], [11]):
        blocks = iter(np.split(indices, cuts))
        np.testing.assert_array_equal(
            bootstrap_ece(confidence, correct, [5, 10], blocks), bootstrap_ece(confidence, correct, [5, 10], indices)
        )
    assert bootstrap_mean(confidence, iter([indices])).tolist() == bootstrap_mean(confidence, indices).tolist()


@pytest.mark.parametrize("arguments", [(0,), (-1,), (2.5,), (3, 0)])
def test_blocks_refuse_what_the_whole_array_refuses(arguments):
    with pytest.raises(ValueError, match="expected a whole number of at least 1"):
        next(bootstrap_blocks(*arguments))


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(ValueError, match="^level: expected a number between 0 and 1"):
        interval(np.arange(5.0), level)

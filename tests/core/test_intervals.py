"""Uncertainty of the numbers: intervals that cover, and an ECE without its bias."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from calib import EqualMass, ece, fit_temperature, nll
from calib import intervals as uncertainty
from calib.intervals import debiased_ece, debiased_squared_ece, mean_difference_interval, temperature_interval
from measure import simulations as simulation


@pytest.fixture(scope="module")
def sample():
    """Logits of four classes, and labels that a temperature of 1.5 would give."""
    return simulation.draw(np.random.default_rng(3), 300, 4)


@pytest.mark.parametrize("n_classes, n, true", [(2, 200, 1.5), (10, 200, 1.5), (10, 500, None)])
def test_temperature_is_recovered_and_its_interval_covers(n_classes, n, true):
    found = simulation.temperature(n_classes, n, true, draws=1500)
    assert found["draws_without_interval"] == 0
    assert 0.935 < found["coverage"]["value"] < 0.965
    assert abs(found["mean_error_in_se"]["value"]) < 0.13  # three standard errors of 500 draws
    assert 0.9 < found["sd_error_in_se"]["value"] < 1.1
    assert 0.62 < found["within_1_se"]["value"] < 0.74
    assert 0.92 < found["within_1.96_se"]["value"] < 0.975
    if true is None:  # where the model is wrong, its own standard error is too small
        assert found["coverage_hessian"]["value"] < found["coverage"]["value"] - 0.015


def test_interval_in_one_over_temperature_covers_more_often_than_in_the_logarithm():
    found = simulation.temperature(2, 100, 0.5, draws=1000)
    assert found["coverage"]["value"] > found["coverage_log_t"]["value"] + 0.01
    assert found["coverage_log_t"]["value"] > found["coverage_t"]["value"] + 0.01


def test_intervals_of_score_differences_cover():
    for found in simulation.differences(10, sizes=(400,), draws=1500, n_truth=50_000):
        assert found["mean_difference"]["value"] < -0.02  # there is something to find
        assert abs(found["mean_error"]["value"]) < 3.5 * found["mean_error"]["mc_se"]
        assert 0.93 < found["coverage"]["value"] < 0.97
        assert 0.93 < found["coverage_bootstrap"]["value"] < 0.97


def test_wilson_covers_as_the_binomial_sum_says():
    results = {(one["n"], one["p"]): one for one in simulation.wilson(draws=20_000)}
    assert results[10, 0.5]["exact"]["value"] == pytest.approx(1 - 22 / 1024, abs=1e-12)  # all but 0, 1, 9 and 10 hits
    assert max(abs(one["difference_in_se"]) for one in results.values()) < 3.5
    exact = [one["exact"]["value"] for one in results.values()]
    assert 0.94 < np.mean(exact) < 0.96
    assert min(exact) == results[10, 0.99]["exact"]["value"] == pytest.approx(0.9044, abs=5e-5)


@pytest.mark.parametrize("calibrated", [True, False])
def test_debiased_ece_is_nearer_to_the_truth_on_average(calibrated):
    for found in simulation.ece_bias(calibrated, plan=((50, 800), (250, 600))):
        plain, debiased, squared = (found[f"bias_{name}"] for name in ("plain", "debiased", "squared"))
        assert plain["value"] > 10 * plain["mc_se"]
        assert abs(squared["value"]) < 3.5 * squared["mc_se"]
        if calibrated:
            assert abs(debiased["value"]) < min(3.5 * debiased["mc_se"], plain["value"] / 10)
        else:  # it is too low where the plain one is too high, and less so
            assert -0.85 * plain["value"] < debiased["value"] < -3 * debiased["mc_se"]


def test_percentile_intervals_of_an_ece_do_not_cover_zero():
    found = {one["quantity"]: one for one in simulation.ece_bootstrap(True, draws=100)}
    for name in ("ece_5", "ece_15", "ece_20", "ece_20_minus_5"):
        assert found[name]["truth"] == pytest.approx(0, abs=1e-12)
        assert found[name]["coverage"]["value"] <= 0.02
        assert found[name]["mean_low"]["value"] > 0.01


def test_true_ece_agrees_with_a_huge_sample():
    data = simulation.sample(np.random.default_rng(0), 2_000_000, False)
    truth, squared = simulation.true_ece(15, False)
    assert ece(*data, 15) == pytest.approx(truth, abs=0.001)
    assert debiased_squared_ece(*data, 15) == pytest.approx(squared, abs=0.0002)


def test_temperature_interval_of_one_repeated_margin_is_that_of_a_proportion():
    """With p = 3/4 the fit is 1/T = log(3) / 6, and its variance that of a logit, 1 / (n p (1 - p)), over 6 squared."""
    low, high = temperature_interval([[6.0, 0.0]] * 400, [0] * 300 + [1] * 100)
    t = 1.9659272959670337  # quantile of Student's t with 399 degrees of freedom
    half = t / np.sqrt(399 * 0.1875) / 6
    np.testing.assert_allclose([1 / high, 1 / low], np.log(3) / 6 + np.array([-half, half]), rtol=1e-9)


def test_temperature_interval_agrees_with_numerical_derivatives_of_the_nll(sample):
    logits, labels = sample
    beta, step = 1 / fit_temperature(logits, labels).temperature, 1e-4
    rows = [
        np.array([nll(logits[i : i + 1], labels[i : i + 1], 1 / b) for i in range(len(labels))])
        for b in (beta - step, beta, beta + step)
    ]
    first, second = (rows[2] - rows[0]) / (2 * step), (rows[2] - 2 * rows[1] + rows[0]) / step**2
    half = 1.967929669 * first.std(ddof=1) / np.sqrt(len(labels)) / second.mean()
    np.testing.assert_allclose(temperature_interval(logits, labels), [1 / (beta + half), 1 / (beta - half)], rtol=1e-4)


def test_temperature_interval_follows_what_the_fit_follows(sample):
    logits, labels = sample
    expected = temperature_interval(logits, labels)
    assert expected[0] < fit_temperature(logits, labels).temperature < expected[1]
    rows, classes = np.random.default_rng(0).permutation(300), np.array([2, 0, 3, 1])
    masked = np.column_stack([logits, np.full(300, -np.inf)])
    for other in (
        temperature_interval(logits + np.linspace(-50, 50, 300)[:, None], labels),
        temperature_interval(logits[rows], labels[rows]),
        temperature_interval(logits[:, classes], np.argsort(classes)[labels]),
        temperature_interval(logits, np.eye(4)[labels]),
        temperature_interval(np.asfortranarray(logits), labels),
        temperature_interval(masked, labels),
        temperature_interval(masked, np.eye(5)[labels]),
        np.array(temperature_interval(100 * logits, labels)) / 100,
    ):
        np.testing.assert_allclose(other, expected, rtol=1e-9)
    np.testing.assert_allclose(temperature_interval(logits.astype(np.float32), labels), expected, rtol=1e-5)


def test_working_in_blocks_changes_nothing(monkeypatch, sample):
    logits, labels = sample
    expected = temperature_interval(logits, labels)
    for block in (1, 37, 400):
        monkeypatch.setattr(uncertainty, "BLOCK", block)
        np.testing.assert_allclose(temperature_interval(logits, labels), expected, rtol=1e-12)


def test_intervals_widen_with_the_level_and_narrow_with_the_rows(sample):
    logits, labels = sample
    levels = np.array([temperature_interval(logits, labels, level) for level in (0.5, 0.9, 0.99)])
    assert (np.diff(levels[:, 0]) < 0).all() and (np.diff(levels[:, 1]) > 0).all()
    widths = [np.ptp(1 / np.array(temperature_interval(np.tile(logits, (k, 1)), np.tile(labels, k)))) for k in (10, 40)]
    assert widths[0] / widths[1] == pytest.approx(2, abs=0.005)
    a = np.random.default_rng(0).normal(size=50)
    widths = [np.ptp(mean_difference_interval(a, 0 * a, level)) for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)


@pytest.mark.parametrize("largest", [0.02, 0.2, 1 / 3])
def test_the_interval_covers_with_clusters_of_unlike_size_as_long_as_none_has_more_than_a_third(largest):
    """Clusters are sharper or flatter by chance. In the population each is as likely, whatever its size."""
    rng, n, hits = np.random.default_rng(0), 600, 0
    first = round(largest * n)
    clusters = np.repeat(np.arange(50), [first, *[(n - first) // 49] * 48, n - first - (n - first) // 49 * 48])
    for _ in range(300):
        logits = 3 * rng.normal(size=(n, 3))
        tilt = 0.15 * rng.normal(size=(50, 1))[clusters]
        labels = (logits * (0.5 + tilt) + rng.gumbel(size=(n, 3))).argmax(axis=1)
        low, high = temperature_interval(logits, labels, clusters=clusters)
        hits += low <= 2.16 <= high  # the best temperature of the whole population
    assert hits / 300 > (0.91 if largest < 0.1 else 0.84)


def test_temperature_interval_is_open_above_where_the_data_do_not_exclude_a_flat_answer():
    low, high = temperature_interval([[1.0, 0.0]] * 10, [0] * 6 + [1] * 4)
    assert 0 < low < 1 / np.log(1.5) and high == np.inf


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_mean_difference_is_the_one_sample_t_interval(level):
    from scipy.stats import ttest_rel

    a, b = np.random.default_rng(0).normal(size=(2, 20))
    expected = ttest_rel(a, b).confidence_interval(level)
    low, high = mean_difference_interval(a, b, level)
    np.testing.assert_allclose([low, high], expected, rtol=1e-12)
    np.testing.assert_allclose(mean_difference_interval(b, a, level), [-high, -low], rtol=1e-12)
    assert mean_difference_interval(a, a) == (0, 0)
    exact = mean_difference_interval(a.astype(np.float32), b.astype(np.float32), level)
    np.testing.assert_allclose(exact, expected, atol=1e-7)


@pytest.mark.parametrize("right", [0.2, 0.6, 0.75, 0.9])
def test_over_all_outcomes_the_bias_is_as_stated(right):
    """Four rows of confidence 0.75 in one bin: the mean over the sixteen outcomes is exact."""
    means = np.zeros(3)
    for correct in itertools.product([0, 1], repeat=4):
        weight = np.prod(np.where(correct, right, 1 - right))
        estimates = (
            ece([0.75] * 4, correct, 10),
            debiased_ece([0.75] * 4, correct, 10, folds=4),
            debiased_squared_ece([0.75] * 4, correct, 10),
        )
        means += weight * np.array(estimates)
    gap = abs(right - 0.75)
    assert means[2] == pytest.approx(gap**2, abs=1e-12)
    assert means[1] <= gap + 1e-12 and gap + 5e-4 < means[0]
    if gap == 0:
        assert means[1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("bins", [1, 15, EqualMass(6), [0, 0.5, 0.9, 1]])
@pytest.mark.parametrize("folds", [2, 5, 1000])
def test_debiased_ece_is_at_most_the_ece(bins, folds):
    for seed in range(20):
        data = simulation.sample(np.random.default_rng(seed), 60, seed % 2 == 0)
        assert debiased_ece(*data, bins, folds, splits=3, seed=seed) <= ece(*data, bins) + 1e-12


def test_with_a_fold_for_each_row_the_debiased_ece_is_a_plain_sum():
    confidence, correct = simulation.sample(np.random.default_rng(1), 80, False)
    edges = np.arange(8) / 7
    d, members = correct - confidence, np.searchsorted(edges[1:-1], confidence, side="right")
    expected = sum(np.sign(d[members == members[i]].sum() - d[i]) * d[i] for i in range(80)) / 80
    for seed in (0, 1):
        assert debiased_ece(confidence, correct, 7, folds=80, splits=1, seed=seed) == pytest.approx(expected, abs=1e-12)
    pairs = sum(
        d[i] * d[j] / (np.sum(members == members[i]) - 1)
        for i, j in itertools.permutations(range(80), 2)
        if members[i] == members[j]
    )
    assert debiased_squared_ece(confidence, correct, 7) == pytest.approx(pairs / 80, abs=1e-12)


def test_debiased_estimates_meet_clear_gaps_and_leave_lone_rows_out():
    confidence, correct = [0.6] * 30 + [0.9] * 30, [True] * 30 + [False] * 30
    assert debiased_ece(confidence, correct, 10) == pytest.approx(ece(confidence, correct, 10), abs=1e-12)
    assert debiased_squared_ece(confidence, correct, 10) == pytest.approx((0.4**2 + 0.9**2) / 2, abs=1e-12)
    few = [0.6, 0.9, 0.6, 0.9], [True, False, True, False]
    for seed in range(5):  # two rows of a bin never share a fold
        assert debiased_ece(*few, 10, folds=2, splits=2, seed=seed) == pytest.approx(ece(*few, 10), abs=1e-12)
    assert debiased_ece([0.1, 0.9], [1, 0], 10) == 0
    assert debiased_squared_ece([0.1, 0.9], [1, 0], 10) == 0


def test_deals_are_seeded_and_leave_the_global_random_state_alone():
    data = simulation.sample(np.random.default_rng(0), 100, True)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert debiased_ece(*data, 15) == debiased_ece(*data, 15) == debiased_ece(*data, 15, 5, 20, 113)
    assert debiased_ece(*data, 15) != debiased_ece(*data, 15, seed=1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_many_deals_hardly_depend_on_the_seed():
    data = simulation.sample(np.random.default_rng(0), 200, True)
    found = [[debiased_ece(*data, 15, splits=splits, seed=seed) for seed in range(20)] for splits in (1, 100)]
    assert np.std(found[1]) < np.std(found[0]) / 5


TWO = [[2.0, 0.0], [0.0, 1.0]]
THREE = [[2.0, 0.0]] * 9, [0, 0, 0, 1, 1, 1, 0, 0, 0]  # three times the same three rows


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda: temperature_interval([[1.0, 1.0]] * 3, [0, 1, 1]), r"^logits: .* identify a temperature"),
        (lambda: temperature_interval(TWO, [0, 1]), r"^targets: .* T at the lower one"),
        (lambda: temperature_interval(TWO, [1, 0]), r"^targets: .* T at the upper one"),
        (lambda: temperature_interval(TWO[:1], [[0.6, 0.4]]), r"^logits: expected at least two rows .*, got 1"),
        (lambda: temperature_interval(TWO, [[0], [1]]), r"^targets: expected shape \(2,\)"),
        (lambda: temperature_interval([[np.nan, 0.0]] * 2, [0, 1]), r"^logits: expected finite values"),
        (lambda: temperature_interval(TWO, [0, 1], level=95), r"^level: expected a number between 0 and 1, got 95"),
        (lambda: temperature_interval(TWO, [0, 1], level="0.95"), r"^level: expected a number .*, got '0.95'"),
        (lambda: temperature_interval(*THREE, clusters=[1] * 9), r"^clusters: .* a third .*, got 100% of them in 1$"),
        (lambda: temperature_interval(*THREE, clusters=list("aaaabbccc")), r"^clusters: .*, got 44% of them in 'a'$"),
        (lambda: temperature_interval(*THREE, clusters=list("abcabcabc")), r"^targets: expected clusters that differ"),
        (lambda: temperature_interval(TWO[:1] * 9, [[0.7, 0.3]] * 9), r"^targets: expected rows that differ"),
        (lambda: temperature_interval(*THREE, clusters=[np.nan] * 9), r"^clusters: expected a name .* in row 0"),
        (lambda: mean_difference_interval([1.0, 2.0], [1.0]), r"^b: expected shape \(2,\), as a, got \(1,\)"),
        (lambda: mean_difference_interval([1.0, 2.0], [[1.0], [2.0]]), r"^b: expected shape \(n,\)"),
        (lambda: mean_difference_interval([1.0], [1.0]), r"^a: expected at least two rows"),
        (lambda: mean_difference_interval([1.0, np.inf], [1.0, 2.0]), r"^a: expected finite numbers, got inf in row 1"),
        (lambda: mean_difference_interval([1.0, 2.0], [np.nan, 2.0]), r"^b: expected finite numbers, got nan in row 0"),
        (lambda: mean_difference_interval([1.0, 2.0], [1.0, 2.0], 0), r"^level: expected"),
        (lambda: debiased_ece([0.5, np.nan], [1, 1], 5), r"^confidence: expected .*, got nan in row 1"),
        (lambda: debiased_ece([0.5], [1, 1], 5), r"^correct: expected shape \(1,\)"),
        (lambda: debiased_ece([0.5], [1], 0), r"^bins: expected a whole number of at least 1, got 0"),
        (lambda: debiased_ece([0.5], [1], 5, folds=1), r"^folds: expected a whole number of at least 2, got 1"),
        (lambda: debiased_ece([0.5], [1], 5, splits=0), r"^splits: expected a whole number of at least 1, got 0"),
        (lambda: debiased_squared_ece([1.5], [1], 5), r"^confidence: expected values in \[0, 1\]"),
    ],
)
def test_bad_arguments_are_refused_by_name(function, message):
    with pytest.raises(ValueError, match=message):
        function()


def test_importing_needs_numpy_only():
    code = "import calib.intervals, sys; print([m for m in ('scipy', 'sklearn', 'matplotlib') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"

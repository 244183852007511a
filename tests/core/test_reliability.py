"""Bins, the reliability table, Wilson intervals and ECE."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from calib import EqualMass, accuracy, ece, reliability_table, softmax, top_label
from calib.reliability import assign_bins, bin_edges, wilson_interval

DTYPES = [np.float16, np.float32, np.float64]
BINS = st.one_of(
    st.integers(1, 30),
    st.integers(1, 30).map(EqualMass),
    st.sets(st.integers(1, 99), max_size=8).map(lambda inner: [0, *(i / 100 for i in sorted(inner)), 1]),
)


@st.composite
def samples(draw, dtypes=DTYPES):
    """Confidences with many ties and values on edges, in any floating type, and outcomes."""
    hundredths = st.integers(0, 100).map(lambda i: i / 100)
    values = draw(st.lists(st.one_of(hundredths, st.floats(0, 1)), min_size=1, max_size=40))
    confidence = np.array(values).astype(draw(st.sampled_from(dtypes)))
    return confidence, np.array(draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))


# --- which bin -------------------------------------------------------------------------------------------------------


@given(samples(), BINS)
def test_every_sample_is_in_exactly_one_bin(sample, bins):
    confidence, correct = sample
    edges = bin_edges(confidence, bins)
    assert edges.dtype == confidence.dtype
    members = assign_bins(confidence, edges)
    last = members == len(edges) - 2
    assert (edges[members] <= confidence).all()
    assert np.where(last, confidence <= edges[-1], confidence < edges[np.minimum(members + 1, len(edges) - 1)]).all()
    table = reliability_table(confidence, correct, bins)
    np.testing.assert_array_equal(table.counts, [(members == m).sum() for m in range(len(edges) - 1)])
    assert table.n == len(confidence)


@pytest.mark.parametrize("dtype", DTYPES)
def test_k_over_n_starts_its_bin_for_every_number_of_bins(dtype):
    for n_bins in range(1, 101):
        starts = (np.arange(n_bins) / n_bins).astype(dtype)
        np.testing.assert_array_equal(assign_bins(starts, bin_edges(starts, n_bins)), np.arange(n_bins))
        np.testing.assert_array_equal(starts, [dtype(k) / dtype(n_bins) for k in range(n_bins)])
        below = np.nextafter(starts[1:], dtype(0))
        np.testing.assert_array_equal(assign_bins(below, bin_edges(starts, n_bins)), np.arange(n_bins - 1))


@pytest.mark.parametrize("bins", [10, [0, 0.3, 0.7, 0.9, 1]])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_decimal_edge_starts_its_bin_in_every_type(dtype, bins):
    confidence = np.array([0.3, 0.7, 0.9], dtype=dtype)
    table = reliability_table(confidence, [1, 1, 1], bins)
    filled = [3, 7, 9] if bins == 10 else [1, 2, 3]
    assert np.flatnonzero(table.counts).tolist() == filled


def test_confidence_one_is_in_the_last_bin_and_counts():
    table = reliability_table([0.92, 1.0], [1, 0], bins=10)
    assert table.counts.tolist() == [0] * 9 + [2]
    assert table.ece == pytest.approx(0.46)
    assert ece([1.0, 1.0], [0, 0], bins=10) == 1
    assert ece([1.0], [1], bins=1) == ece([0.0], [0], bins=7) == 0


# --- bins of equal mass ----------------------------------------------------------------------------------------------


def test_last_equal_mass_bin_is_not_skipped():
    table = reliability_table([0.5, 0.6, 0.7, 0.8, 0.9, 1, 1], [1, 1, 1, 1, 1, 0, 0], EqualMass(3))
    assert table.counts.tolist() == [2, 2, 3]
    assert table.ece == pytest.approx((2 * 0.45 + 2 * 0.25 + 3 * (2.9 / 3 - 1 / 3)) / 7)


@given(samples(), st.integers(1, 60), st.randoms(use_true_random=False))
def test_equal_mass_bins_keep_ties_together_in_any_row_order(sample, n_bins, random):
    confidence, correct = sample
    table = reliability_table(confidence, correct, EqualMass(n_bins))
    members = assign_bins(confidence, table.edges)
    assert all(len(set(members[confidence == value])) == 1 for value in confidence)
    assert len(table.counts) <= n_bins and table.filled.all()
    order = random.sample(range(len(confidence)), len(confidence))
    moved = reliability_table(confidence[order], correct[order], EqualMass(n_bins))
    np.testing.assert_array_equal(moved.edges, table.edges)
    np.testing.assert_array_equal(moved.counts, table.counts)
    assert moved.ece == pytest.approx(table.ece, abs=1e-14)


@pytest.mark.parametrize("n, n_bins", [(100, 7), (15, 15), (16, 15), (1000, 15)])
def test_equal_mass_counts_differ_by_at_most_one_without_ties(n, n_bins):
    confidence = np.random.default_rng(0).permutation(n) / n
    counts = reliability_table(confidence, np.ones(n), EqualMass(n_bins)).counts
    assert len(counts) == n_bins and np.ptp(counts) <= 1


@pytest.mark.parametrize(
    "confidence, n_bins, counts",
    [
        ([0.6, 0.9], 10, [1, 1]),
        ([0.5, 0.5, 0.5, 0.5], 4, [4]),
        ([0.5, 0.9, 0.9, 0.9], 4, [1, 3]),
        ([0.0, 0.0, 1.0, 1.0], 4, [2, 2]),
        ([0.7], 3, [1]),
    ],
)
def test_equal_mass_drops_to_fewer_bins_where_data_force_it(confidence, n_bins, counts):
    assert reliability_table(confidence, np.ones(len(confidence)), EqualMass(n_bins)).counts.tolist() == counts


# --- the table -------------------------------------------------------------------------------------------------------


def test_empty_bins_are_nan_and_contribute_nothing():
    with np.errstate(all="raise"):
        table = reliability_table([0.1, 0.95], [0, 1], bins=4)
    assert table.filled.tolist() == [True, False, False, True]
    for column in (table.confidence, table.accuracy, table.low, table.high):
        assert np.isnan(column).tolist() == [False, True, True, False]
    assert table.contributions[1:3].tolist() == [0, 0]
    assert table.ece == pytest.approx((0.1 + 0.05) / 2)


@given(samples(), BINS)
def test_table_and_ece_agree_with_a_plain_loop(sample, bins):
    confidence, correct = sample
    table = reliability_table(confidence, correct, bins)
    edges, total = table.edges.tolist(), 0.0
    for m in range(len(edges) - 1):
        low, high = edges[m], edges[m + 1] if m < len(edges) - 2 else np.inf
        inside = [(float(c), int(hit)) for c, hit in zip(confidence, correct) if low <= c < high]
        if inside:
            mean, share = sum(c for c, _ in inside) / len(inside), sum(hit for _, hit in inside) / len(inside)
            assert (table.confidence[m], table.accuracy[m]) == pytest.approx((mean, share))
            total += len(inside) / len(confidence) * abs(share - mean)
    assert ece(confidence, correct, bins) == pytest.approx(total, abs=1e-12)


@given(samples([np.float64]), st.sets(st.integers(1, 99), max_size=10), st.sets(st.integers(1, 99), max_size=10))
def test_refining_a_partition_never_lowers_ece(sample, inner, more):
    coarse, fine = ([0, *(i / 100 for i in sorted(chosen)), 1] for chosen in (inner, inner | more))
    gap = abs(sample[1].mean() - sample[0].mean())
    assert ece(*sample, bins=1) == pytest.approx(gap)
    assert gap <= ece(*sample, bins=coarse) + 1e-12
    assert ece(*sample, bins=coarse) <= ece(*sample, bins=fine) + 1e-12


@pytest.mark.parametrize("n", [1, 2, 10, 256])
def test_wilson_interval_agrees_with_scipy(n):
    low, high = wilson_interval(np.arange(n + 1), np.full(n + 1, n))
    theirs = [scipy.stats.binomtest(k, n).proportion_ci(method="wilson") for k in range(n + 1)]
    np.testing.assert_allclose(np.column_stack([low, high]), theirs, atol=1e-12)
    assert (low >= 0).all() and (high <= 1).all()


def test_table_holds_the_wilson_interval_of_each_bin():
    table = reliability_table([0.3] * 4 + [0.9] * 10, [1, 0, 0, 0] + [1] * 9 + [0], bins=2)
    low, high = wilson_interval([1, 9], [4, 10])
    np.testing.assert_array_equal([table.low, table.high], [low, high])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_ece_of_a_million_rows_does_not_lose_digits(dtype):
    rng = np.random.default_rng(0)
    confidence = rng.random(1_000_000).astype(dtype)
    correct = rng.random(1_000_000) < 0.8 * confidence
    for bins in (16, 1):  # edges that are the same number in every type
        exact = ece(confidence.astype(np.float64), correct, bins)
        assert ece(confidence, correct, bins) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_outcomes_of_every_type_mean_the_same(dtype):
    assert ece([0.9, 0.6, 0.6], np.array([1, 0, 1], dtype=dtype), 5) == pytest.approx((0.1 + 0.2) / 3)


# --- top label -------------------------------------------------------------------------------------------------------


def test_a_class_that_never_occurs_keeps_its_column():
    confidence, correct = top_label([[0.9, 0.1], [0.8, 0.2]], [0, 0])
    assert ece(confidence, correct, bins=10) == pytest.approx(0.15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_top_label_keeps_the_type_and_agrees_with_accuracy(dtype, simulate):
    logits, labels = simulate(200, 5)
    p = softmax(logits).astype(dtype)
    confidence, correct = top_label(p, labels)
    assert confidence.dtype == dtype
    np.testing.assert_array_equal(confidence, p.max(axis=1))
    assert correct.mean() == accuracy(p, labels)
    assert top_label([[0.5, 0.5]], [1])[1].tolist() == [False]


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [ece, reliability_table])
@pytest.mark.parametrize(
    "confidence, correct, bins, message",
    [
        ([0.5, np.nan], [1, 1], 10, r"confidence: expected values in \[0, 1\], got nan in row 1"),
        ([0.5, 0.7, 1.5], [1, 1, 1], 10, r"confidence: expected values in \[0, 1\], got 1.5 in row 2"),
        ([-0.1], [1], 10, r"confidence: expected values in \[0, 1\], got -0.1 in row 0"),
        ([[0.5], [0.5]], [1, 1], 10, r"confidence: expected shape \(n,\), got shape \(2, 1\)"),
        ([], [], 10, r"confidence: expected at least one row, got shape \(0,\)"),
        ([0.5, 0.6], [1], 10, r"correct: expected shape \(2,\), got shape \(1,\)"),
        ([0.5, 0.6], [[1], [0]], 10, r"correct: expected shape \(2,\), got shape \(2, 1\)"),
        ([0.5, 0.6], [1, 2], 10, r"correct: expected 0 or 1, got 2 in row 1"),
        ([0.5, 0.6], [1, np.nan], 10, r"correct: expected 0 or 1, got nan in row 1"),
        ([0.5, 0.6], ["yes", "no"], 10, r"correct: expected booleans, or 0 and 1, got .*<U3"),
        ([0.5], [1], 0, r"bins: expected a whole number of at least 1, got 0"),
        ([0.5], [1], 10.0, r"bins: expected a whole number of at least 1, got 10.0"),
        ([0.5], [1], True, r"bins: expected a whole number of at least 1, got True"),
        ([0.5], [1], None, r"bins: expected a whole number of at least 1, got None"),
        ([0.5], [1], [0, 0.5, 0.5, 1], r"bins: expected ascending edges from 0 to 1, got"),
        ([0.5], [1], [0.5, 1], r"bins: expected ascending edges from 0 to 1, got"),
        ([0.5], [1], [0, np.nan, 1], r"bins: expected ascending edges from 0 to 1, got"),
    ],
)
def test_bad_arguments_are_refused_by_name_and_row(function, confidence, correct, bins, message):
    with pytest.raises(ValueError, match="^" + message):
        function(confidence, correct, bins)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, None])
def test_equal_mass_refuses_what_is_no_count(n_bins):
    with pytest.raises(ValueError, match=r"^n_bins: expected a whole number of at least 1, got "):
        EqualMass(n_bins)


def test_a_cut_among_the_smallest_ties_moves_behind_them():
    assert bin_edges([0.5, 0.5, 0.5, 0.9], EqualMass(2)).tolist() == [0, 0.9, 1]
    assert bin_edges([0.5] * 4, EqualMass(3)).tolist() == [0, 1]


def test_edges_that_equal_mass_bins_gave_can_be_declared_again():
    confidence, correct = [0.5, 1.0, 1.0], [1, 1, 0]
    edges = bin_edges(confidence, EqualMass(2))
    assert ece(confidence, correct, edges) == ece(confidence, correct, EqualMass(2)) == pytest.approx(0.5)


def test_a_cut_among_the_smallest_ties_moves_to_the_next_value():
    assert bin_edges([0.1, 0.1, 0.1, 0.2, 0.3], EqualMass(2)).tolist() == [0, 0.2, 1]


@pytest.mark.parametrize(("successes", "totals"), [([5], [3]), ([-1], [3]), ([1, 4], [2, 3])])
def test_wilson_refuses_more_successes_than_trials(successes, totals):
    with pytest.raises(ValueError, match="^successes: expected numbers from 0 to the totals, got "):
        wilson_interval(successes, totals)


@pytest.mark.parametrize("bins", [[[0, 1]], [["a", "b"]]])
def test_edges_are_one_row_of_numbers(bins):
    with pytest.raises(ValueError, match="^bins: expected"):
        ece([0.5], [1], bins)


def test_many_rows_fall_into_the_same_bins_as_few():
    """Above some number of rows bins are computed and not searched for."""
    rng = np.random.default_rng(0)
    for dtype in (np.float16, np.float32, np.float64):
        confidence = rng.integers(0, 1001, 20_000) / 1000
        confidence = np.concatenate([confidence, *(np.arange(n + 1) / n for n in (7, 15, 20))]).astype(dtype)
        for bins in (1, 7, 15, 20, 100, 1000):
            edges = bin_edges(confidence, bins)
            expected = np.searchsorted(edges[1:-1], confidence, side="right")
            np.testing.assert_array_equal(assign_bins(confidence, edges), expected)


@pytest.mark.parametrize("n_classes", [2, 5, 100])
def test_the_top_label_is_the_first_of_tied_classes(n_classes):
    rng = np.random.default_rng(0)
    probabilities = rng.integers(0, 3, (500, n_classes)) + 1e-9
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    labels = rng.integers(0, n_classes, 500)
    confidence, correct = top_label(probabilities, labels)
    np.testing.assert_array_equal(confidence, probabilities.max(axis=1))
    np.testing.assert_array_equal(correct, probabilities.argmax(axis=1) == labels)
    without_ties = softmax(rng.normal(size=(500, n_classes)))
    np.testing.assert_array_equal(top_label(without_ties, labels)[1], without_ties.argmax(axis=1) == labels)

"""Proper scores, accuracy and entropy, and the targets that every function must refuse."""

import math
import tracemalloc

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from calib import Predictions, accuracy, bisect_temperature, brier, entropy, fit_temperature, log_softmax, nll, softmax
from calib.affine import AffineScaling
from calib.isotonic import IsotonicCalibration


@st.composite
def problems(draw):
    """Logits, hard labels and distributions of one size."""
    n, n_classes, seed = draw(st.integers(1, 30)), draw(st.integers(2, 6)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=(n, n_classes)), rng.integers(0, n_classes, n), rng.dirichlet(np.ones(n_classes), n)


def one_hot(labels, n_classes):
    return np.eye(n_classes)[labels]


@given(problems(), st.floats(0.1, 10))
def test_scores_agree_with_plain_loops(problem, temperature):
    logits, labels, distributions = problem
    n, n_classes = logits.shape
    p = [[math.exp(z / temperature) for z in row] for row in logits]
    p = [[value / sum(row) for value in row] for row in p]
    rows, classes = range(n), range(n_classes)
    assert nll(logits, labels, temperature) == pytest.approx(-sum(math.log(p[i][labels[i]]) for i in rows) / n)
    expected = -sum(distributions[i][k] * math.log(p[i][k]) for i in rows for k in classes) / n
    assert nll(logits, distributions, temperature) == pytest.approx(expected)
    expected = sum((p[i][k] - (labels[i] == k)) ** 2 for i in rows for k in classes) / n
    assert brier(p, labels) == pytest.approx(expected)
    expected = sum((p[i][k] - distributions[i][k]) ** 2 for i in rows for k in classes) / n
    assert brier(p, distributions) == pytest.approx(expected)


@given(problems())
def test_scores_agree_with_scikit_learn(problem):
    logits, labels, _ = problem
    p, classes = softmax(logits), np.arange(logits.shape[1])
    assert nll(logits, labels) == pytest.approx(sklearn.metrics.log_loss(labels, p, labels=classes))
    theirs = sklearn.metrics.brier_score_loss(labels, p, labels=classes, scale_by_half=False)
    assert brier(p, labels) == pytest.approx(theirs)
    assert accuracy(logits, labels) == sklearn.metrics.accuracy_score(labels, logits.argmax(axis=1))


@given(problems())
def test_hard_labels_equal_one_hot_distributions(problem):
    logits, labels, _ = problem
    dense = one_hot(labels, logits.shape[1])
    for targets in (dense, dense.astype(int), dense.astype(np.float16)):
        assert nll(logits, targets) == pytest.approx(nll(logits, labels), rel=1e-14)
        assert brier(softmax(logits), targets) == pytest.approx(brier(softmax(logits), labels), rel=1e-14)


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_rows_and_classes_does_not_matter(problem, random):
    logits, labels, distributions = problem
    rows, classes = (random.sample(range(size), size) for size in logits.shape)
    moved, renamed = logits[rows][:, classes], np.argsort(classes)[labels[rows]]
    assert nll(moved, renamed) == pytest.approx(nll(logits, labels), rel=1e-13)
    assert nll(moved, distributions[rows][:, classes]) == pytest.approx(nll(logits, distributions), rel=1e-13)
    assert brier(softmax(moved), renamed) == pytest.approx(brier(softmax(logits), labels), rel=1e-13)
    assert accuracy(moved, renamed) == accuracy(logits, labels)


@given(problems())
def test_both_scores_are_proper(problem):
    """Against a distribution q, no other forecast scores better than q itself."""
    logits, _, q = problem
    assert nll(np.log(q), q) <= nll(logits, q)
    assert brier(q, q) == 0 <= brier(softmax(logits), q)
    assert nll(np.log(q), q) == pytest.approx(entropy(q).mean())


@pytest.mark.parametrize(
    "probabilities, targets, expected",
    [([[1, 0, 0]], [1], 2), ([[1, 0, 0]], [0], 0), ([[1, 0, 0]], [[0, 0, 1]], 2), ([[0.5, 0.5]], [[0.5, 0.5]], 0)],
)
def test_brier_sums_over_classes_from_0_to_2(probabilities, targets, expected):
    assert brier(probabilities, targets) == expected


@pytest.mark.parametrize(
    "logits, targets, expected",
    [
        ([[-np.inf, 0]], [[0, 1]], 0),
        ([[-np.inf, 0]], [1], 0),
        ([[-np.inf, 0]], [[0.1, 0.9]], np.inf),
        ([[-np.inf, 0], [0, 0]], [0, 1], np.inf),
        ([[900, 0, -900]], [0], 0),
        ([[900, 0, -900]], [2], 1800),
        ([[900, 0, -900]], [[0, 0.5, 0.5]], 1350),
    ],
)
def test_weight_on_probability_zero_is_infinite_and_never_nan(logits, targets, expected):
    with np.errstate(invalid="raise", divide="raise"):
        result = nll(logits, targets)
    assert result == expected and not np.signbit(result)


def test_entropy_of_known_distributions_in_nats():
    values = entropy([[0.76, 0.24, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_allclose(values, [0.5511, 0, np.log(3)], atol=5e-5)
    assert values[0] / np.log(2) == pytest.approx(0.7950, abs=5e-5)
    assert not np.signbit(values).any()


def test_accuracy_gives_ties_to_the_lower_class_and_takes_masks():
    assert accuracy([[1, 1], [0, 0]], [0, 1]) == 0.5
    assert accuracy([[-np.inf, -1e300], [-np.inf, 0]], [1, 1]) == 1


def test_accuracy_refuses_nan_and_names_the_row():
    with pytest.raises(ValueError, match=r"^scores: expected numbers, got NaN in row 1"):
        accuracy([[0, 1], [np.nan, 1]], [0, 1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_sums_are_in_float64_whatever_comes_in(dtype, simulate):
    logits, labels = simulate(5000, 4)
    logits = logits.astype(dtype)
    assert nll(logits, labels) == nll(logits.astype(np.float64), labels)
    p = softmax(logits).astype(dtype)
    exact = p.astype(np.float64)
    loop = np.mean([((row - one_hot(label, 4)) ** 2).sum() for row, label in zip(exact, labels)])
    assert brier(p, labels) == pytest.approx(loop, rel=1e-13)
    assert entropy(p).dtype == np.float64
    np.testing.assert_allclose(entropy(p), -np.sum(exact * np.log(exact, where=exact > 0, out=0 * exact), axis=1))
    loop = np.mean([-(row * log_row).sum() for row, log_row in zip(exact, log_softmax(logits))])
    assert nll(logits, p) == pytest.approx(loop, rel=1e-13)


TAKES_TARGETS = {
    "nll": nll,
    "brier": lambda z, y: brier(softmax(z), y),
    "fit_temperature": fit_temperature,
    "bisect_temperature": bisect_temperature,
    "IsotonicCalibration.fit": lambda z, y: IsotonicCalibration().fit(z, y),
    "AffineScaling.fit": lambda z, y: AffineScaling("matrix").fit(z, y),
}
BAD_TARGETS = {
    "column of labels": ([[0], [1], [0]], r"expected shape \(3,\), got shape \(3, 1\) .*; pass targets\[:, 0\]"),
    "row of labels": ([[0, 1, 0]], r"expected labels \(3,\) or distributions \(3, 2\), got shape \(1, 3\)"),
    "float labels": ([0.0, 1.0, 0.0], r"expected integers, got shape \(3,\) of type float64"),
    "boolean labels": ([False, True, False], r"expected integers, got shape \(3,\) of type bool"),
    "label K": ([0, 1, 2], r"expected values from 0 to 1, got 2 in row 2"),
    "label -1": ([0, -1, -1], r"expected values from 0 to 1, got -1 in row 1"),
    "too few labels": ([0, 1], r"expected shape \(3,\), got shape \(2,\)"),
    "no labels": (np.empty(0, dtype=int), r"expected shape \(3,\), got shape \(0,\)"),
    "none": (None, r"expected shape \(3,\), got shape \(\)"),
    "too many classes": ([[1, 0, 0]] * 3, r"expected labels \(3,\) or distributions \(3, 2\), got shape \(3, 3\)"),
    "votes": (
        [[1, 0], [40, 7], [0, 1]],
        r"expected values in \[0, 1\], got 40.0 in row 1, column 0 \(are these votes\?",
    ),
    "sum below one": ([[1, 0], [0.4, 0.5], [0, 1]], r"expected rows that sum to 1, got 0.9 in row 1"),
    "negative weight": ([[1, 0], [0, 1], [1.5, -0.5]], r"expected values in \[0, 1\], got .* in row 2"),
    "nan": ([[1, 0], [0, 1], [np.nan, 1]], r"expected values in \[0, 1\], got .* in row 2"),
}


@pytest.mark.parametrize("targets, message", BAD_TARGETS.values(), ids=BAD_TARGETS)
@pytest.mark.parametrize("function", TAKES_TARGETS.values(), ids=TAKES_TARGETS)
def test_bad_targets_are_refused_by_name_and_row(function, targets, message):
    with pytest.raises(ValueError, match="^targets: " + message):
        function([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]], targets)


@pytest.mark.parametrize(
    "probabilities, message",
    [
        ([[8, -3], [1, 0]], r"expected values in \[0, 1\], got 8.0 in row 0, column 0 \(are these logits\?\)"),
        ([[0.5, 0.5], [0.5, 0.6]], r"expected rows that sum to 1, got 1.1 in row 1"),
        ([[0.5, 0.5], [np.nan, 0.5]], r"expected values in \[0, 1\], got .* in row 1"),
        ([0.5, 0.5], r"expected shape \(n, K\), got shape \(2,\) of type float64"),
    ],
)
@pytest.mark.parametrize("function", [lambda p: brier(p, [0, 1]), entropy], ids=["brier", "entropy"])
def test_bad_probabilities_are_refused_by_name_and_row(function, probabilities, message):
    with pytest.raises(ValueError, match="^probabilities: " + message):
        function(probabilities)


def test_many_classes_take_no_more_memory_than_the_probabilities():
    probabilities = np.full((50, 20_000), 1 / 20_000)
    tracemalloc.start()
    assert brier(probabilities, np.arange(50)) == pytest.approx(1 - 1 / 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * probabilities.nbytes


@pytest.mark.parametrize(
    "call", [lambda z, y: nll(z, y), lambda z, y: accuracy(z, y), lambda z, y: Predictions(range(3), z, y)]
)
@pytest.mark.parametrize("which", ["logits", "labels"])
def test_masked_entries_are_refused_and_not_counted(call, which):
    values = {"logits": np.zeros((3, 2)), "labels": np.array([0, 1, 1])}
    values[which] = np.ma.masked_equal(values[which] + 0, values[which].flat[0])
    with pytest.raises(ValueError, match="expected an array without masked entries"):
        call(values["logits"], values["labels"])


def test_entropy_of_certainty_is_zero_whatever_lay_in_memory():
    for _ in range(20):
        np.full((1000, 2), np.nan)
        assert not entropy(np.tile([1.0, 0.0], (1000, 1))).any()


@pytest.mark.parametrize("scores", [[0.5, 1], [["a", "b"]], np.empty((0, 2))])
def test_accuracy_names_its_scores(scores):
    with pytest.raises(ValueError, match="^scores: expected"):
        accuracy(scores, [0])


def test_probabilities_in_half_precision_pass_with_sums_at_that_precision():
    rng = np.random.default_rng(0)
    probabilities = softmax(rng.normal(size=(200, 300))).astype(np.float16)
    assert brier(probabilities, np.zeros(200, dtype=int)) == pytest.approx(1, abs=0.05)
    with pytest.raises(ValueError, match="expected rows that sum to 1"):
        brier(np.float16([[0.5, 0.497]]), [0])


def test_a_probability_above_one_is_named_even_in_a_row_that_sums_to_one():
    with pytest.raises(ValueError, match=r"got 1\.5 in row 1, column 1 \(are these logits\?\)"):
        brier([[0.5, 0.5, 0], [0, 1.5, -0.5]], [0, 1])

"""Softmax and log-softmax, and the logits that every function must refuse."""

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from calib import (
    Predictions,
    TemperatureScaling,
    accuracy,
    bisect_temperature,
    fit_temperature,
    log_softmax,
    nll,
    softmax,
)
from calib.affine import AffineScaling
from calib.isotonic import IsotonicCalibration

QUARTERS = st.integers(-80, 80).map(lambda i: i / 4)  # exact in every floating type, and so are their sums
LOGITS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6), elements=QUARTERS)
TEMPERATURES = st.floats(0.05, 20)


def test_softmax_of_far_logits_neither_overflows_nor_is_nan():
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(softmax([[900, 0, -900]]), [[1, 0, 0]])
        np.testing.assert_array_equal(log_softmax([[900, 0, -900]]), [[0, -900, -1800]])


@given(LOGITS, TEMPERATURES)
def test_agrees_with_scipy(logits, temperature):
    scaled = logits / temperature
    np.testing.assert_allclose(log_softmax(logits, temperature), scipy.special.log_softmax(scaled, axis=1))
    np.testing.assert_allclose(softmax(logits, temperature), scipy.special.softmax(scaled, axis=1))


@given(LOGITS, TEMPERATURES)
def test_temperature_changes_neither_order_nor_accuracy(logits, temperature):
    probabilities = softmax(logits, temperature)
    ordered = np.take_along_axis(probabilities, logits.argsort(axis=1), axis=1)
    assert (np.diff(ordered, axis=1) >= 0).all()
    np.testing.assert_array_equal(probabilities.argmax(axis=1), logits.argmax(axis=1))
    labels = np.arange(len(logits)) % logits.shape[1]
    assert accuracy(probabilities, labels) == accuracy(logits, labels)


@pytest.mark.parametrize("temperature", [1e-3, 0.1, 1, 10, 1e3])
def test_logits_beyond_any_clipping_range_keep_their_order(temperature):
    order = log_softmax([[8, -3, 1], [-2, 5, 0]], temperature).argsort(axis=1)
    assert order.tolist() == [[1, 2, 0], [0, 2, 1]]


@given(LOGITS, st.integers(-10_000, 10_000))
def test_shifting_a_row_changes_nothing(logits, offset):
    np.testing.assert_array_equal(softmax(logits + offset), softmax(logits))


@given(LOGITS, st.randoms(use_true_random=False))
def test_classes_and_rows_may_be_permuted(logits, random):
    rows, classes = (random.sample(range(size), size) for size in logits.shape)
    np.testing.assert_allclose(softmax(logits[rows][:, classes]), softmax(logits)[rows][:, classes], rtol=1e-14)


@pytest.mark.parametrize("function", [softmax, log_softmax])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64])
def test_computes_in_float64_whatever_comes_in(function, dtype):
    logits = np.array([[3, 1, 0], [-2, 5, 100]], dtype=dtype)
    result = function(logits, 1.7)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, function(logits.astype(np.float64), 1.7))


def test_masked_class_has_probability_zero_at_any_temperature():
    for temperature in (1e-6, 1, 1e6):
        probabilities = softmax([[1.0, -np.inf, 0.5]], temperature)
        np.testing.assert_array_equal(probabilities[:, [0, 2]], softmax([[1.0, 0.5]], temperature))
        assert probabilities[0, 1] == 0
    assert log_softmax([[1.0, -np.inf]]).tolist() == [[0, -np.inf]]


@pytest.mark.parametrize("temperature", [0, -1, np.nan, np.inf, [1.0, 2.0]])
@pytest.mark.parametrize("function", [softmax, log_softmax, lambda z, t: nll(z, [0], t)])
def test_refuses_a_temperature_that_is_not_one_positive_number(function, temperature):
    with pytest.raises(ValueError, match=r"^temperature: expected one finite number above 0, got "):
        function([[1.0, 0.0]], temperature)


TAKES_LOGITS = {
    "softmax": lambda z, y: softmax(z),
    "log_softmax": lambda z, y: log_softmax(z),
    "nll": nll,
    "fit_temperature": fit_temperature,
    "fit_temperature(brier)": lambda z, y: fit_temperature(z, y, "brier"),
    "bisect_temperature": bisect_temperature,
    "TemperatureScaling.fit": lambda z, y: TemperatureScaling().fit(z, y),
    "TemperatureScaling.predict_proba": lambda z, y: TemperatureScaling().fit([[1, 0]], [0]).predict_proba(z),
    "IsotonicCalibration.fit": lambda z, y: IsotonicCalibration().fit(z, y),
    "IsotonicCalibration.predict_proba": lambda z, y: IsotonicCalibration().fit([[1, 0]], [0]).predict_proba(z),
    "AffineScaling.fit": lambda z, y: AffineScaling("vector").fit(z, y),
    "Predictions": lambda z, y: Predictions(range(len(z)), z, y),
}
BAD_LOGITS = {
    "nan": ([[0, 1], [0, np.nan], [np.nan, 0]], r"expected finite values .*, got nan in row 1, column 1"),
    "+inf": ([[0, 1], [0, 1], [np.inf, 0]], r"expected finite values .*, got inf in row 2, column 0"),
    "all masked": ([[0, 1], [-np.inf] * 2, [0, 1]], r"expected at least one finite value per row, got none in row 1"),
    "one column": ([[0.5], [1], [2]], r"expected .* at least two, got shape \(3, 1\) .*; .* pass two columns"),
    "one axis": ([0.5, 1, 2], r"expected shape \(n, K\), got shape \(3,\) of type float64"),
    "no rows": (np.empty((0, 2)), r"expected at least one row, got shape \(0, 2\)"),
    "text": ([["a", "b"]] * 3, r"expected real numbers, got shape \(3, 2\) of type <U1"),
    "complex": ([[1j, 0]] * 3, r"expected real numbers, got shape \(3, 2\) of type complex128"),
}


@pytest.mark.parametrize("logits, message", BAD_LOGITS.values(), ids=BAD_LOGITS)
@pytest.mark.parametrize("function", TAKES_LOGITS.values(), ids=TAKES_LOGITS)
def test_bad_logits_are_refused_by_name_and_row(function, logits, message):
    with pytest.raises(ValueError, match="^logits: " + message):
        function(logits, [0, 1, 0][: len(logits)])

"""Isotonic regression and the affine maps, and what all calibrators share."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calib import TemperatureScaling, fit_temperature, nll, softmax
from calib.affine import AffineScaling
from calib.isotonic import IsotonicCalibration

CALIBRATORS = {
    "temperature": TemperatureScaling,
    "temperature by brier": lambda: TemperatureScaling("brier"),
    "isotonic": IsotonicCalibration,
    "vector": lambda: AffineScaling("vector"),
    "matrix": lambda: AffineScaling("matrix"),
}
EVERY_CALIBRATOR = pytest.mark.parametrize("make", CALIBRATORS.values(), ids=CALIBRATORS)


def affine_nll(scaling, logits, targets):
    return nll(logits @ scaling.weights_ + scaling.bias_, targets)


# --- all of them -----------------------------------------------------------------------------------------------------


@EVERY_CALIBRATOR
def test_fit_returns_self_and_rows_sum_to_one_on_new_data(make, simulate):
    logits, labels = simulate(400, 4, temperature=2)
    calibrator = make()
    assert calibrator.fit(logits, labels) is calibrator
    probabilities = calibrator.predict_proba(10 * simulate(50, 4, seed=1)[0])
    assert probabilities.shape == (50, 4) and probabilities.dtype == np.float64
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


@EVERY_CALIBRATOR
def test_unfitted_calibrators_say_so(make):
    with pytest.raises(ValueError, match=r"expected a fitted object; call fit\(logits, targets\) first"):
        make().predict_proba([[1.0, 0.0]])


@EVERY_CALIBRATOR
def test_a_second_fit_forgets_the_first(make, simulate):
    first, second = simulate(300, 3, temperature=3), simulate(200, 4, seed=1)
    again = make().fit(*first).fit(*second)
    np.testing.assert_array_equal(again.predict_proba(second[0]), make().fit(*second).predict_proba(second[0]))


@EVERY_CALIBRATOR
def test_hard_labels_equal_one_hot_distributions(make, simulate):
    logits, labels = simulate(300, 3, temperature=2)
    soft = make().fit(logits, np.eye(3)[labels])
    np.testing.assert_allclose(soft.predict_proba(logits), make().fit(logits, labels).predict_proba(logits), atol=1e-8)


@EVERY_CALIBRATOR
def test_order_of_rows_and_classes_does_not_matter(make, simulate):
    logits, labels = simulate(300, 3, temperature=2)
    rows, classes = np.random.default_rng(0).permutation(300), np.array([2, 0, 1])
    moved = make().fit(logits[rows][:, classes], np.argsort(classes)[labels[rows]])
    expected = make().fit(logits, labels).predict_proba(logits)
    np.testing.assert_allclose(moved.predict_proba(logits[:, classes]), expected[:, classes], atol=1e-5)


@EVERY_CALIBRATOR
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_type_of_the_logits_does_not_matter(make, dtype, simulate):
    logits, labels = simulate(300, 3, temperature=2)
    logits = logits.astype(dtype)
    wide = logits.astype(np.float64)
    expected = make().fit(wide, labels).predict_proba(wide)
    np.testing.assert_allclose(make().fit(logits, labels).predict_proba(logits), expected, atol=1e-6)


# --- isotonic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("soft", [False, True])
def test_isotonic_is_one_map_of_scikit_learn_per_class_then_renormalised(soft, simulate):
    logits, labels = simulate(400, 3, temperature=2)
    new = 2 * simulate(100, 3, seed=1)[0]  # reaches outside the range of the fit
    dense = softmax(logits, 2) if soft else np.eye(3)[labels]
    columns = []
    for k in range(3):
        one = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(softmax(logits)[:, k], dense[:, k])
        columns.append(np.maximum(one.predict(softmax(new)[:, k]), 1e-9))
    expected = np.transpose(columns) / np.sum(columns, axis=0)[:, None]
    found = IsotonicCalibration().fit(logits, dense if soft else labels).predict_proba(new)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found > 0).all()


@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_isotonic_keeps_the_column_of_a_class_without_labels(labels):
    logits = np.log([[0.9, 0.1], [0.8, 0.2]])
    probabilities = IsotonicCalibration().fit(logits, labels).predict_proba(logits)
    np.testing.assert_allclose(probabilities[:, labels[0]], 1, atol=2e-9)
    np.testing.assert_allclose(probabilities[:, 1 - labels[0]], 1e-9, rtol=1e-8)


def test_isotonic_rows_without_any_mass_become_uniform():
    """Where every map says 0, the floors share the row."""
    fitted = IsotonicCalibration().fit(np.log([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]), [0, 1, 2])
    np.testing.assert_allclose(fitted.predict_proba(np.log([[0.2, 0.2, 0.2]]))[0], 1 / 3)


def test_isotonic_refuses_another_number_of_classes():
    with pytest.raises(ValueError, match=r"^logits: expected 2 columns, as in fit, got 3"):
        IsotonicCalibration().fit([[1.0, 0.0]], [0]).predict_proba([[1.0, 0.0, 0.0]])


# --- affine ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("soft", [False, True])
def test_more_freedom_never_fits_worse(soft, simulate):
    logits, labels = simulate(500, 3, temperature=2)
    targets = softmax(logits[:, [1, 0, 2]], 3) if soft else labels
    temperature = fit_temperature(logits, targets).objective
    vector = affine_nll(AffineScaling("vector").fit(logits, targets), logits, targets)
    matrix = affine_nll(AffineScaling("matrix").fit(logits, targets), logits, targets)
    assert matrix <= vector + 1e-9 <= temperature + 2e-9


def test_a_known_affine_map_is_recovered(simulate):
    logits, _ = simulate(500, 3)
    weights, bias = np.diag([0.5, 1.5, 0.8]), np.array([0.3, -1, 0.7])
    for kind in ("vector", "matrix"):
        scaling = AffineScaling(kind).fit(logits, softmax(logits @ weights + bias))
        np.testing.assert_allclose(scaling.predict_proba(logits), softmax(logits @ weights + bias), atol=1e-5)
    np.testing.assert_array_equal(AffineScaling("vector").fit(logits, [0, 1, 2, 0, 0] * 100).weights_ != 0, np.eye(3))


@pytest.mark.parametrize("kind", ["platt", "vector", "matrix"])
def test_a_bias_makes_mean_probability_equal_class_share(kind, simulate):
    logits, labels = simulate(500, 2 if kind == "platt" else 4, temperature=2)
    logits[:, 0] -= 1
    probabilities = AffineScaling(kind).fit(logits, labels).predict_proba(logits)
    np.testing.assert_allclose(probabilities.mean(axis=0), np.bincount(labels) / 500, atol=1e-5)


def test_platt_is_logistic_regression_on_the_difference_of_the_logits(simulate):
    logits, labels = simulate(500, 2, temperature=2)
    logits[:, 0] += 1
    difference = logits[:, [1]] - logits[:, [0]]
    theirs = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(difference, labels)
    scaling = AffineScaling("platt").fit(logits, labels)
    np.testing.assert_allclose(scaling.predict_proba(logits), theirs.predict_proba(difference), atol=1e-5)
    np.testing.assert_allclose(scaling.weights_, theirs.coef_[0, 0] * np.eye(2), atol=1e-5)
    np.testing.assert_allclose(scaling.bias_, [0, theirs.intercept_[0]], atol=1e-5)


@pytest.mark.parametrize(
    "kind, logits, message",
    [
        ("platt", [[1, 2, 3], [3, 2, 1]], r"^logits: expected two columns for Platt scaling, got 3"),
        ("vector", [[0, -np.inf], [0, 1]], r"^logits: expected finite values, got -inf; .* cannot mask"),
        ("beta", [[0, 1], [1, 0]], r"^kind: expected one of \('platt', 'vector', 'matrix'\), got 'beta'"),
    ],
)
def test_affine_maps_refuse_what_they_cannot_do(kind, logits, message):
    with pytest.raises(ValueError, match=message):
        AffineScaling(kind).fit(logits, [0, 1])


@pytest.mark.parametrize("kind", ["platt", "vector", "matrix"])
@pytest.mark.parametrize("scale", [0.1, 1, 100])
def test_separable_data_have_no_affine_fit(kind, scale):
    with pytest.raises(ValueError, match="separable"):
        AffineScaling(kind).fit(scale * np.array([[0, 2.0], [0, -2.0], [0, 1]]), [1, 0, 1])


@pytest.mark.parametrize("scale", [0.1, 1, 10, 100])
def test_an_affine_fit_does_not_depend_on_the_scale_of_the_logits(scale):
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(300, 3))
    labels = (2 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    probabilities = [AffineScaling("matrix").fit(c * logits, labels).predict_proba(c * logits) for c in (1, scale)]
    np.testing.assert_allclose(*probabilities, atol=1e-4)


@pytest.mark.parametrize("calibrator", [TemperatureScaling(), IsotonicCalibration(), AffineScaling("matrix")])
def test_an_object_that_was_not_fitted_says_so_by_its_name(calibrator):
    name = type(calibrator).__name__
    with pytest.raises(ValueError, match=rf"^{name}: expected a fitted object; call fit\(logits, targets\) first$"):
        calibrator.predict_proba(np.zeros((2, 3)))


@pytest.mark.parametrize("calibrator", [IsotonicCalibration(), AffineScaling("matrix")])
def test_other_classes_than_in_the_fit_are_refused(calibrator, simulate):
    calibrator.fit(*simulate(200, 3))
    with pytest.raises(ValueError, match=r"^logits: expected 3 columns, as in fit, got 2$"):
        calibrator.predict_proba(np.zeros((2, 2)))


def test_equal_logits_give_an_affine_fit_of_the_base_rates():
    probabilities = AffineScaling("vector").fit(np.zeros((4, 2)), [0, 0, 0, 1]).predict_proba(np.zeros((1, 2)))
    np.testing.assert_allclose(probabilities, [[0.75, 0.25]], atol=1e-6)


def test_a_fit_that_does_not_end_says_so(simulate, monkeypatch):
    import scipy.optimize

    search = scipy.optimize.minimize
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *a, options, **k: search(*a, options={"maxiter": 1}, **k))
    with pytest.raises(ValueError, match="^targets: the fit of matrix scaling did not end"):
        AffineScaling("matrix").fit(*simulate(200, 3))

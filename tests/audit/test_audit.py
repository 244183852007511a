"""The methods of the second computation agree with those of the first; and both with mpmath."""

import ast
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calib import (
    EqualMass,
    Predictions,
    accuracy,
    audit,
    bisect_temperature,
    brier,
    ece,
    fit_temperature,
    nll,
    reliability_table,
    softmax,
    top_label,
)
from calib.isotonic import IsotonicCalibration
from calib.predictions import hash_order
from calib.reliability import bin_edges, wilson_interval
from calib.resampling import bootstrap_ece, interval
from calib.temperature import BOUNDS
from conftest import ROOT

OF_TEMPERATURES, OF_METRICS = 1e-6, 1e-12  # relative; absolute, at a given temperature


def close(value):
    return pytest.approx(value, rel=0, abs=OF_METRICS, nan_ok=True)


def refit(logits, targets, objective, bounds=BOUNDS):
    """The temperature that the audit fits."""
    if objective == "nll":
        return audit.lowest_nll(lambda t: audit.nll(logits, targets, t), bounds)
    return audit.lowest_brier(lambda t: audit.brier(audit.probabilities(logits, t), targets), bounds)


@st.composite
def problems(draw, classes=(2, 3, 7)):
    """Logits with ties, of one of several sizes; labels; votes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_classes = draw(st.integers(2, 40)), draw(st.sampled_from(classes))
    logits = draw(st.sampled_from([0.1, 1, 10, 300])) * rng.normal(size=(n, n_classes)).round(1)
    return logits, rng.integers(0, n_classes, n), rng.multinomial(20, rng.dirichlet(np.ones(n_classes), n))


@pytest.fixture
def mp():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        yield mpmath


# --- by other means --------------------------------------------------------------------------------------------------


def test_the_audit_imports_numpy_and_the_standard_library_only():
    imported = set()
    for path in (ROOT / "calib/audit").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, "a relative import"
                imported.add(node.module)
    own = {f"calib.audit.{room}" for room in ("methods", "chapters", "shares")}
    assert own < imported and "numpy" in imported
    assert {name.partition(".")[0] for name in imported - own} <= {"numpy", *sys.stdlib_module_names}


# --- scores at a given temperature -----------------------------------------------------------------------------------


@given(problems(), st.floats(0.1, 10))
def test_scores_at_a_temperature_agree(problem, temperature):
    logits, labels, votes = problem
    shares, p = audit.distributions(votes), audit.probabilities(logits, temperature)
    assert shares.tolist() == Predictions(range(len(votes)), logits, votes=votes).distributions.tolist()
    assert p == close(softmax(logits, temperature))
    for targets in (labels, shares):
        assert audit.nll(logits, targets, temperature) == pytest.approx(nll(logits, targets, temperature), rel=1e-13)
        assert audit.brier(p, targets) == close(brier(softmax(logits, temperature), targets))
    confidence, correct = audit.top_label(logits, labels)
    assert confidence == logits.max(axis=1).tolist()
    assert sum(correct) == round(accuracy(logits, labels) * len(labels))


@given(problems(classes=[2]), st.floats(0.1, 10))
def test_the_margins_of_two_classes_give_the_same(problem, temperature):
    logits, labels, _ = problem
    p = softmax(logits, temperature)
    confidence, correct = top_label(p, labels)
    loss, square, audited, right = audit.two_class(logits, labels, temperature)
    assert loss == pytest.approx(nll(logits, labels, temperature), rel=1e-13)
    assert (square, audited, right) == (close(brier(p, labels)), close(confidence.tolist()), correct.tolist())


# --- temperatures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes, temperature", [(2, 0.3), (2, 4), (3, 1), (10, 2.5), (3, 400)])
def test_temperatures_agree(simulate, n_classes, temperature):
    logits, labels = simulate(300, n_classes, seed=n_classes)
    votes = np.random.default_rng(1).multinomial(30, softmax(logits))
    logits, shares = logits * temperature, audit.distributions(votes)
    for targets in (labels, shares):
        for fit in (fit_temperature, bisect_temperature):
            fitted = fit(logits, targets).temperature
            assert refit(logits, targets, "nll") == pytest.approx(fitted, rel=OF_TEMPERATURES)
        fitted = fit_temperature(logits, targets, "brier").temperature
        assert refit(logits, targets, "brier") == pytest.approx(fitted, rel=OF_TEMPERATURES)
    if n_classes == 2:
        by_margin = audit.lowest_nll(lambda t: audit.two_class(logits, labels, t)[0])
        assert by_margin == pytest.approx(fit_temperature(logits, labels).temperature, rel=OF_TEMPERATURES)


@pytest.mark.parametrize("bounds", [(0.05, 20), (2, 30), (0.01, 0.4)])
@pytest.mark.parametrize("labels, end", [([0, 1, 0], 0), ([1, 0, 1], 1)], ids=["right", "wrong"])
def test_a_score_that_falls_towards_a_bound_ends_there(bounds, labels, end):
    logits = [[1, 0], [0, 2], [3, 0]]
    for objective in ("nll", "brier"):
        assert refit(logits, labels, objective, bounds) == bounds[end]
        assert fit_temperature(logits, labels, objective, bounds).temperature == bounds[end]


@pytest.mark.parametrize("share", [0.9, 0.6])
def test_the_lowest_of_several_valleys_is_found(share):
    """Many rows of a small margin, some of a large one that are often wrong: one valley below T = 1, one far above."""
    logits = np.array([[0.2, 0]] * 100 + [[40, 0]] * 100)
    shares = np.array([[0.8, 0.2]] * 100 + [[share, 1 - share]] * 100)

    def score(t):
        return audit.brier(audit.probabilities(logits, t), shares)

    values = np.array([score(t) for t in np.geomspace(1e-3, 1e3, 500)])
    assert ((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])).sum() == 2
    found = refit(logits, shares, "brier")
    assert score(found) <= values.min()
    assert found == pytest.approx(fit_temperature(logits, shares, "brier").temperature, rel=OF_TEMPERATURES)


# --- with 50 digits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("temperature", [0.2, 1.0, 7.0])
def test_scores_agree_with_mpmath(mp, n_classes, temperature):
    rng = np.random.default_rng(n_classes)
    logits, labels = 4 * rng.normal(size=(12, n_classes)), rng.integers(0, n_classes, 12)
    votes = rng.multinomial(10, np.ones(n_classes) / n_classes, 12)
    shares, one_hot = [[mp.mpf(int(v)) / 10 for v in row] for row in votes], np.eye(n_classes)[labels].tolist()
    powers = [[mp.exp(mp.mpf(z) / mp.mpf(temperature)) for z in row] for row in logits.tolist()]
    exact = [[e / sum(row) for e in row] for row in powers]
    for mine in (audit.probabilities(logits, temperature), softmax(logits, temperature)):
        assert mine.ravel().tolist() == pytest.approx([float(x) for row in exact for x in row], rel=1e-13)
    for targets, q in ((labels, one_hot), (votes / 10, shares)):
        pairs = [(p, t) for rows in zip(exact, q) for p, t in zip(*rows)]
        loss, square = -sum(t * mp.log(p) for p, t in pairs) / 12, sum((p - t) ** 2 for p, t in pairs) / 12
        for of_nll, of_brier, of_softmax in ((audit.nll, audit.brier, audit.probabilities), (nll, brier, softmax)):
            assert of_nll(logits, targets, temperature) == pytest.approx(float(loss), rel=1e-13)
            assert of_brier(of_softmax(logits, temperature), targets) == pytest.approx(float(square), rel=1e-13)
        if n_classes == 2 and targets is labels:
            found = audit.two_class(logits, labels, temperature)[:2]
            assert found == pytest.approx((float(loss), float(square)), rel=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_temperatures_agree_with_mpmath(mp, simulate, n_classes):
    logits, labels = simulate(25, n_classes, temperature=2, seed=n_classes + 10)
    shares = np.random.default_rng(3).multinomial(10, softmax(logits, 3)) / 10
    rows = [[mp.mpf(z) for z in row] for row in logits.tolist()]

    def slope(beta, objective, targets):
        """Derivative of the score by 1 / T, times n."""
        total = mp.mpf(0)
        for z, q in zip(rows, targets.tolist()):
            powers = [mp.exp(beta * value) for value in z]
            p = [e / sum(powers) for e in powers]
            centre = sum(a * b for a, b in zip(p, z))
            factors = p if objective == "nll" else [2 * (a - t) * a for a, t in zip(p, q)]
            for factor, t, value in zip(factors, q, z):
                total += (factor - t) * value if objective == "nll" else factor * (value - centre)
        return total

    for objective, targets, dense in (
        ("nll", labels, np.eye(n_classes)[labels]),
        ("nll", shares, shares),
        ("brier", shares, shares),
    ):
        fitted = fit_temperature(logits, targets, objective).temperature
        exact = float(1 / mp.findroot(partial(slope, objective=objective, targets=dense), 1 / mp.mpf(fitted)))
        assert fitted == pytest.approx(exact, rel=1e-12)
        assert refit(logits, targets, objective) == pytest.approx(exact, rel=OF_TEMPERATURES)


@pytest.mark.parametrize("hits, n", [(0, 1), (1, 1), (9, 10), (0, 1000), (999, 1000), (1000, 1000), (123456, 10**6)])
def test_wilson_intervals_agree_with_mpmath(mp, hits, n):
    z, share = mp.sqrt(2) * mp.erfinv(mp.mpf(95) / 100), mp.mpf(hits) / n
    half = z * mp.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    exact = [float((share + z**2 / (2 * n) + sign * half) / (1 + z**2 / n)) for sign in (-1, 1)]
    assert audit.wilson(hits, n) == pytest.approx(exact, rel=1e-13, abs=1e-16)
    assert [float(end[0]) for end in wilson_interval([hits], [n])] == pytest.approx(exact, rel=1e-12, abs=1e-16)


def test_calibration_errors_agree_with_mpmath(mp):
    rng = np.random.default_rng(5)
    confidence, correct = rng.random(200), rng.random(200) < 0.7
    exact = mp.mpf(0)
    for b in range(15):  # k / 15 <= p in exact arithmetic: random numbers do not lie within rounding of an edge
        members = [i for i in range(200) if int(15 * mp.mpf(confidence[i])) == b]
        exact += abs(sum(mp.mpf(confidence[i]) - int(correct[i]) for i in members)) / 200
    for compute in (audit.ece, ece):
        assert compute(confidence, correct, 15) == pytest.approx(float(exact), rel=1e-13)


# --- bins and bootstrap ----------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 30), st.sampled_from([np.float32, np.float64]))
def test_tables_agree_also_where_confidences_lie_on_edges(seed, n, n_bins, dtype):
    rng = np.random.default_rng(seed)
    on_edge = (rng.integers(0, n_bins + 1, n) / n_bins).astype(dtype)
    confidence = np.where(rng.random(n) < 0.5, on_edge, rng.random(n).astype(dtype))
    correct = rng.random(n) < confidence
    for bins in (n_bins, [0, 0.3, 0.7, 1], bin_edges(confidence, EqualMass(n_bins))):
        table = reliability_table(confidence, correct, bins)
        audited = np.array(audit.reliability(confidence, correct, bins)).T
        assert audited[0].tolist() == table.counts.tolist()
        for mine, theirs in zip(audited[1:], (table.confidence, table.accuracy, table.low, table.high)):
            assert mine == close(theirs)
        assert audit.ece(confidence, correct, bins) == close(table.ece)


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_resampling_agrees(seed, n):
    rng = np.random.default_rng(seed)
    confidence, correct, indices = rng.random(n).round(1), rng.random(n) < 0.7, rng.integers(0, n, (30, n))
    replicates = bootstrap_ece(confidence, correct, [5, 10, 7], indices)
    audited = np.array(audit.bootstrap_ece(confidence, correct, [5, 10, 7], indices))
    assert audited == close(replicates)
    ends = [[audit.percentile(column, q) for column in audited.T.tolist()] for q in (2.5, 97.5)]
    assert np.array(ends) == close(np.array(interval(replicates)))


# --- votes, splits, isotonic regression ------------------------------------------------------------------------------


def test_ties_of_votes_go_to_the_lower_class():
    votes = [[40, 40, 20], [0, 50, 50], [1, 2, 3], [5, 5, 5]]
    assert audit.majority(votes) == [0, 1, 2, 0] == np.argmax(votes, axis=1).tolist()


@given(st.lists(st.text(max_size=8) | st.integers(0, 99), min_size=3, max_size=30, unique=True), st.text(max_size=8))
def test_hash_splits_agree(ids, key):
    ids = [str(name) for name in ids]
    first, second = audit.hash_split(ids, key, (1, len(ids) - 1))
    assert [*first, *second] == hash_order(ids, key).tolist() and len(first) == 1


@given(problems())
def test_isotonic_regressions_agree(problem):
    logits, labels, votes = problem
    half = len(logits) // 2
    p, shares = softmax(logits), audit.distributions(votes)
    for targets in (labels, shares):
        theirs = IsotonicCalibration().fit(logits[half:], targets[half:]).predict_proba(logits)
        assert audit.isotonic(p[half:], targets[half:], p) == close(theirs)

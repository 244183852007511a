"""Sweeps give what as many single calls give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calib import EqualMass, ece, nll, softmax, top_label
from calib.sweep import sweep_bins, sweep_temperatures


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_sweep_over_temperatures_equals_single_calls(n_classes, simulate):
    logits, labels = simulate(300, n_classes)
    temperatures = np.geomspace(0.1, 10, 21)
    sweep = sweep_temperatures(logits, labels, temperatures, bins=15)
    for i, T in enumerate(temperatures):
        confidence, correct = top_label(softmax(logits, T), labels)
        assert sweep["nll"][i] == pytest.approx(nll(logits, labels, T), rel=1e-12)
        assert sweep["confidence"][i] == pytest.approx(confidence.mean(), rel=1e-12)
        assert sweep["ece"][i] == pytest.approx(ece(confidence, correct, 15), abs=1e-12)


@given(st.integers(1, 60), st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]))
def test_a_sweep_over_bins_equals_single_calls(n, seed, dtype):
    rng = np.random.default_rng(seed)
    confidence = (rng.integers(0, 21, n) / 20).astype(dtype)  # ties, and values on edges
    correct = rng.integers(0, 2, n)
    bins = [1, 2, 10, 15, 20, EqualMass(3), EqualMass(50), [0, 0.35, 1]]
    expected = [ece(confidence, correct, declared) for declared in bins]
    np.testing.assert_allclose(sweep_bins(confidence, correct, bins), expected, atol=1e-12)


@pytest.mark.parametrize("temperatures", [[1, 0], [1, -1], [np.inf], [[1.0]], []])
def test_bad_temperatures_of_a_sweep_are_refused(temperatures):
    with pytest.raises(ValueError, match="^temperatures: expected"):
        sweep_temperatures([[1.0, 0.0]], [0], temperatures, bins=10)

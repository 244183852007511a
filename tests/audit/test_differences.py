"""A wrong recorded number is caught by the audit."""

import math

import pytest
from test_audit_chapters import PUBLISHED, SIX, agree

from calib import (
    audit,
)

# --- comparison ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["temperature", "temperature_grid", "nll_t1", "nll_fitted", "ece4_t1", "ece4_fitted", "accuracy"]
)
@pytest.mark.parametrize("error", [1e-5, -1e-5, 0.1, math.nan])
def test_a_wrong_recorded_number_is_caught(name, error):
    recorded = PUBLISHED["six-examples"]
    wrong = {**recorded, name: recorded[name] * (1 + error)}
    audited = audit.audit_six_examples(*SIX, at=wrong if math.isfinite(error) else recorded)
    with pytest.raises(AssertionError):
        agree(wrong, audited)
    caught = {key for key, value in audit.differences(wrong, audited).items() if not value < 1e-7}
    assert name in caught and (caught == {name} or name == "temperature")


def test_a_number_that_is_not_recorded_is_an_error():
    with pytest.raises(KeyError, match="nll_t1"):
        audit.differences({"temperature": 1.0}, {"temperature": 1.0, "nll_t1": 0.5})


def test_the_largest_difference_is_relative_for_temperatures_and_absolute_for_the_rest():
    recorded = {"temperature": 2.0, "T_hard": 4.0, "ece": 0.5, "nll": 2.0, "n": 7}
    audited = {"temperature": 2.0, "T_hard": 4.5, "ece": 0.75, "nll": 2.0, "n": 7}
    assert audit.differences(recorded, audited) == {"temperature": 0, "T_hard": 0.5, "ece": 0.25, "nll": 0, "n": 0}
    assert audit.largest(recorded, audited) == (0.125, 0.25)
    assert audit.largest(recorded, {}) == (0, 0)
    assert audit.largest(recorded, {"ece": math.nan}) == (0, math.inf)

"""The soft-label gap and its protocol."""

from dataclasses import replace

import numpy as np
import pytest

from calib import Predictions, accuracy, brier, ece, fit_temperature, softmax, top_label
from calib.isotonic import IsotonicCalibration
from calib.softlabels.gap import soft_label_gap
from calib.softlabels.study import Study
from conftest import halves

TEMPERATURE = 2.5


@pytest.fixture(scope="module")
def study(simulate):
    """Validation and soft-labelled sets whose votes follow the softmax at a known temperature."""
    logits, labels = simulate(1200, 3)
    votes = np.random.default_rng(1).multinomial(1000, softmax(logits, TEMPERATURE))
    everything = Predictions(np.arange(1200), logits, labels, votes)
    return everything.split(400, 800)


@pytest.mark.parametrize("n, sizes", [(2, (1, 1)), (7, (3, 4)), (10, (5, 5))])
def test_first_half_in_file_order_is_the_smaller_one(n, sizes):
    soft = Predictions(np.arange(n)[::-1], np.zeros((n, 2)))
    first, second = halves(soft)
    assert (len(first), len(second)) == sizes
    assert [*first.ids, *second.ids] == soft.ids.tolist()


def test_every_number_follows_from_its_definition(study):
    validation, soft = study
    first, second = soft.select(slice(0, 400)), soft.select(slice(400, None))
    temperatures = {
        "uncal": 1.0,
        "hard": fit_temperature(validation.logits, validation.labels).temperature,
        "oracle": fit_temperature(first.logits, first.distributions, "brier").temperature,
    }
    expected = {"n_val": 400, "n": 800, "n_overlap": 0, "accuracy": accuracy(second.logits, second.labels)}
    for name, temperature in temperatures.items():
        p = softmax(second.logits, temperature)
        expected[f"ece_{name}"] = ece(*top_label(p, second.labels), bins=15)
        expected[f"brier_{name}"] = brier(p, second.distributions)
    expected |= {"T_hard": temperatures["hard"], "T_oracle": temperatures["oracle"]}
    expected["gap"] = expected["brier_hard"] - expected["brier_oracle"]
    for name, fitted, targets in (("hard", validation, validation.labels), ("oracle", first, first.distributions)):
        p = IsotonicCalibration().fit(fitted.logits, targets).predict_proba(second.logits)
        expected[f"iso_brier_{name}"] = brier(p, second.distributions)
    expected["iso_gap"] = expected["iso_brier_hard"] - expected["iso_brier_oracle"]
    assert soft_label_gap(Study(validation, soft)) == pytest.approx(expected, rel=1e-12)


def test_results_are_plain_numbers(study):
    assert {type(value) for value in soft_label_gap(Study(*study)).values()} == {int, float}


def test_oracle_recovers_the_temperature_of_the_votes_and_labels_sharper_than_votes_cost(study):
    result = soft_label_gap(Study(*study))
    assert result["T_oracle"] == pytest.approx(TEMPERATURE, rel=0.02)
    assert result["T_hard"] == pytest.approx(1, abs=0.15), "the labels were drawn at T = 1"
    assert result["brier_oracle"] < 1e-3 < result["gap"]
    assert result["iso_gap"] > 0


def test_gap_is_zero_where_labels_carry_what_the_votes_say():
    """Equal rows, three quarters right, every vote unanimous: both fits see the same shares."""
    labels = np.arange(24) % 4 // 3
    votes = 50 * np.eye(2, dtype=int)[labels]
    validation, soft = Predictions(np.arange(24), [[6, 0]] * 24, labels, votes).split(8, 16)
    result = soft_label_gap(Study(validation, soft))
    assert result["T_hard"] == pytest.approx(6 / np.log(3))
    assert result["T_oracle"] == pytest.approx(6 / np.log(3))
    assert (result["gap"], result["iso_gap"]) == pytest.approx((0, 0), abs=1e-9)
    assert result["brier_uncal"] > result["brier_hard"] + 0.1


def test_each_part_of_the_data_moves_only_its_own_numbers(study):
    validation, soft = study
    base = soft_label_gap(Study(validation, soft))

    def moved(**parts):
        result = soft_label_gap(Study(**{"validation": validation, "soft": soft, **parts}))
        return {name for name in base if result[name] != base[name]}

    late, early = np.arange(800) >= 400, np.arange(800) < 400
    shuffled = soft.votes[:, [1, 2, 0]]
    of_hard = {"T_hard", "ece_hard", "brier_hard", "gap", "iso_brier_hard", "iso_gap"}
    of_oracle = {"T_oracle", "ece_oracle", "brier_oracle", "gap", "iso_brier_oracle", "iso_gap"}
    of_evaluation = {name for name in base if "brier" in name or "gap" in name}
    assert moved(validation=replace(validation, labels=(validation.labels + 1) % 3)) == of_hard
    assert moved(soft=replace(soft, votes=np.where(early[:, None], shuffled, soft.votes))) == of_oracle
    assert moved(soft=replace(soft, votes=np.where(late[:, None], shuffled, soft.votes))) == of_evaluation
    labels = np.where(late, (soft.labels + 1) % 3, soft.labels)
    assert moved(soft=replace(soft, labels=labels)) == {"accuracy", "ece_uncal", "ece_hard", "ece_oracle"}
    assert moved(validation=replace(validation, votes=None)) == set()


def test_overlap_with_the_evaluated_half_raises_unless_declared_and_is_counted(study):
    _, soft = study
    inside = soft.select(slice(395, 405))  # five of the first half, five of the second
    with pytest.raises(ValueError, match=r"expected no example in both, got 5, the first "):
        soft_label_gap(Study(inside, soft))
    assert soft_label_gap(Study(inside, soft, overlap_declared=True))["n_overlap"] == 5
    assert soft_label_gap(Study(soft.select(slice(0, 400)), soft))["n_overlap"] == 0


@pytest.mark.parametrize(
    "part, field, message",
    [
        (0, "labels", r"^targets: expected shape \(400,\), got shape \(\)"),
        (1, "labels", r"^labels: expected shape \(400,\), got shape \(\)"),
        (1, "votes", r"^distributions: these predictions have no votes"),
    ],
)
def test_missing_labels_or_votes_are_named(study, part, field, message):
    parts = list(study)
    parts[part] = replace(parts[part], **{field: None})
    with pytest.raises(ValueError, match=message):
        soft_label_gap(Study(*parts))


def test_classes_in_another_order_are_refused(simulate):
    logits, labels = simulate(20, 2)
    names = ("n", "p")
    validation = Predictions(range(20), logits, labels, class_names=names)
    soft = Predictions(range(20, 40), logits, labels, np.ones((20, 2), dtype=int), class_names=names[::-1])
    with pytest.raises(ValueError, match="expected the same classes in the same order"):
        Study(validation, soft)

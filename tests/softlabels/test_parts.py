"""The parts of the gap are what they are known to be, on data of a known law; their intervals cover."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from calib import Predictions, brier, fit_temperature, nll, softmax
from calib.isotonic import IsotonicCalibration
from calib.resampling import bootstrap_indices, interval
from calib.softlabels.gap import soft_label_gap
from calib.softlabels.parts import (
    ISOTONIC_PARTS,
    PARTS,
    STEPS,
    crossfitted_parts,
    crossfitted_scores,
    fit_steps,
    gap_parts,
    isotonic_scores,
    ordered_parts,
    part_intervals,
    parts_of,
    refitted_scores,
    resampled_scores,
    scores_at,
    shuffled_scores,
    step_curves,
    study_parts,
    temperature_scores,
    weighted_fits,
)
from calib.softlabels.study import Study
from conftest import halves

# Two classes, logits (0, z) with z normal; a person answers 1 with probability q(z).


def at(T):
    """People whose answers follow the softmax at temperature T."""
    return lambda z: 1 / (1 + np.exp(-z / T))


def majority_of_three(q):
    return lambda z: q(z) ** 2 * (3 - 2 * q(z))


def reluctant(z):
    """People of whom a tenth answers by chance whatever they see: no temperature gives that."""
    return 0.05 + 0.9 / (1 + np.exp(-3 * z))


LAWS = {  # people, hard labels of the validation set, hard labels of the soft-labelled items
    "neither": (at(2), at(2), at(2)),
    "population": (at(2), at(1), at(2)),
    "label": (at(2), majority_of_three(at(2)), majority_of_three(at(2))),
    "both": (at(2), majority_of_three(at(1)), majority_of_three(at(2))),
    "objective": (reluctant, reluctant, reluctant),
}


def pairs(p):
    return np.column_stack([1 - p, p])


def logits_of(z):
    return np.column_stack([np.zeros_like(z), z])


def expected(law):
    """Temperatures and parts in the whole population: 20,001 quantiles of z, probabilities in place of draws."""
    people, of_validation, of_soft = LAWS[law]
    z = np.array([3 * NormalDist().inv_cdf((i + 0.5) / 20_001) for i in range(20_001)])
    steps = ((of_validation, "nll"), (of_soft, "nll"), (people, "nll"), (people, "brier"))
    temperatures = [fit_temperature(logits_of(z), pairs(q(z)), objective).temperature for q, objective in steps]
    scores = [brier(softmax(logits_of(z), T), pairs(people(z))) for T in temperatures]
    return temperatures, parts_of(scores)


def study(law, n, seed):
    """n validation examples and n with 20 votes."""
    people, of_validation, of_soft = LAWS[law]
    rng = np.random.default_rng(seed)
    z = 3 * rng.normal(size=(2, n))
    labels = (rng.random((2, n)) < [of_validation(z[0]), of_soft(z[1])]).astype(int)
    votes = rng.binomial(20, people(z[1]))
    validation = Predictions(np.arange(n), logits_of(z[0]), labels[0])
    soft = Predictions(np.arange(n, 2 * n), logits_of(z[1]), labels[1], np.column_stack([20 - votes, votes]))
    return validation, soft


@pytest.fixture(scope="module")
def one():
    return study("both", 600, seed=4)


# --- known truth -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_each_part_is_what_it_should_be(law):
    temperatures, truth = expected(law)
    found = np.array([list(gap_parts(Study(*study(law, 4000, seed))).values()) for seed in range(30)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found[:, :4].mean(axis=0) - temperatures) < 4 * error[:4])
    assert np.all(np.abs(found[:, 8:].mean(axis=0) - truth) < 4 * error[8:])

    named = {"both": ["population", "label"], "neither": []}.get(law, [law])
    for name, value, noise in zip(PARTS[:3], truth, error[8:]):
        if name.removeprefix("gap_") in named:
            assert value > 8 * noise, "large enough to be seen"
        else:
            assert value == pytest.approx(0, abs=1e-9)


def test_intervals_with_refits_cover_and_those_with_fixed_fits_are_too_short_for_that():
    _, truth = expected("both")
    inside, fixed = [], []
    for seed in range(80):
        validation, soft = study("both", 1200, seed + 1000)
        refitted = refitted_scores(step_curves(Study(validation, soft)), np.arange(2400), replicates=200, seed=seed)
        held = resampled_scores(
            temperature_scores(Study(validation, soft), fit_steps(Study(validation, soft))), replicates=200, seed=seed
        )
        for covers, scores in ((inside, refitted), (fixed, held)):
            low, high = interval(parts_of(scores))
            covers.append((low <= truth) & (truth <= high))
    inside, fixed = np.mean(inside, axis=0), np.mean(fixed, axis=0)
    assert np.all(inside > 0.85)
    assert np.all(fixed[:2] < inside[:2] - 0.2)


def test_cross_fitted_scores_are_those_of_the_halves_and_of_the_halves_swapped(one):
    validation, soft = one
    swapped = soft.select(np.roll(np.arange(len(soft)), len(soft) // 2))
    expected = [[gap_parts(Study(validation, each))[part] for part in PARTS] for each in (soft, swapped)]
    by_brier, by_nll = crossfitted_scores(Study(validation, soft))
    assert ordered_parts(by_brier)[0] == pytest.approx(np.array(expected), abs=1e-12)
    for (first, second), row, losses in zip((halves(soft), halves(swapped)), by_brier, by_nll):
        fits = [
            (validation.logits, validation.labels),
            (first.logits, first.labels),
            (first.logits, first.distributions),
        ]
        for k, (logits, targets) in enumerate(fits):
            for j, objective in enumerate(("nll", "brier")):
                T = fit_temperature(logits, targets, objective).temperature
                assert row[2 * k + j] == pytest.approx(
                    brier(softmax(second.logits, T), second.distributions), abs=1e-12
                )
                assert losses[2 * k + j] == pytest.approx(nll(second.logits, second.distributions, T), abs=1e-12)


def test_every_order_of_the_changes_has_the_same_gap_and_its_parts_add_up_to_it():
    scores = np.random.default_rng(5).random((7, 6))
    orders = ordered_parts(scores)
    assert orders.shape == (3, 7, 4)
    np.testing.assert_allclose(orders[..., :3].sum(axis=-1), orders[..., 3], atol=1e-15)
    np.testing.assert_array_equal(orders[..., 3], np.tile(scores[:, 0] - scores[:, 5], (3, 1)))
    population, label, objective = np.moveaxis(orders[..., :3], -1, 0)
    np.testing.assert_array_equal(label[1], label[2])
    np.testing.assert_array_equal(population[0], population[1])
    np.testing.assert_allclose(label[0] + objective[0], label[1] + objective[1], atol=1e-15)


def test_intervals_of_the_cross_fitted_parts_cover_the_truth():
    _, truth = expected("both")
    inside = []
    for seed in range(40):
        validation, soft = study("both", 1200, seed + 2000)
        by_brier, by_nll = crossfitted_parts(step_curves(Study(validation, soft)), np.arange(2400), 200, seed)
        low, high = interval(by_brier)
        inside.append((low <= truth) & (truth <= high))
        assert by_nll[:, :2].sum(axis=1) == pytest.approx(by_nll[:, 2], abs=1e-12)
    assert np.all(np.mean(inside, axis=0) > 0.85)


def test_clusters_widen_the_interval_where_items_share_noise():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(400), 4)
    noise = rng.normal(size=400)[clusters] + 0.5 * rng.normal(size=1600)
    scores = np.column_stack([noise, np.zeros(1600)])
    width = {}
    for name, groups in (("items", None), ("clusters", clusters)):
        low, high = interval(parts_of(resampled_scores(scores, groups)))
        width[name] = high[0] - low[0]
    assert width["clusters"] == pytest.approx(2 * 1.96 * np.sqrt(1 / 400 + 0.25 / 1600), rel=0.12)
    assert width["items"] == pytest.approx(2 * 1.96 * np.sqrt(1.25 / 1600), rel=0.12)


# --- definitions -----------------------------------------------------------------------------------------------------


def test_ends_of_the_ladder_are_those_of_the_gap(one):
    parts, gap = gap_parts(Study(*one)), soft_label_gap(Study(*one))
    for name in ("T_hard", "T_oracle", "brier_hard", "brier_oracle", "gap"):
        assert parts[name] == pytest.approx(gap[name], abs=1e-12)
    iso = isotonic_scores(Study(*one)).mean(axis=0)
    assert [iso[0], iso[2]] == pytest.approx([gap["iso_brier_hard"], gap["iso_brier_oracle"]], abs=1e-12)


def test_each_part_of_the_data_moves_only_its_own_steps(one):
    validation, soft = one
    base = gap_parts(Study(validation, soft))
    early = np.arange(len(soft)) < len(soft) // 2

    def moved(**changed):
        found = gap_parts(Study(**{"validation": validation, "soft": soft, **changed}))
        return {name for name in found if found[name] != base[name]}

    flipped = soft.votes[:, ::-1]
    assert moved(validation=replace(validation, labels=1 - validation.labels)) == {
        "T_hard",
        "brier_hard",
        "gap_population",
        "gap",
    }
    labels = np.where(early, 1 - soft.labels, soft.labels)
    assert moved(soft=replace(soft, labels=labels)) == {
        "T_population",
        "brier_population",
        "gap_population",
        "gap_label",
    }
    assert moved(soft=replace(soft, labels=np.where(early, soft.labels, 1 - soft.labels))) == set()
    votes = replace(soft, votes=np.where(early[:, None], flipped, soft.votes))
    assert moved(soft=votes) == set(base) - {"T_hard", "T_population", "brier_hard", "brier_population"} - {
        "gap_population"
    }
    judged = replace(soft, votes=np.where(early[:, None], soft.votes, flipped))
    assert moved(soft=judged) == {name for name in base if not name.startswith("T_")}


def test_isotonic_maps_are_fitted_to_three_sets_of_labels(one):
    validation, soft = one
    first, second = halves(soft)
    fits = ((validation, validation.labels), (first, first.labels), (first, first.distributions))
    scores = isotonic_scores(Study(validation, soft)).mean(axis=0)
    for score, (fitted, targets) in zip(scores, fits):
        p = IsotonicCalibration().fit(fitted.logits, targets).predict_proba(second.logits)
        assert score == pytest.approx(brier(p, second.distributions))


def test_no_monotone_map_has_a_lower_nll_than_the_one_with_the_lowest_brier_score(one):
    first, _ = halves(one[1])
    scores, targets = softmax(first.logits)[:, 1], first.distributions[:, 1]
    mapped = IsotonicCalibration().fit(first.logits, first.distributions).maps_[1].predict(scores)
    inner = np.clip(mapped, 1e-12, 1 - 1e-12)
    loss = -np.mean(targets * np.log(inner) + (1 - targets) * np.log(1 - inner))
    rank, rng = scores.argsort().argsort(), np.random.default_rng(0)
    for _ in range(200):  # the NLL is convex: a minimum nearby is the minimum
        other = 0.98 * inner + 0.02 * np.sort(rng.random(len(rank)))[rank]
        assert -np.mean(targets * np.log(other) + (1 - targets) * np.log(1 - other)) > loss


def test_overlap_is_an_error_unless_declared(one):
    _, soft = one
    with pytest.raises(ValueError, match="expected no example in both, got 300"):
        gap_parts(Study(soft, soft))
    assert gap_parts(Study(soft, soft, overlap_declared=True))["T_hard"] > 0


# --- resampling ------------------------------------------------------------------------------------------------------


def test_fits_on_the_grid_are_the_exact_ones(one):
    validation, soft = one
    curves = step_curves(Study(validation, soft))
    ones = np.ones((1, 300))
    fits = ((np.ones((1, 600)), curves[0]), *((ones, of_step[:300]) for of_step in curves[1:]))
    scores = scores_at(weighted_fits(fits), ones, curves[-1][300:])
    parts = gap_parts(Study(validation, soft))
    assert scores[0] == pytest.approx([parts[f"brier_{step}"] for step in STEPS], abs=5e-6)


def test_a_refitted_replicate_is_the_exact_fit_to_its_rows(one):
    validation, soft = one
    scores = refitted_scores(step_curves(Study(validation, soft)), np.arange(1200), replicates=3)
    for drawn, found in zip(bootstrap_indices(1200, 3), scores):
        rows = drawn[drawn >= 600] - 600
        early, late = soft_rows(soft, rows[rows < 300]), soft_rows(soft, rows[rows >= 300])
        hard = soft_rows(validation, drawn[drawn < 600])
        fits = (
            (hard.logits, hard.labels, "nll"),
            (early.logits, early.labels, "nll"),
            (early.logits, early.distributions, "nll"),
            (early.logits, early.distributions, "brier"),
        )
        exact = [brier(softmax(late.logits, fit_temperature(*fit).temperature), late.distributions) for fit in fits]
        assert found == pytest.approx(exact, abs=5e-6)


def soft_rows(predictions, rows):
    """Examples with repetition, under new ids."""
    columns = (predictions.logits[rows], predictions.labels[rows])
    return Predictions(np.arange(len(rows)), *columns, None if predictions.votes is None else predictions.votes[rows])


def test_what_is_in_two_sets_is_drawn_for_both(one):
    _, soft = one
    first, _ = halves(soft)
    names = np.arange(600)
    together = refitted_scores(step_curves(Study(first, soft)), np.r_[names[:300], names], replicates=20)
    apart = refitted_scores(step_curves(Study(first, soft)), np.arange(900), replicates=20)
    assert np.array_equal(together[:, 0], together[:, 1]), "the same labels with the same weights"
    assert np.all(apart[:, 0] != apart[:, 1])


def test_random_halves_are_reproducible_and_each_is_a_study_of_its_own(one):
    validation, soft = one
    scores = shuffled_scores(step_curves(Study(validation, soft)), draws=3)
    assert np.array_equal(scores, shuffled_scores(step_curves(Study(validation, soft)), draws=3))
    assert not np.array_equal(scores, shuffled_scores(step_curves(Study(validation, soft)), draws=3, seed=114))
    places = np.random.default_rng(113).permuted(np.tile(np.arange(600), (3, 1)), axis=1)
    for place, found in zip(places, scores):
        parts = gap_parts(
            Study(validation, soft.select(np.r_[np.flatnonzero(place < 300), np.flatnonzero(place >= 300)]))
        )
        assert found == pytest.approx([parts[f"brier_{step}"] for step in STEPS], abs=5e-6)


@pytest.mark.parametrize("scale, step", [(0.1, "hard"), (20, "population")])
def test_a_fit_outside_the_grid_is_refused(one, scale, step):
    validation, soft = (replace(part, logits=part.logits * scale) for part in one)
    T = gap_parts(Study(validation, soft))[f"T_{step}"]
    with pytest.raises(ValueError, match=f"T_{step}: expected a fit inside the grid .* from 0.4 to 16, got {T:.4g}$"):
        step_curves(Study(validation, soft))


def test_resampled_fits_at_an_end_of_the_grid_are_refused(one):
    validation, soft = one
    sharp = replace(validation, logits=validation.logits * 0.42 / gap_parts(Study(validation, soft))["T_hard"])
    curves = step_curves(Study(sharp, soft))
    with pytest.raises(ValueError, match="T_hard: expected resampled fits inside the grid .* of 50 at its ends"):
        refitted_scores(curves, np.arange(1200), replicates=50)
    assert shuffled_scores(curves, draws=3).shape == (3, 4), "the validation set is not drawn"


def test_a_replicate_without_rows_of_one_set_is_refused(one):
    validation, soft = one
    clusters = np.r_[np.zeros(600), np.ones(600)]
    with pytest.raises(ValueError, match="weights: expected rows in each replicate, got none in replicate"):
        refitted_scores(step_curves(Study(validation, soft)), clusters, replicates=50)


def test_intervals_are_named_after_their_parts():
    scores = np.linspace(0, 1, 101)[:, None] * [4.0, 3.0, 1.0]
    found = part_intervals(scores, ISOTONIC_PARTS)
    assert found == pytest.approx(
        {
            "iso_gap_population_low": 0.025,
            "iso_gap_population_high": 0.975,
            "iso_gap_label_low": 0.05,
            "iso_gap_label_high": 1.95,
            "iso_gap_low": 0.075,
            "iso_gap_high": 2.925,
        }
    )


def test_a_study_holds_what_its_pieces_give(one):
    validation, soft = one
    n_clusters = len(soft) // 2
    clusters = [*range(n_clusters, n_clusters + len(validation)), *np.arange(len(soft)) % n_clusters]
    study = study_parts(Study(validation, soft, tuple(clusters)), replicates=50, draws=20)
    found = gap_parts(Study(validation, soft))
    assert {name: study.found[name] for name in found} == found
    scores = temperature_scores(Study(validation, soft), [found[f"T_{step}"] for step in STEPS])
    np.testing.assert_allclose(
        study.fixed, parts_of(resampled_scores(scores, clusters[-len(scores) :], 50)), atol=1e-15
    )
    curves = step_curves(Study(validation, soft))
    np.testing.assert_array_equal(study.refitted, parts_of(refitted_scores(curves, clusters, 50)))
    np.testing.assert_array_equal(study.random, parts_of(shuffled_scores(curves, 20)))
    for k, part in enumerate(PARTS):
        assert (study.found[f"{part}_low"], study.found[f"{part}_high"]) == tuple(interval(study.fixed[:, k]))
        assert (study.found[f"{part}_refit_low"], study.found[f"{part}_refit_high"]) == tuple(
            interval(study.refitted[:, k])
        )
        assert study.found[f"random_{part}"] == pytest.approx(study.random[:, k].mean(), abs=1e-15)
    isotonic = isotonic_scores(Study(validation, soft)).mean(axis=0)
    assert [study.found[name] for name in ISOTONIC_PARTS] == pytest.approx(parts_of(isotonic).tolist())
    assert study.found["iso_gap_low"] < study.found["iso_gap"] < study.found["iso_gap_high"]
    assert all(type(value) is float for value in study.found.values())

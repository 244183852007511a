"""Input that gave a wrong answer or a raw error before: each case stands for its kind."""

import numpy as np
import pytest

from calib import Predictions, TemperatureScaling, bisect_temperature, brier, ece, fit_temperature
from calib.claims.seeds import trend_p
from calib.curves import bootstrap_weights
from calib.data.readers import load_json_lines
from calib.reliability import wilson_interval
from calib.resampling import bootstrap_ece, bootstrap_indices, bootstrap_mean, interval
from calib.softlabels.parts import study_parts
from calib.softlabels.study import Study


@pytest.mark.parametrize("n_classes", [5_000, 50_000, 128_000])
def test_a_softmax_in_single_precision_is_one_for_many_classes_too(n_classes):
    logits = np.random.default_rng(0).normal(size=(4, n_classes)).astype(np.float32)
    weights = np.exp(logits)
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    assert 0 < brier(probabilities, [0, 1, 2, 3]) < 2


def test_rows_that_do_not_sum_to_one_are_told_to_the_digits_that_matter():
    with pytest.raises(ValueError, match=r"got 1\.00002 in row 0"):
        brier([[0.50002, 0.5]], [0])


def test_a_wilson_interval_holds_its_share_and_stays_between_0_and_1():
    totals = np.repeat(np.arange(1, 401), 2)
    successes = np.where(np.arange(800) % 2, totals, 0)
    low, high = wilson_interval(successes, totals)
    share = successes / totals
    assert ((low >= 0) & (low <= share) & (share <= high) & (high <= 1)).all()


@pytest.mark.parametrize(
    ("successes", "totals", "named"),
    [([0], [-1], "totals"), ([1], [np.inf], "totals"), ([0], [np.nan], "totals"), ([np.nan], [4], "successes")],
)
def test_counts_that_are_none_have_no_wilson_interval(successes, totals, named):
    with pytest.raises(ValueError, match=f"^{named}: expected"):
        wilson_interval(successes, totals)


@pytest.mark.parametrize("resampled", [bootstrap_mean, lambda x, indices: bootstrap_ece(x, x > 0.5, [5], indices)])
def test_transposed_indices_are_refused(resampled):
    values = np.random.default_rng(0).random(50)
    indices = bootstrap_indices(50, replicates=20)
    assert len(resampled(values, indices)) == 20
    with pytest.raises(ValueError, match="^indices: .*transpose"):
        resampled(values, indices.T)


@pytest.mark.parametrize("values", [3.0, "abc", ["a", "b"]])
def test_what_is_no_column_of_numbers_is_named(values):
    with pytest.raises(ValueError, match="^values: expected"):
        bootstrap_mean(values, [[0, 0]])


def test_one_cluster_has_no_interval():
    with pytest.raises(ValueError, match="^clusters: expected at least two"):
        bootstrap_weights(500, ["a"] * 500)


def test_a_blank_line_between_json_lines_is_passed_over():
    assert load_json_lines(b'{"a": 1}\n\n{"b": 2}\n') == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("mask", [np.finfo(np.float32).min, -3e38, -1e37, -1e31])
@pytest.mark.parametrize("temperature", [0.5, 0.01])
@pytest.mark.parametrize("fit", [fit_temperature, bisect_temperature])
@pytest.mark.filterwarnings("error")
def test_a_mask_beyond_the_range_of_the_type_leaves_the_fit_as_it_is(mask, temperature, fit):
    rows = np.float32([temperature * np.log(3), 0, mask])
    found = fit(np.tile(rows, (12_000, 1)), np.tile([0, 0, 0, 1], 3_000))
    assert found.identified and found.temperature == pytest.approx(temperature, rel=1e-5)
    assert found.objective == pytest.approx(0.56234, abs=1e-5)


def test_too_few_bisections_are_refused():
    with pytest.raises(ValueError, match="^steps: expected enough"):
        bisect_temperature([[6.0, 0.0]] * 4, [0, 0, 0, 1], steps=20)


def test_another_number_of_classes_than_in_the_fit_is_refused():
    scaling = TemperatureScaling().fit([[6.0, 0.0]] * 4, [0, 0, 0, 1])
    with pytest.raises(ValueError, match="^logits: expected 2 columns"):
        scaling.predict_proba([[1.0, 2.0, 3.0]])


def test_a_trend_over_four_groups_is_refused():
    with pytest.raises(ValueError, match="^groups: expected three"):
        trend_p([[1, 2], [3, 4], [5, 6], [7, 8]])


@pytest.mark.parametrize("n_classes", [10, 5_000, 128_000])
@pytest.mark.parametrize("kept", ["bfloat16", "float16", "float32"])
def test_a_softmax_of_torch_is_one_as_a_tensor_and_converted(n_classes, kept):
    torch = pytest.importorskip("torch")
    logits = torch.randn(4, n_classes, generator=torch.Generator().manual_seed(1))
    probabilities = logits.to(getattr(torch, kept)).softmax(dim=1)
    scores = {brier(given, [0, 1, 2, 3]) for given in (probabilities, probabilities.float().numpy())}
    assert scores == {brier(probabilities.double().numpy(), [0, 1, 2, 3])} or max(scores) - min(scores) < 1e-6


def test_rows_that_half_precision_does_not_explain_are_refused_in_it():
    with pytest.raises(ValueError, match=r"got 1\.015625 in row 0"):
        brier(np.float32([[0.515625, 0.5]]), [0])


def test_tensors_with_a_gradient_are_read():
    torch = pytest.importorskip("torch")
    logits = torch.tensor([[6.0, 0.0]] * 4, dtype=torch.bfloat16, requires_grad=True)
    found = fit_temperature(logits, torch.tensor([0, 0, 0, 1]))
    assert found.temperature == fit_temperature([[6.0, 0.0]] * 4, [0, 0, 0, 1]).temperature


@pytest.mark.parametrize("given", [3.0, "abc", None, np.nan])
@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("confidence", lambda x: bootstrap_ece(x, [1, 0], [5], [[0, 1]])),
        ("correct", lambda x: bootstrap_ece([0.5, 0.6], x, [5], [[0, 1]])),
        ("bins", lambda x: bootstrap_ece([0.5, 0.6], [1, 0], x, [[0, 1]])),
        ("indices", lambda x: bootstrap_ece([0.5, 0.6], [1, 0], [5], x)),
        ("indices", lambda x: bootstrap_mean([0.5, 0.6], x)),
        ("replicates", interval),
        ("level", lambda x: interval([0.5, 0.6], x)),
    ],
)
def test_what_is_no_array_is_refused_by_the_name_of_the_argument(named, call, given):
    with pytest.raises(ValueError, match=f"^{named}: expected"):
        call(given)


def test_numbers_that_are_none_give_no_interval():
    with pytest.raises(ValueError, match="^replicates: expected numbers, got NaN"):
        interval([0.1, np.nan])
    with pytest.raises(ValueError, match="^successes: expected numbers"):
        wilson_interval(["a"], [3])


def test_too_short_a_list_of_clusters_says_how_many_there_are(simulate):
    logits, labels = simulate(40, 3)
    validation = Predictions(range(40), logits, labels)
    soft = Predictions(range(40, 80), logits, labels, np.eye(3, dtype=int)[labels])
    with pytest.raises(ValueError, match="^clusters: expected 80 values, one per row, got 3$"):
        study_parts(Study(validation, soft, clusters=("a", "b", "c")))


@pytest.mark.parametrize("bins", [[0, 0.5, 0.5001, 1], 5000])
def test_edges_that_half_precision_cannot_tell_apart_are_refused(bins):
    confidence = np.float16([0.25, 0.75])
    with pytest.raises(ValueError, match="^bins: expected edges that float16 can tell apart"):
        ece(confidence, [1, 0], bins)
    assert ece(confidence.astype(float), [1, 0], bins) > 0


def test_numbers_and_texts_do_not_become_the_same_names():
    with pytest.raises(ValueError, match=r"^ids: expected strings or integers, not both, got 1 and '1'"):
        Predictions([1, "1"], [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="^clusters: expected strings or integers, not both"):
        bootstrap_weights(2, clusters=[1, "1"])

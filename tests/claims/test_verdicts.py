"""Every claim of the paper is decided, by a rule that can come out otherwise, and its figures are found a second way."""

import json
from collections import Counter
from fractions import Fraction
from statistics import fmean, pstdev, stdev

import numpy as np
import pytest

from calib import audit
from calib.claims import rules
from calib.claims.printed import rows
from calib.claims.rules import CONTRADICTED, JUDGED_M, NOT_SHOWN, SHOWN
from calib.claims.seeds import SCALES, configurations, ordered_pairs, trend_p
from calib.claims.verdicts import BERT_LARGE_S, RULES, decide, name_of
from calib.data import DATASETS, load_dogah2026, load_soft_labels
from calib.data.registry import data_folder
from calib.data.titles import model_title
from calib.pages import record as results
from conftest import ROOT, halves

CLAIMS = [row for row in rows() if row["kind"] == "claim"]
GAPS = {"cifar10h": (0.002, 0.003, 0.004), "chaosnli-s": (0.04, 0.05, 0.06), "chaosnli-m": (0.13, 0.12, 0.11)}
RATIOS = {"cifar10h": (1.2, 1.25, 1.3), "chaosnli-s": (2.0, 2.1, 2.2), "chaosnli-m": (3.5, 3.0, 2.5)}
KEYS = {  # short names of configurations
    "R18": ("cifar10h", "resnet18"),
    "R50": ("cifar10h", "resnet50"),
    "R101": ("cifar10h", "resnet101"),
    **{f"{m}-{d[-1].upper()}": (d, model) for d in ("chaosnli-s", "chaosnli-m") for m, model in zip("DBL", SCALES[d])},
}


def made(**changes):
    """Hand-made runs with narrow seeds; changes are {configuration: {name: value or three values}}."""
    found = []
    for name, (dataset, model) in KEYS.items():
        at = SCALES[dataset].index(model)
        gap = GAPS[dataset][at] + np.array([-1e-4, 0, 1e-4])
        values = {"gap": gap, "T_hard": 1.0, "T_oracle": RATIOS[dataset][at], "accuracy": 1 / 3, "brier_hard": 0.2}
        values |= {"iso_gap": gap + 0.001, "brier_oracle": 0.2 - gap} | changes.get(name.replace("-", "_"), {})
        for i, seed in enumerate((456, 42, 123)):
            run = {key: float(np.broadcast_to(value, 3)[i]) for key, value in values.items()}
            found.append({"dataset": dataset, "model": model, "seed": seed, **run})
    return configurations(found)


def spread(**deviations):
    """Three gaps around the mean of each configuration, with the given deviation, n in the denominator."""
    around = np.array([-1, 0, 1]) * np.sqrt(1.5)
    changes = {}
    for name, deviation in deviations.items():
        dataset, model = KEYS[name.replace("_", "-")]
        changes[name] = {"gap": GAPS[dataset][SCALES[dataset].index(model)] + around * deviation}
    return changes


UNEVEN = {
    "T_hard": (3.0, 1.0, 1.0)
}  # ratios a, b, c: their mean is (a + b + c) / 3, the ratio of means (3a + b + c) / 5
WIDE = {"R50": 0.002, "D_S": 0.002, "B_S": 0.002, "L_S": 0.02, "D_M": 0.003, "B_M": 0.003, "L_M": 0.003}
S, M = "supported: 0.040, 0.050, 0.060", "inconclusive: ordering reversed, accuracy called near chance (33-34%)"
CASES = [
    ("gap_positive", "yes", {}, SHOWN),
    (0, "yes", {"R18": {"gap": (-0.001, 0.002, 0.003)}}, NOT_SHOWN),
    (0, "yes", {"R18": {"iso_gap": (-0.001, 0.002, 0.003)}}, NOT_SHOWN),
    (0, "yes", {"R18": {"iso_gap": (-0.001, 0.0, 0.0)}}, CONTRADICTED),
    ("gap_range", "0.002 to 0.130", {}, SHOWN),
    (0, "0.002 to 0.130", {"R18": {"gap": (0.001, 0.002, 0.003)}, "D_M": {"gap": (0.12, 0.13, 0.14)}}, SHOWN),
    (0, "0.002 to 0.131", {}, CONTRADICTED),
    (0, "0.001 to 0.130", {}, CONTRADICTED),
    (0, "0.002 to 0.130", {"D_S": {"gap": 0.2}}, CONTRADICTED),
    ("language_gap", "0.085", {}, SHOWN),
    (0, "0.085", {"L_M": {"gap": 0.12}}, CONTRADICTED),
    ("vision_gap", "0.003", {}, SHOWN),
    (0, "0.003", {"R101": {"gap": 0.006}}, CONTRADICTED),
    ("language_over_vision", "about 28", {}, SHOWN),
    (0, "about 29", {}, CONTRADICTED),
    ("ratio_vision", "1.20 to 1.30", {}, SHOWN),
    (0, "1.20 to 1.30", {"R101": UNEVEN | {"T_oracle": (4.2, 1.3, 1.2)}}, NOT_SHOWN),
    (0, "1.20 to 1.30", {"R101": {"T_oracle": 1.4}}, CONTRADICTED),
    ("ratio_language", "about 2.0 to 3.5", {}, SHOWN),
    (0, "about 2.0 to 3.5", {"D_M": UNEVEN | {"T_oracle": (11.4, 3.5, 3.2)}}, NOT_SHOWN),
    (0, "about 2.0 to 3.5", {"D_S": {"T_oracle": 1.9}}, CONTRADICTED),
    ("largest_ratio", "3.50 (DistilBERT, ChaosNLI-M)", {}, SHOWN),
    (0, "3.50 (DistilBERT, ChaosNLI-M)", {"D_M": UNEVEN | {"T_oracle": (10.8, 3.5, 3.4)}}, NOT_SHOWN),
    (0, "3.51 (DistilBERT, ChaosNLI-M)", {}, CONTRADICTED),
    (0, "3.50 (DistilBERT, ChaosNLI-S)", {}, CONTRADICTED),
    ("vision_gap_over_brier", "roughly 2% (ResNet-101)", {}, SHOWN),
    (0, "roughly 2% (ResNet-101)", {"R101": {"brier_hard": (0.6, 0.06, 0.06)}}, NOT_SHOWN),
    (0, "roughly 3% (ResNet-101)", {}, CONTRADICTED),
    (0, "roughly 2% (ResNet-50)", {}, CONTRADICTED),
    ("bert_large_gap_over_brier", "about 30%", {}, SHOWN),
    (0, "about 30%", {"L_S": {"gap": (0.06, 0.03, 0.09), "brier_hard": (0.2, 0.1, 0.312)}}, NOT_SHOWN),
    (0, "about 30%", {"L_S": {"brier_hard": 0.25}}, CONTRADICTED),
    ("bert_large_degradation", "about 43%", {}, SHOWN),
    (0, "about 43%", {"L_S": {"brier_oracle": 0.2}}, CONTRADICTED),
    ("gap_over_std_8", "five of the seven configurations whose std", spread(**WIDE), SHOWN),
    (0, "five of the seven configurations whose std", spread(**WIDE | {"B_S": 0.0056}), NOT_SHOWN),
    (0, "five of the seven configurations whose std", spread(**WIDE | {"R18": 0.001}), CONTRADICTED),
    (0, "four of the seven configurations whose std", spread(**WIDE), CONTRADICTED),
    ("gap_over_std_18", "four language cases", spread(**WIDE | {"D_S": 0.004}), SHOWN),
    (0, "four language cases", spread(**WIDE | {"D_S": 0.0019, "B_S": 0.0025}), NOT_SHOWN),
    (0, "four language cases", spread(**WIDE | {"D_S": 0.001}), CONTRADICTED),
    ("h2_vision", "supported: grows with scale", {}, SHOWN),
    (0, "supported: grows with scale", {"R50": {"gap": (0.0019, 0.0030, 0.0041)}}, NOT_SHOWN),
    (0, "supported: grows with scale", {"R50": {"gap": 0.004}}, CONTRADICTED),
    ("h2_chaosnli_s", S, {}, SHOWN),
    (0, S, {"L_S": {"gap": (0.049, 0.060, 0.071)}}, NOT_SHOWN),
    (0, S, {"L_S": {"gap": 0.045}}, CONTRADICTED),
    (0, S, {"L_S": {"gap": 0.062}}, CONTRADICTED),
    ("h2_chaosnli_m", M, {}, SHOWN),
    (0, M.replace("33-34", "33-53"), {"D_M": {"accuracy": 0.52}}, NOT_SHOWN),
    (0, M.replace("33-34", "50-53"), {name: {"accuracy": 0.52} for name in ("D_M", "B_M", "L_M")}, CONTRADICTED),
    (0, M, {"D_M": {"accuracy": 0.52}}, CONTRADICTED),
    (0, M, {"D_M": {"gap": 0.115}}, CONTRADICTED),
    ("h3", "supported", {}, SHOWN),
    (0, "supported", {"D_S": {"gap": (0.003, 0.04, 0.05)}}, NOT_SHOWN),
    (0, "supported", {"R18": {"gap": 0.5}}, CONTRADICTED),
    ("bert_large_T_hard", "about 1.000", {}, SHOWN),
    (0, "about 1.000", {"L_S": {"T_hard": (1.0, 1.0, 1.1)}}, CONTRADICTED),
    ("isotonic_at_least", "at least as large as temperature gaps", {}, SHOWN),
    (0, "at least as large as temperature gaps", {"D_S": {"gap": 0.04, "iso_gap": (0.039, 0.05, 0.05)}}, NOT_SHOWN),
    (0, "at least as large as temperature gaps", {"D_S": {"gap": 0.04, "iso_gap": 0.039}}, CONTRADICTED),
]
for i, case in enumerate(CASES):  # 0: the claim of the case before
    CASES[i] = (case[0] or CASES[i - 1][0], *case[1:])


@pytest.mark.parametrize(("name", "printed", "changes", "verdict"), CASES)
def test_a_rule_decides_hand_made_runs(name, printed, changes, verdict):
    rule = RULES[name]
    assert rule.decide(made(**changes), printed, *rule.options).verdict == verdict


def test_every_rule_is_seen_to_be_met_and_contradicted():
    assert {case[0] for case in CASES if case[3] == SHOWN} == set(RULES)
    assert {case[0] for case in CASES if case[3] == CONTRADICTED} == set(RULES)


def test_every_claim_has_a_rule_of_its_own():
    assert all(row["ours"].startswith("claims/") for row in CLAIMS)
    assert [name_of(row) for row in CLAIMS] == list(RULES)


def test_every_rule_says_what_it_asks():
    assert all(rule.text.startswith("Shown if ") and rule.text.endswith(".") for rule in RULES.values())


def test_a_claim_without_a_rule_is_an_error():
    with pytest.raises(KeyError, match="something_else"):
        decide(plain(made()), [{"ours": "claims/something_else", "printed": "1"}])


def plain(runs):
    return [{k: v[i] for k, v in values.items()} for values in runs.values() for i in range(len(values["seed"]))]


def test_runs_are_ordered_by_scale_and_seed():
    runs = made()
    assert list(runs) == [(dataset, model) for dataset, models in SCALES.items() for model in models]
    assert all(values["seed"].tolist() == [42, 123, 456] for values in runs.values())
    assert all(dataset in DATASETS and model_title(model) != model for dataset, model in runs)


def test_a_missing_configuration_is_an_error():
    kept = [row for row in plain(made()) if row["model"] != "resnet50"]
    with pytest.raises(ValueError, match="expected results of ResNet-50, CIFAR-10H, found none"):
        configurations(kept)


def test_the_exact_p_of_a_trend():
    low, middle, high = [1, 2, 3], [4, 5, 6], [7, 8, 9]
    assert Fraction(trend_p([low, middle, high])).limit_denominator(2000) == Fraction(1, 1680)
    assert trend_p([high, middle, low]) == 1
    assert Fraction(trend_p([low, [4, 5, 7], [6, 8, 9]])).limit_denominator(2000) == Fraction(3, 1680)  # one pair off
    assert trend_p([[1, 1, 1]] * 3) == 1
    assert ordered_pairs([1, 2, 3], [2, 2, 4]) == 7 - 2 + 0  # 1 < all three, 2 < 4, 3 < 4; ties do not count


# --- the real files --------------------------------------------------------------------------------------------------

VERDICTS = dict.fromkeys(RULES, SHOWN) | dict.fromkeys(
    ["largest_ratio", "gap_over_std_18", "h2_vision", "h2_chaosnli_s", "isotonic_at_least"], NOT_SHOWN
)
VERDICTS["h2_chaosnli_m"] = CONTRADICTED


@pytest.fixture(scope="module")
def decided():
    return decide(load_dogah2026(), CLAIMS)


@pytest.fixture(scope="module")
def files():
    """The paper's files as they are: {(dataset, model): [per seed]}."""
    found = {}
    for path in sorted((data_folder() / "dogah2026").glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault((run["dataset"].lower().replace("cifar-10h", "cifar10h"), run["model"]), []).append(run)
    assert len(found) == 9 and all(len(runs) == 3 for runs in found.values())
    return found


@pytest.mark.data
def test_the_verdicts_on_the_papers_files(decided):
    assert {name: found.verdict for name, found in decided.items()} == VERDICTS


@pytest.mark.data
def test_the_figures_behind_the_verdicts_are_found_a_second_way(decided, files):
    gaps = {key: [run["gap"] for run in runs] for key, runs in files.items()}
    iso = {key: [run["iso_gap"] for run in runs] for key, runs in files.items()}
    nli, cifar = ({k: v for k, v in gaps.items() if (k[0] == "cifar10h") is flag} for flag in (False, True))
    temperatures = {key: [(run["T_star_soft"], run["T_star_hard"]) for run in runs] for key, runs in files.items()}
    of_means = {key: fmean(a for a, _ in v) / fmean(b for _, b in v) for key, v in temperatures.items()}
    mean_of = {key: fmean(a / b for a, b in v) for key, v in temperatures.items()}
    large = files[BERT_LARGE_S]

    def above(threshold, deviation, chosen):
        return sum(fmean(v) / deviation(v) > threshold for v in chosen.values() if round(deviation(v), 3) > 0)

    def pairs(dataset, small, larger, sign=1):
        a, b = gaps[dataset, small], gaps[dataset, larger]
        return sum(sign * (y - x) > 0 for x in a for y in b)

    d, b, c = "distilbert-base-uncased", "bert-base-uncased", "bert-large-uncased"
    expected = {
        ("gap_positive", "temperature"): sum(g > 0 for v in gaps.values() for g in v),
        ("gap_positive", "isotonic"): sum(g > 0 for v in iso.values() for g in v),
        ("gap_range", "low"): min(map(fmean, gaps.values())),
        ("gap_range", "high"): max(map(fmean, gaps.values())),
        ("gap_range", "run_high"): max(map(max, gaps.values())),
        ("language_gap", "mean"): fmean(g for v in nli.values() for g in v),
        ("vision_gap", "mean"): fmean(g for v in cifar.values() for g in v),
        ("language_over_vision", "ratio"): fmean(map(fmean, nli.values())) / fmean(map(fmean, cifar.values())),
        ("ratio_vision", "low"): min(of_means[key] for key in cifar),
        ("ratio_vision", "mean_high"): max(mean_of[key] for key in cifar),
        ("ratio_language", "low"): min(of_means[key] for key in nli),
        ("ratio_language", "mean_low"): min(mean_of[key] for key in nli),
        ("largest_ratio", "of_means"): max(of_means.values()),
        ("largest_ratio", "mean"): max(mean_of.values()),
        ("largest_ratio", "run"): max(a / b for v in temperatures.values() for a, b in v),
        ("vision_gap_over_brier", "of_means"): fmean(gaps["cifar10h", "resnet101"])
        / fmean(run["ts_hard_bs_soft"] for run in files["cifar10h", "resnet101"]),
        ("bert_large_gap_over_brier", "mean"): fmean(run["gap"] / run["ts_hard_bs_soft"] for run in large),
        ("bert_large_degradation", "mean"): fmean(run["gap"] / run["ts_soft_bs_soft"] for run in large),
        ("gap_over_std_8", "n"): above(8, pstdev, gaps),
        ("gap_over_std_8", "n_minus_1"): above(8, stdev, gaps),
        ("gap_over_std_18", "n"): above(18, pstdev, nli),
        ("gap_over_std_18", "n_minus_1"): above(18, stdev, nli),
        ("h2_vision", "first_step"): pairs("cifar10h", "resnet18", "resnet50"),
        ("h2_vision", "second_step"): pairs("cifar10h", "resnet50", "resnet101"),
        ("h2_chaosnli_s", "first_step"): pairs("chaosnli-s", d, b),
        ("h2_chaosnli_s", "second_step"): pairs("chaosnli-s", b, c),
        ("h2_chaosnli_m", "first_step"): pairs("chaosnli-m", d, b, sign=-1),
        ("h2_chaosnli_m", "second_step"): pairs("chaosnli-m", b, c, sign=-1),
        ("h3", "language_run_low"): min(map(min, nli.values())),
        ("h3", "vision_run_high"): max(map(max, cifar.values())),
        ("bert_large_T_hard", "mean"): fmean(run["T_star_hard"] for run in large),
        ("isotonic_at_least", "runs"): sum(i >= g for k in nli for i, g in zip(iso[k], gaps[k])),
    }
    assert {name for name, _ in expected} == set(VERDICTS)
    for (name, figure), value in expected.items():
        assert decided[name].figures[figure] == pytest.approx(value, rel=1e-12), (name, figure)


@pytest.mark.data
def test_the_p_of_a_trend_agrees_with_shuffling(files):
    rng, groups = (
        np.random.default_rng(5),
        [[run["gap"] for run in files["chaosnli-s", m]] for m in SCALES["chaosnli-s"]],
    )

    def rise(values):
        return sum(values[i] < values[j] for i in range(9) for j in range(9) if i // 3 < j // 3)

    values = np.concatenate(groups)
    share = fmean(rise(rng.permutation(values)) >= rise(values) for _ in range(10_000))
    assert share == pytest.approx(trend_p(groups), abs=4 * np.sqrt(0.021 / 10_000))


@pytest.mark.data
def test_the_paper_judges_as_many_examples_as_the_rule_says(files):
    for model in SCALES["chaosnli-m"]:
        for run in files["chaosnli-m", model]:
            right = run["test_accuracy"] * JUDGED_M
            assert right == pytest.approx(round(right), abs=1e-9)


# --- the chapter -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chapter():
    return results.load(ROOT / "_build/results.json")


@pytest.mark.site
@pytest.mark.data
def test_the_build_records_a_verdict_for_every_claim(chapter, decided):
    assert chapter["claims"] == {name: f"{found.verdict}: {found.evidence}" for name, found in decided.items()}
    for name, found in decided.items():
        for figure, value in found.figures.items():
            assert chapter["paper-audited"][f"{name}_{figure}"] == pytest.approx(value, rel=1e-12)


@pytest.mark.site
@pytest.mark.data
@pytest.mark.parametrize(("name", "letter"), [("snli", "s"), ("mnli_m", "m")])
def test_what_a_constant_answer_and_a_human_score(chapter, name, letter):
    lines = (data_folder() / f"chaosnli/chaosNLI_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    votes = [json.loads(line)["label_count"] for line in lines[len(lines) // 2 :]]
    majority = Counter(audit.majority(votes))
    found = chapter["paper-audited"]
    assert found[f"constant_{letter}"] == pytest.approx(majority.most_common(1)[0][1] / len(votes), abs=1e-12)
    assert found[f"human_{letter}"] == pytest.approx(fmean(max(row) / 100 for row in votes), abs=1e-12)
    two = fmean(sum(v * (v - 1) for v in row) / 9900 for row in votes)
    assert found[f"two_humans_{letter}"] == pytest.approx(two, abs=1e-12)


@pytest.mark.site
@pytest.mark.data
def test_the_gap_without_the_judged_examples_is_found_a_second_way(chapter):
    change = {"judged": [], "oracle": []}
    for run in (run for run in chapter if run.startswith("gap/chaosnli") and run.endswith("/paper")):
        _, dataset, model, seed, _ = run.split("/")
        validation, soft, _ = load_soft_labels(dataset, model, int(seed))
        oracle, judged = halves(soft)
        for way, left_out in (("judged", judged), ("oracle", oracle)):
            kept = [i for i, name in enumerate(validation.ids) if name not in set(left_out.ids)]
            logits, labels = validation.logits[kept], validation.labels[kept]
            T = audit.lowest_nll(lambda t, logits=logits, labels=labels: audit.nll(logits, labels, t))
            shares = audit.distributions(judged.votes)
            gap = audit.brier(audit.probabilities(judged.logits, T), shares) - chapter[run]["brier_oracle"]
            change[way].append(gap / chapter[run]["gap"] - 1)
    for way, values in change.items():
        assert len(values) == 8
        for end in (min, max):
            assert chapter["paper-audited"][f"gap_without_{way}_{end.__name__}"] == pytest.approx(end(values), abs=1e-6)


@pytest.mark.site
@pytest.mark.data
def test_what_the_ece_without_confidences_of_1_leaves_out_is_found_a_second_way(chapter):
    found, judged = chapter["paper-audited"], halves(load_soft_labels("cifar10h", "resnet110", 0).soft)[1]
    confidence, correct = audit.top_label(audit.probabilities(judged.logits), judged.labels)
    assert confidence.count(1.0) == found["ones_float64"] == 0
    single = np.array(confidence, dtype=np.float32)
    kept = [(float(value), right) for value, right in zip(single, correct) if value < 1]
    assert len(single) - len(kept) == found["ones_float32"] > 0
    without = (
        audit.ece(np.array([value for value, _ in kept]), [right for _, right in kept], 15) * len(kept) / len(single)
    )
    assert abs(without - audit.ece(single, correct, 15)) == pytest.approx(found["ece_change_float32"], abs=1e-9)


@pytest.mark.data
def test_a_claim_with_fewer_numbers_than_the_rule_compares_is_an_error():
    with pytest.raises(ValueError, match="printed: expected 2 numbers, found 1"):
        rules.range_of_means(configurations(load_dogah2026()), "0.002")


@pytest.mark.data
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:-1], "expected one result of .* for each of the seeds"),
        (lambda rows: [*rows, rows[0]], "expected one result of"),
        (lambda rows: [rows[0] | {"gap": float("nan")}, *rows[1:]], "expected finite numbers, got gap"),
    ],
    ids=["a seed is missing", "a seed is there twice", "a number is none"],
)
def test_results_that_cannot_decide_a_claim_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        decide(change(load_dogah2026()), CLAIMS)

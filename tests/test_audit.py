"""The numbers of the book, computed a second time by other means, agree with the first; and both with mpmath."""

import ast
import json
import math
import random
import sys
from functools import cache, partial

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
    results,
    softmax,
    top_label,
)
from calib.annotation import draw_votes
from calib.data import cluster_names, load_soft_labels, load_sst2
from calib.data.loaders import SUBSETS, load_arrays
from calib.data.registry import read
from calib.gap import halves, soft_label_gap
from calib.isotonic import IsotonicCalibration
from calib.parts import (
    ISOTONIC_PARTS,
    STEPS,
    gap_parts,
    isotonic_scores,
    part_intervals,
    parts_of,
    resampled_scores,
    temperature_scores,
)
from calib.predictions import hash_order
from calib.reliability import bin_edges, wilson_interval
from calib.resample import bootstrap_ece, bootstrap_indices, interval
from calib.temperature import BOUNDS
from conftest import ROOT

OF_TEMPERATURES, OF_METRICS = 1e-6, 1e-12  # relative; absolute, at a given temperature
PUBLISHED = results.load(ROOT / "book/published/results.json")
GAP_RUNS = [run for run in PUBLISHED if run.startswith("gap/")]
SIX = [[3, 1, 0], [2.5, 1, 0], [3, 0.5, 0], [1.5, 2, 0], [0.5, 0, 1.5], [2, 2.2, 0]], [0, 0, 1, 1, 2, 0]


def close(value):
    return pytest.approx(value, rel=0, abs=OF_METRICS, nan_ok=True)


def agree(recorded, audited):
    """Whether all numbers agree, counts exactly; what differs is shown where they do not."""
    temperatures, metrics = audit.largest(recorded, audited)
    assert temperatures < OF_TEMPERATURES and metrics < OF_METRICS, audit.differences(recorded, audited)
    assert all(recorded[name] == value for name, value in audited.items() if isinstance(value, int))


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
    own = {"calib.audit.methods", "calib.audit.chapters"}
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


# --- chapters --------------------------------------------------------------------------------------------------------


@cache
def chaosnli(dataset, model, seed):
    """Validation set, predictions and votes as they are in the files: the arguments of `audit_gap`."""
    votes_name, name = SUBSETS[dataset]
    found = []
    for part in ("dev", "test"):  # columns in the file: entailment, contradiction, neutral
        rows = [
            json.loads(line) for line in read(f"chaosnli/predictions/{name}_{part}_{model}_{seed}.json").splitlines()
        ]
        logits = [(row["logits"][0], row["logits"][2], row["logits"][1]) for row in rows]
        found.append(([row["uid"] for row in rows], logits, [[0, 2, 1][row["true"]] for row in rows]))
    items = [json.loads(line) for line in read(f"chaosnli/chaosNLI_{votes_name}.jsonl").splitlines()]
    counts = [[item["label_counter"].get(letter, 0) for letter in "enc"] for item in items]
    predicted = found[0][0] + found[1][0], found[0][1] + found[1][1]
    return {"validation": found[0], "predicted": predicted, "voted": ([item["uid"] for item in items], counts)}


def cifar10h():
    """The same for CIFAR-10H, with the original labels."""
    (logits, labels), (test_logits, test_labels) = load_arrays(read("cifar10/resnet110_c10_logits.p"))
    votes = np.frombuffer(read("cifar10h/cifar10h-counts.npy")[-10_000 * 10 * 8 :], dtype="<i8").reshape(10_000, 10)
    return {
        "validation": ([f"validation-{i}" for i in range(len(labels))], logits, labels[:, 0].tolist()),
        "predicted": (range(10_000), test_logits),
        "voted": (range(10_000), votes),
        "labels": test_labels[:, 0].tolist(),
    }


def sst2():
    rows = [line.split(",") for line in read("sst2/distilbert-sst2-validation-logits.csv").decode().splitlines()[1:]]
    return [row[0] for row in rows], [[float(row[2]), float(row[3])] for row in rows], [int(row[1]) for row in rows]


def test_the_six_examples_are_as_published():
    recorded = PUBLISHED["six-examples"]
    agree(recorded, audit.audit_six_examples(*SIX, at=recorded))
    fitted = fit_temperature(*SIX).temperature
    assert audit.audit_six_examples(*SIX)["temperature"] == pytest.approx(fitted, rel=OF_TEMPERATURES)
    assert recorded["temperature"] == pytest.approx(fitted, rel=1e-9)


@pytest.mark.data
def test_the_isolated_fit_is_as_published():
    recorded = PUBLISHED["sst2-isolated-fit"]
    audited = audit.audit_sst2(*sst2(), at=recorded)
    assert len(audited) == 1 + 3 * (1 + 2 * 6)
    agree(recorded, audited)


@pytest.mark.data
def test_the_isolated_fit_is_what_calib_computes():
    pools = dict(zip(("exploration", "calibration", "audit"), load_sst2().split(256, 256, 360, key="calib-sst2-v1")))
    calibration = pools["calibration"]
    fitted = fit_temperature(calibration.logits, calibration.labels, bounds=(0.05, 20)).temperature
    computed = {"temperature": fitted}
    for pool, data in pools.items():
        for state, t in (("t1", 1.0), ("fitted", fitted)):
            p = softmax(data.logits, t)
            confidence, correct = top_label(p, data.labels)
            computed[f"{pool}_correct"] = int(correct.sum())
            computed[f"{pool}_confidence_{state}"] = confidence.mean()
            computed[f"{pool}_nll_{state}"] = nll(data.logits, data.labels, t)
            computed[f"{pool}_brier_{state}"] = brier(p, data.labels)
            computed[f"{pool}_ece10_{state}"] = ece(confidence, correct, 10)
            computed[f"{pool}_at90_{state}"] = int((confidence >= 0.9).sum())
            computed[f"{pool}_wrong90_{state}"] = int((~correct[confidence >= 0.9]).sum())
    audited = audit.audit_sst2(*sst2(), at=computed)
    assert audited.keys() == computed.keys()
    agree(computed, audited)


@pytest.mark.data
def test_the_four_binnings_are_as_published_and_what_calib_computes():
    pool, *_ = load_sst2().split(256, 256, 360, key="calib-sst2-v1")
    confidence, correct = top_label(softmax(pool.logits), pool.labels)
    indices = bootstrap_indices(256)
    computed, bins = {}, [5, 10, 15, 20]
    for m, low, high in zip(bins, *interval(bootstrap_ece(confidence, correct, bins, indices))):
        table = reliability_table(confidence, correct, m)
        computed |= {f"ece_{m}": table.ece, f"ece_{m}_low": low, f"ece_{m}_high": high}
        computed |= {f"nonempty_{m}": int(table.filled.sum()), f"rightmost_{m}": int(table.counts[-1])}
    audited = audit.audit_binning(*sst2())
    assert audited.keys() == computed.keys()
    agree(computed, audited)
    agree(PUBLISHED["binning-sensitivity"], audited)
    agree(computed, audit.audit_binning(*sst2(), indices=indices))


@pytest.mark.data
@pytest.mark.parametrize("run", GAP_RUNS)
def test_a_gap_is_as_published_and_what_calib_computes(run):
    _, dataset, model, seed, protocol = run.split("/")
    clean = protocol == "clean"
    arrays = cifar10h() if dataset == "cifar10h" else chaosnli(dataset, model, seed)
    audited = audit.audit_gap(**arrays, clean=clean, at=PUBLISHED[run])
    assert audited.keys() <= PUBLISHED[run].keys()
    agree(PUBLISHED[run], audited)

    validation, soft, n_missing = load_soft_labels(dataset, model, int(seed))
    validation = validation.without(soft.ids) if clean else validation
    computed = soft_label_gap(validation, soft, overlap_declared=not clean) | {"n_missing": n_missing}
    agree(computed, audited)


CLUSTERS = {"cifar10h": str, "chaosnli-s": lambda uid: uid.partition("#")[0], "chaosnli-m": lambda uid: uid[:-1]}


def parts(validation, soft, clusters, overlap_declared):
    """All that the chapter records of the parts of one run, but for what is exploratory."""
    found = gap_parts(validation, soft, overlap_declared)
    scores = temperature_scores(soft, [found[f"T_{step}"] for step in STEPS])
    isotonic = isotonic_scores(validation, soft)
    found |= part_intervals(resampled_scores(scores, clusters))
    found |= {"iso_brier_population": isotonic[:, 1].mean()} | dict(
        zip(ISOTONIC_PARTS, parts_of(isotonic.mean(axis=0)))
    )
    return found | part_intervals(resampled_scores(isotonic, clusters), ISOTONIC_PARTS)


@pytest.mark.data
@pytest.mark.parametrize("run", GAP_RUNS)
def test_the_parts_of_a_gap_are_what_calib_computes(run):
    _, dataset, model, seed, protocol = run.split("/")
    clean = protocol == "clean"
    arrays = cifar10h() if dataset == "cifar10h" else chaosnli(dataset, model, seed)
    validation, soft, _ = load_soft_labels(dataset, model, int(seed))
    validation = validation.without(soft.ids) if clean else validation
    computed = parts(validation, soft, cluster_names(halves(soft)[1].ids), overlap_declared=not clean)
    audited = audit.audit_parts(**arrays, clean=clean, at=computed, cluster=CLUSTERS[dataset])
    assert audited.keys() == computed.keys() - {"T_hard", "T_oracle", "brier_hard", "brier_oracle"}
    agree(computed, audited)


@pytest.mark.data
@pytest.mark.record
@pytest.mark.parametrize("run", GAP_RUNS)
def test_the_parts_of_a_gap_are_as_published(run):
    _, dataset, model, seed, protocol = run.split("/")
    arrays = cifar10h() if dataset == "cifar10h" else chaosnli(dataset, model, seed)
    at = PUBLISHED[run]
    agree(at, audit.audit_parts(**arrays, clean=protocol == "clean", at=at, cluster=CLUSTERS[dataset]))


def test_the_parts_of_made_up_data_agree_with_missing_and_shared_examples(simulate):
    logits, labels = simulate(120, 3)
    votes = np.random.default_rng(2).multinomial(9, softmax(logits, 2))
    ids = [f"item-{i:03}" for i in range(120)]
    everything = Predictions(ids, logits, labels, votes)
    validation, soft = everything.select(slice(0, 60)), everything.select(slice(40, 110))
    soft = Predictions(soft.ids, soft.logits, soft.votes.argmax(axis=1), soft.votes)
    arrays = {"validation": (ids[:60], logits[:60], labels[:60]), "predicted": (ids[:110], logits[:110])}
    arrays["voted"] = (ids[40:], votes[40:])
    for clean in (False, True):
        hard = validation.without(soft.ids) if clean else validation
        computed = parts(hard, soft, [name[:-1] for name in soft.ids[35:].tolist()], overlap_declared=True)
        audited = audit.audit_parts(**arrays, clean=clean, at=computed, cluster=lambda name: name[:-1])
        agree(computed, audited)
        own = audit.audit_parts(**arrays, clean=clean, cluster=lambda name: name[:-1])
        assert own == pytest.approx(audited, rel=1e-5, abs=1e-6), "close at the temperatures fitted by the audit too"
        rows = np.random.default_rng(113).integers(0, 4, size=(2000, 4))
        same = audit.audit_parts(**arrays, clean=clean, at=computed, cluster=lambda name: name[:-1], indices=rows)
        assert same == audited, "four tens of items; the kept array gives the same"


def test_a_gap_of_made_up_data_agrees_with_missing_and_shared_examples(simulate):
    logits, labels = simulate(61, 3)
    votes = np.random.default_rng(2).multinomial(9, softmax(logits, 2))
    ids = [f"item-{i}" for i in range(61)]
    everything = Predictions(ids, logits, labels, votes)
    validation, soft = everything.select(slice(0, 45)), everything.select(slice(20, 58))
    soft = Predictions(soft.ids, soft.logits, soft.votes.argmax(axis=1), soft.votes)
    arrays = {
        "validation": (ids[:45], logits[:45], labels[:45]),
        "predicted": (ids[:58], logits[:58]),
        "voted": (ids[20:], votes[20:]),
    }
    for clean in (False, True):
        hard = validation.without(soft.ids) if clean else validation
        computed = soft_label_gap(hard, soft, overlap_declared=True) | {"n_missing": 3}
        audited = audit.audit_gap(**arrays, clean=clean, at=computed)
        agree(computed, audited)
        assert (audited["n"], audited["n_overlap"]) == (38, 0 if clean else 6)
        own = audit.audit_gap(**arrays, clean=clean)
        assert own == pytest.approx(audited, rel=1e-5, abs=1e-6), "close at the temperatures fitted by the audit too"


BUDGET_RUNS = [run.replace("gap/", "budget/").removesuffix("/paper") for run in GAP_RUNS if run.endswith("/paper")]
NUMBERS = [1, 2, 3, 5, 10, 20, 50, 100]


@pytest.mark.data
@pytest.mark.site
@pytest.mark.parametrize("run", BUDGET_RUNS)
def test_temperatures_from_drawn_votes_are_what_the_audit_computes(run):
    """The same draws, fitted and judged by other means; what is left is the error of a parabola on the grid of T."""
    _, dataset, model, seed = run.split("/")
    first, second = halves(load_soft_labels(dataset, model, int(seed))[1])
    order = np.argsort(-first.distributions, axis=1, kind="stable")  # as they are drawn: likely classes first
    logits, q = (np.take_along_axis(a, order, axis=1) for a in (first.logits.astype(np.float64), first.distributions))
    draws = draw_votes(q, NUMBERS, 200, np.random.default_rng(113).spawn(2)[1])
    drawn = ((m, *votes) for m, votes in zip(NUMBERS, draws))
    audited = audit.audit_budget(logits, (second.logits, second.distributions), drawn)
    assert len(audited) == 4 * len(NUMBERS)
    temperatures, scores = audit.largest(results.load(ROOT / "_build/results.json")[run], audited)
    assert temperatures < 2e-4 and scores < 1e-5


@pytest.mark.data
@pytest.mark.site
@pytest.mark.parametrize("run", ["budget/chaosnli-s/bert-base-uncased/1", "budget/chaosnli-m/roberta-base/0"])
def test_other_draws_of_votes_agree_within_their_error(run):
    """Votes drawn by another generator, one by one; each fit by golden section on the NLL of the labels themselves."""
    _, dataset, model, seed = run.split("/")
    items = chaosnli(dataset, model, int(seed))
    logits_of, draw, draws = dict(zip(*items["predicted"])), random.Random(5), 12
    rows = [(logits_of[name], votes) for name, votes in zip(*items["voted"]) if name in logits_of]
    rows = rows[: len(rows) // 2]
    logits, recorded = np.array([z for z, _ in rows]), results.load(ROOT / "_build/results.json")[run]
    for m in (1, 3, 20):
        fits = {"distribution": [], "majority": []}
        for _ in range(draws):
            drawn = [
                [labels.count(k) for k in range(3)] for labels in (draw.choices(range(3), v, k=m) for _, v in rows)
            ]
            top = [draw.choice([k for k in range(3) if row[k] == max(row)]) for row in drawn]
            fits["distribution"].append(refit(logits, np.array(drawn) / m, "nll"))
            fits["majority"].append(refit(logits, top, "nll"))
        for kind, values in fits.items():
            error = recorded[f"T_{kind}_{m}_sd"] * math.sqrt(1 / draws + 1 / 200)
            assert abs(np.mean(values) - recorded[f"T_{kind}_{m}"]) < 4 * error


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

"""The numbers of each chapter, computed a second time by other means, agree with the first and with the record."""

import json
import math
import random
from functools import cache

import numpy as np
import pytest
from test_audit import OF_METRICS, OF_TEMPERATURES, refit

from calib import (
    Predictions,
    audit,
    brier,
    ece,
    fit_temperature,
    nll,
    reliability_table,
    softmax,
    top_label,
)
from calib.data import SETS, load_soft_labels, load_sst2
from calib.data.cifar10 import CIFAR10_CLASSES
from calib.data.pairs import NLI_CLASSES as NLI
from calib.data.readers import load_arrays
from calib.data.registry import read
from calib.pages import record as results
from calib.resampling import bootstrap_ece, bootstrap_indices, interval
from calib.softlabels.annotation import draw_votes
from calib.softlabels.gap import soft_label_gap
from calib.softlabels.parts import (
    ISOTONIC_PARTS,
    STEPS,
    gap_parts,
    isotonic_scores,
    part_intervals,
    parts_of,
    resampled_scores,
    temperature_scores,
)
from calib.softlabels.study import Study
from conftest import ROOT, halves

PUBLISHED = results.load(ROOT / "book/published/results.json")
GAP_RUNS = [run for run in PUBLISHED if run.startswith("gap/")]
FOLDER = ROOT / "notebooks/ladder/predictions"
SIX = [[3, 1, 0], [2.5, 1, 0], [3, 0.5, 0], [1.5, 2, 0], [0.5, 0, 1.5], [2, 2.2, 0]], [0, 0, 1, 1, 2, 0]


def agree(recorded, audited):
    """Whether all numbers agree, counts exactly; what differs is shown where they do not."""
    temperatures, metrics = audit.largest(recorded, audited)
    assert temperatures < OF_TEMPERATURES and metrics < OF_METRICS, audit.differences(recorded, audited)
    assert all(recorded[name] == value for name, value in audited.items() if isinstance(value, int))


@cache
def chaosnli(dataset, model, seed):
    """Validation set, predictions and votes as they are in the files: the arguments of `audit_gap`."""
    votes_name, name = SETS[dataset].votes_file, SETS[dataset].source
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


def own(model, seed):
    """The same for a network trained here: logits as they are in the file, labels from the layout of the copies."""
    with np.load(FOLDER / f"cifar10h/{model}-{seed}.npz") as file:
        rows = {name: file["split"] == name for name in ("validation", "test")}
        ids, logits = ({name: file[field][at] for name, at in rows.items()} for field in ("ids", "logits"))
    names = [f"train/{name}/{i:04d}.jpg" for name in CIFAR10_CLASSES for i in range(5000)]
    order = audit.hash_split(names, "calib-cifar10-jpeg-v1", [50_000])[0]
    labels = [order[int(name.removeprefix("jpeg-"))] // 5000 for name in ids["validation"]]
    predicted = [int(name.removeprefix("test-")) for name in ids["test"]], logits["test"]
    return cifar10h() | {
        "validation": (ids["validation"].tolist(), logits["validation"], labels),
        "predicted": predicted,
    }


def arrays_of(dataset, model, seed):
    """Arguments of `audit_gap` for one run, and where `load_soft_labels` finds its logits."""
    if (FOLDER / dataset / f"{model}-{seed}.npz").exists():
        return own(model, seed), FOLDER
    return cifar10h() if dataset == "cifar10h" else chaosnli(dataset, model, seed), None


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
    arrays, folder = arrays_of(dataset, model, seed)
    audited = audit.audit_gap(**arrays, clean=clean, at=PUBLISHED[run])
    assert audited.keys() <= PUBLISHED[run].keys()
    agree(PUBLISHED[run], audited)

    validation, soft, n_missing = load_soft_labels(dataset, model, int(seed), folder)
    validation = validation.without(soft.ids) if clean else validation
    computed = soft_label_gap(Study(validation, soft, overlap_declared=not clean)) | {"n_missing": n_missing}
    agree(computed, audited)


CLUSTERS = {"cifar10h": str, "chaosnli-s": lambda uid: uid.partition("#")[0], "chaosnli-m": lambda uid: uid[:-1]}


def parts(validation, soft, clusters, overlap_declared):
    """All that the chapter records of the parts of one run, but for what is exploratory."""
    study = Study(validation, soft, overlap_declared=overlap_declared)
    found = gap_parts(study)
    scores = temperature_scores(study, [found[f"T_{step}"] for step in STEPS])
    isotonic = isotonic_scores(study)
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
    arrays, folder = arrays_of(dataset, model, seed)
    validation, soft, _ = load_soft_labels(dataset, model, int(seed), folder)
    validation = validation.without(soft.ids) if clean else validation
    computed = parts(validation, soft, SETS[dataset].clusters(halves(soft)[1].ids), overlap_declared=not clean)
    audited = audit.audit_parts(**arrays, clean=clean, at=computed, cluster=CLUSTERS[dataset])
    assert audited.keys() == computed.keys() - {"T_hard", "T_oracle", "brier_hard", "brier_oracle"}
    agree(computed, audited)


@pytest.mark.data
@pytest.mark.record
@pytest.mark.parametrize("run", GAP_RUNS)
def test_the_parts_of_a_gap_are_as_published(run):
    _, dataset, model, seed, protocol = run.split("/")
    arrays, _ = arrays_of(dataset, model, seed)
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
        computed = soft_label_gap(Study(hard, soft, overlap_declared=True)) | {"n_missing": 3}
        audited = audit.audit_gap(**arrays, clean=clean, at=computed)
        agree(computed, audited)
        assert (audited["n"], audited["n_overlap"]) == (38, 0 if clean else 6)
        own = audit.audit_gap(**arrays, clean=clean)
        assert own == pytest.approx(audited, rel=1e-5, abs=1e-6), "close at the temperatures fitted by the audit too"


BUDGET_RUNS = [run for run in PUBLISHED if run.startswith("budget/")]
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


def sets_of(dataset, protocol):
    """Examples of every model of a data set, as `gap_sets` gives them."""
    runs = [run.split("/") for run in GAP_RUNS]
    trained_elsewhere = [run for run in runs if run[1] == dataset and run[4] == protocol and run[2][:6] != "resnet"]
    keys = [(model, seed) for _, _, model, seed, _ in trained_elsewhere] or [("resnet110", "0")]
    return [audit.gap_sets(**arrays_of(dataset, *key)[0], clean=protocol == "clean") for key in keys]


SHARES = [("cifar10h", "paper"), *((f"chaosnli-{name}", protocol) for name in "sm" for protocol in ("paper", "clean"))]


@pytest.mark.data
@pytest.mark.site
@pytest.mark.parametrize(("dataset", "protocol"), SHARES)
def test_shares_of_labels_are_what_the_audit_computes(dataset, protocol):
    sets = sets_of(dataset, protocol)
    pairs = [(audit.six_fits(a, b, c), audit.six_fits(a, c, b)) for a, b, c in sets]
    recorded = results.load(ROOT / "_build/results.json")[f"three-parts/{dataset}/{protocol}"]
    assert max(audit.differences(recorded, audit.label_shares(pairs)).values()) < 1e-6


@pytest.mark.data
@pytest.mark.site
@pytest.mark.parametrize("dataset", ["chaosnli-s", "chaosnli-m"])
def test_intervals_of_cross_fitted_shares_are_what_the_audit_computes(dataset):
    """The same draws of clusters and of halves, fitted and judged by other means."""
    replicates = []
    for kept, first, second in sets_of(dataset, "paper"):
        ids = [*kept[0].tolist(), *first[0].tolist(), *second[0].tolist()]
        clusters = [CLUSTERS[dataset](str(name)) for name in ids]
        drawn = bootstrap_indices(len(set(clusters)))
        n = len(first[0]) + len(second[0])
        places = np.random.default_rng([113, 1]).permuted(np.tile(np.arange(n), (len(drawn), 1)), axis=1)
        replicates.append(audit.crossfitted_labels(kept, first, second, clusters, drawn, places))
    label, gap = np.mean(replicates, axis=0).T
    recorded = results.load(ROOT / "_build/results.json")[f"three-parts/{dataset}/paper"]
    for end, percent in (("low", 2.5), ("high", 97.5)):
        assert audit.percentile(label / gap, percent) == pytest.approx(
            recorded[f"share_label_crossfit_{end}"], abs=1e-4
        )


OWN_VOTES = [run for run in PUBLISHED if run.startswith("own-votes/")]


@pytest.mark.data
@pytest.mark.site
@pytest.mark.parametrize("run", OWN_VOTES)
def test_fits_to_the_votes_that_chose_the_examples_are_what_the_audit_computes(run):
    _, dataset, model, seed = run.split("/")
    kept, first, second = audit.gap_sets(**chaosnli(dataset, model, int(seed)))
    items = map(json.loads, read(f"chaosnli/chaosNLI_{SETS[dataset].votes_file}.jsonl").splitlines())
    original = {item["uid"]: [item["old_labels"].count(name) for name in NLI] for item in items}
    five = np.array([original[uid] for uid in first[0].tolist()])
    shares = five / five.sum(axis=1, keepdims=True)
    order = np.argsort(-shares, axis=1, kind="stable")  # as they are drawn: likely classes first
    rng = np.random.default_rng(113).spawn(2)[1]
    ((_, drawn),) = draw_votes(np.take_along_axis(shares, order, axis=1), [1], 200, rng)
    audited = audit.own_votes(kept, first, second, five, order[np.arange(len(order)), drawn])
    recorded = results.load(ROOT / "_build/results.json")[run]
    temperatures, shares = audit.largest(recorded, audited)
    assert len(audited) == 4 and temperatures < 2e-4 and shares < 5e-4

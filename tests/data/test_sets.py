"""Readers and data sets: nothing in a file is run, and every class is in its place."""

import io
import json
import pickle

import numpy as np
import pytest
from test_download import LFS_POINTER, WEB_PAGE

from calib import Predictions, nll
from calib.data import (
    SETS,
    DataUnavailable,
    load_cross_validated,
    load_dogah2026,
    load_soft_labels,
    load_sst2,
    registry,
)
from calib.data.cifar10 import CIFAR10_CLASSES
from calib.data.pairs import NLI_CLASSES
from calib.data.readers import class_permutation, load_arrays, load_json_lines, load_npy

# -- hostile or foreign pickles


class Hostile:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize(
    "content",
    [pickle.dumps(Hostile()), pickle.dumps(np.array([Hostile()])), pickle.dumps({1: len}), b"", b"\x80", WEB_PAGE],
)
def test_a_pickle_of_anything_but_arrays_is_refused_and_not_run(content, capsys):
    with pytest.raises(DataUnavailable, match="expected a pickle of NumPy arrays only"):
        load_arrays(content)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("protocol", [3, 4])
def test_a_pickle_of_arrays_is_read(protocol):
    arrays = ((np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[1], [0]])),)
    ((logits, labels),) = load_arrays(pickle.dumps(arrays, protocol=protocol))
    np.testing.assert_array_equal(logits, arrays[0][0])
    np.testing.assert_array_equal(labels, arrays[0][1])


def npy(header, data=b""):
    """An npy file with this header, version 1.0."""
    text = header.encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        WEB_PAGE,
        LFS_POINTER,
        npy("{'descr': '<i8', 'fortran_order': False, 'shape': (10000000000000,), }", b"short"),
        npy("{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }", b"short"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", pickle.dumps([Hostile()])),
        npy("{'descr': '<i8', 'shape': print('run'), }"),
        npy("(" * 60_000),
    ],
    ids=["empty", "page", "pointer", "huge", "short", "objects", "code", "parentheses"],
)
def test_an_npy_file_of_anything_but_numbers_is_refused_and_not_run(content, capsys):
    with pytest.raises(DataUnavailable, match="expected an array of numbers in npy format"):
        load_npy(content)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("line", [b"{", b"[" * 1_000_000, b"9" * 1_000_000, b"\xff", WEB_PAGE])
def test_a_line_that_is_no_json_or_expands_without_end_is_refused_with_its_number(line):
    with pytest.raises(DataUnavailable, match="expected JSON in line 2"):
        load_json_lines(b"{}\n" + line + b"\n{}")


# -- class order


def test_logits_in_another_class_order_are_permuted_by_name():
    order = class_permutation(["contradiction", "entailment", "neutral"], NLI_CLASSES)
    assert np.array([0.0, 5.0, 0.0])[order].tolist() == [5.0, 0.0, 0.0]
    assert class_permutation(["CONTRADICTION", "Entailment", "neutral"], NLI_CLASSES) == order


def test_a_class_order_is_never_guessed():
    with pytest.raises(ValueError, match="state the order"):
        class_permutation(["LABEL_0", "LABEL_1", "LABEL_2"], NLI_CLASSES)


@pytest.mark.data
@pytest.mark.parametrize("model", ["bert-base-uncased", "roberta-base"])
def test_chaosnli_columns_and_labels_are_in_the_order_of_the_votes(model):
    validation, soft, n_missing = load_soft_labels("chaosnli-s", model, 0)
    rows = {
        row["uid"]: row
        for row in map(json.loads, registry.read(f"chaosnli/predictions/SNLI_dev_{model}_0.json").splitlines())
    }
    uid = validation.ids[5]
    entailment, contradiction, neutral = rows[uid]["logits"]
    assert validation.logits[5].tolist() == [entailment, neutral, contradiction]
    assert NLI_CLASSES[validation.labels[5]] == ("entailment", "contradiction", "neutral")[rows[uid]["true"]]
    assert np.mean(validation.logits.argmax(axis=1) == validation.labels) == np.mean(
        [r["true"] == r["pred"] for r in rows.values()]
    )
    assert validation.class_names == soft.class_names == NLI_CLASSES
    assert n_missing == 0


# -- ChaosNLI, CIFAR-10H, the paper's files


@pytest.mark.data
@pytest.mark.parametrize(
    ("subset", "model", "n", "n_missing"),
    [("chaosnli-s", "bert-base-uncased", 1514, 0), ("chaosnli-m", "roberta-base", 1569, 30)],
)
def test_chaosnli_counts_what_has_no_prediction(subset, model, n, n_missing):
    validation, soft, missing = load_soft_labels(subset, model, 1)
    assert (len(soft), missing) == (n, n_missing)
    assert (soft.votes.sum(axis=1) == 100).all()
    np.testing.assert_array_equal(soft.labels, soft.votes.argmax(axis=1))
    assert 0 < np.isin(soft.ids, validation.ids).sum() < len(soft)


@pytest.mark.data
def test_chaosnli_keeps_the_order_of_the_file_of_votes():
    lines = map(json.loads, registry.read("chaosnli/chaosNLI_snli.jsonl").splitlines())
    assert load_soft_labels("chaosnli-s", "roberta-base", 2).soft.ids.tolist() == [line["uid"] for line in lines]


@pytest.mark.data
def test_cifar10h_rows_are_aligned_with_the_original_labels():
    validation, soft, n_missing = load_soft_labels("cifar10h", "resnet110", 0)
    assert (len(validation), len(soft), n_missing) == (5000, 10000, 0)
    assert soft.class_names == CIFAR10_CLASSES
    votes = soft.votes.sum(axis=1)
    assert (votes.min(), votes.max()) == (47, 63)
    assert np.mean(soft.votes.argmax(axis=1) == soft.labels) > 0.99
    assert nll(soft.logits, soft.distributions) < nll(np.roll(soft.logits, 1, axis=0), soft.distributions) / 5


@pytest.mark.data
def test_a_changed_label_order_of_cifar10_is_refused(monkeypatch):
    from calib.data.sets import cifar10h

    def shuffled(name):
        content = registry.read(name)
        if not name.endswith("original_labels.npy"):
            return content
        buffer = io.BytesIO()
        np.save(buffer, np.load(io.BytesIO(content))[::-1])
        return buffer.getvalue()

    monkeypatch.setattr(cifar10h, "read", shuffled)
    with pytest.raises(DataUnavailable, match="original order"):
        load_soft_labels("cifar10h", "resnet110", 0)


@pytest.mark.data
def test_the_cross_validated_predictor_is_that_of_the_same_images():
    second, first = load_cross_validated(), load_soft_labels("cifar10h", "resnet110", 0).soft
    assert second.ids.tolist() == first.ids.tolist()
    assert np.array_equal(second.votes, first.votes) and np.array_equal(second.labels, first.labels)
    assert np.mean(second.logits.argmax(axis=1) == second.labels) == pytest.approx(0.9294)
    assert np.exp(second.logits).sum(axis=1) == pytest.approx(np.ones(10_000), abs=1e-6)


@pytest.mark.data
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:-1], "expected shape"),
        (lambda p: p[::-1], "original order, but 1"),
        (lambda p: np.concatenate([p[1999::-1], p[2000:]]), "original order, but 7"),
        (lambda p: p * 2, "sum to 1"),
        (lambda p: np.where(p < 1e-6, 0, p), "above 0"),
    ],
    ids=["rows", "order", "order of a fifth", "sums", "zeros"],
)
def test_cross_validated_probabilities_that_cannot_be_right_are_refused(monkeypatch, change, message):
    from calib.data.sets import cifar10h

    def changed(name):
        content = registry.read(name)
        if not name.endswith("pyx.npy"):
            return content
        buffer = io.BytesIO()
        np.save(buffer, change(np.load(io.BytesIO(content))))
        return buffer.getvalue()

    monkeypatch.setattr(cifar10h, "read", changed)
    with pytest.raises(DataUnavailable, match=message):
        load_cross_validated()


def test_only_strings_name_clusters():
    with pytest.raises(ValueError, match="ids: expected strings, .*, got 2"):
        SETS["chaosnli-s"].clusters(["1", 2])


@pytest.mark.data
@pytest.mark.parametrize("subset", ["chaosnli-s", "chaosnli-m"])
def test_original_labels_are_those_of_the_validation_file(subset):
    labels = SETS[subset].original_labels()
    validation, soft, _ = load_soft_labels(subset, "roberta-base", 0)
    given = dict(zip(validation.ids.tolist(), validation.labels.tolist()))
    shared = given.keys() & labels.keys()
    assert len(shared) > 700 and all(given[uid] == labels[uid] for uid in shared)
    assert set(soft.ids.tolist()) <= labels.keys()


@pytest.mark.data
@pytest.mark.parametrize(("name", "clusters"), [("snli", 1235), ("mnli_m", 1359)])
def test_items_of_one_premise_are_in_one_cluster(name, clusters):
    items = [json.loads(line) for line in registry.read(f"chaosnli/chaosNLI_{name}.jsonl").splitlines()]
    dataset = {"snli": "chaosnli-s", "mnli_m": "chaosnli-m"}[name]
    names = SETS[dataset].clusters([item["uid"] for item in items])
    assert len(set(names)) == clusters
    by_premise = {}
    for cluster, item in zip(names, items):
        by_premise.setdefault(item["example"]["premise"], set()).add(cluster)
    assert all(len(found) == 1 for found in by_premise.values())
    assert len(by_premise) == (1268 if name == "snli" else clusters), "an image of SNLI can have several premises"


@pytest.mark.data
def test_the_papers_27_files_are_read_under_our_names():
    rows = load_dogah2026()
    assert len(rows) == 27
    assert {row["seed"] for row in rows} == {42, 123, 456}
    for row in rows:
        assert row["gap"] == pytest.approx(row["brier_hard"] - row["brier_oracle"], abs=1e-12)
        assert row["iso_gap"] == pytest.approx(row["iso_brier_hard"] - row["iso_brier_oracle"], abs=1e-12)


def test_unknown_names_are_errors_that_list_the_known_ones():
    with pytest.raises(ValueError, match="expected cifar10h, chaosnli-s, chaosnli-m, got"):
        load_soft_labels("imagenet", "resnet110", 0)
    with pytest.raises(ValueError, match="expected resnet110 and 0"):
        load_soft_labels("cifar10h", "resnet110", 1)
    with pytest.raises(ValueError, match="registered are .*SNLI_dev_roberta-base_2"):
        load_soft_labels("chaosnli-s", "roberta-base", 9)


@pytest.mark.data
def test_loaders_return_predictions():
    assert isinstance(load_sst2(), Predictions)
    assert all(isinstance(part, Predictions) for part in load_soft_labels("cifar10h", "resnet110", 0)[:2])


def test_a_file_without_an_address_says_how_to_get_it():
    assert all(entry.urls or entry.how for entry in registry.REGISTRY.values())

"""From sentence pairs to logits by uid, on a tiny model built on the spot and the real sentences of ChaosNLI."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from test_pairs import third
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)
from typer.testing import CliRunner

from calib.__main__ import app
from calib.data import DataUnavailable, data_folder, load_soft_labels, pairs, set_of
from calib.data.examples import load_examples, load_record
from calib.data.pairs import NLI_CLASSES
from calib.models import checkpoint, command, hub, nli, text

pytestmark = pytest.mark.usefixtures("one_thread")

NAMED = {0: "contradiction", 1: "entailment", 2: "neutral"}
NAMELESS = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
WORDS = "the a an is are was not no in on of to and it he she they i you we man woman people".split()
SIZE = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def write_tokenizer(folder, segments=(0, 1)):
    """A tokenizer of a few words and all letters, which marks the second sentence of a pair by its segment."""
    letters = [chr(i) for i in range(33, 127)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    first, second = segments
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"[CLS]:{first} $A:{first} [SEP]:{first}",
        pair=f"[CLS]:{first} $A:{first} [SEP]:{first} $B:{second} [SEP]:{second}",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return len(vocabulary)


def write_model(folder, kind="bert", names=NAMED):
    """A tiny classifier of pairs with random weights, large enough that sentences differ."""
    size = write_tokenizer(folder, (0, 0) if kind == "roberta" else (0, 1))
    common = {"vocab_size": size, "id2label": names, "initializer_range": 0.3, "max_position_embeddings": 140}
    torch.manual_seed(1)
    if kind == "bert":
        model = BertForSequenceClassification(BertConfig(**common, **SIZE))
    elif kind == "roberta":
        model = RobertaForSequenceClassification(RobertaConfig(**common, **SIZE, type_vocab_size=1, pad_token_id=0))
    else:
        model = DistilBertForSequenceClassification(
            DistilBertConfig(**common, n_layers=1, n_heads=2, dim=16, hidden_dim=16)
        )
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def options(bert):
    """A small run on real sentences: trained on ChaosNLI-S, judged on ChaosNLI-M."""
    return {
        "dataset": "chaosnli-m",
        "start": str(bert),
        "training_file": str(data_folder() / "chaosnli/chaosNLI_snli.jsonl"),
        "validation_file": str(data_folder() / "chaosnli/chaosNLI_mnli_m.jsonl"),
        "examples": 320,
        "batch_size": 16,
        "save_every": 5,
    }


@pytest.fixture(scope="module")
def finished(options, tmp_path_factory):
    out = tmp_path_factory.mktemp("nli") / "chaosnli-m" / "tiny-42.npz"
    return out, nli.train(out, **options)


@pytest.mark.parametrize(
    ("names", "stated", "expected"),
    [
        (NAMED, None, [5, 0, 0]),
        (dict(enumerate(NLI_CLASSES)), None, [0, 5, 0]),
        ({i: name.upper() for i, name in NAMED.items()}, None, [5, 0, 0]),
        (NAMELESS, ["contradiction", "entailment", "neutral"], [5, 0, 0]),
        (NAMELESS, ["entailment", "contradiction", "neutral"], [0, 0, 5]),
    ],
)
def test_classes_are_put_in_order_by_name(tmp_path, names, stated, expected):
    model, _ = text.load(write_model(tmp_path, names=names))
    order = text.class_order(model, NLI_CLASSES, stated)
    assert np.array([[0, 5, 0]])[:, order].tolist() == [expected]
    labels = np.array([0, 1, 2])
    columns = stated or [name.lower() for name in names.values()]
    assert [columns[i] for i in order[labels]] == list(NLI_CLASSES), "labels in the order that the model knows"


@pytest.mark.parametrize(
    ("names", "stated", "message"),
    [
        (NAMELESS, None, r"named \['LABEL_0', 'LABEL_1', 'LABEL_2'\], expected .* state the order .*--classes"),
        (NAMELESS, ["entailment", "neutral"], "expected one name for each of 3 outputs, got"),
        (NAMELESS, ["entailment", "neutral", "neutral"], "state the order"),
        ({0: "NEGATIVE", 1: "POSITIVE"}, None, "named .*NEGATIVE"),
        (NAMED, list(NLI_CLASSES), r"names its outputs, \['contradiction', .*; leave --classes out"),
    ],
)
def test_an_unknown_order_is_refused(tmp_path, names, stated, message):
    model, _ = text.load(write_model(tmp_path, names=names))
    with pytest.raises(ValueError, match=f"classes: .*{message}"):
        text.class_order(model, NLI_CLASSES, stated)


def test_classes_are_stated_with_or_without_blanks():
    assert command._names("contradiction, entailment,neutral") == ["contradiction", "entailment", "neutral"]
    assert command._names(None) is None


PAIR = [["the man is in"], ["she was not"]]


@pytest.mark.parametrize(
    ("kind", "segments", "expected"),
    [("bert", True, {0, 1}), ("bert", False, None), ("distilbert", True, None), ("roberta", True, {0})],
)
def test_a_model_gets_the_segments_that_it_takes(tmp_path, kind, segments, expected):
    model, tokenizer = text.load(write_model(tmp_path, kind))
    tokens = text.encode(model, tokenizer, *PAIR, segments=segments)
    assert {"input_ids", "attention_mask"} <= set(tokens)
    found = tokens.get("token_type_ids")
    assert found is None if expected is None else set(found.flatten().tolist()) == expected
    assert model(**tokens).logits.shape == (1, 3)


def test_segments_change_the_logits_of_bert(bert):
    model, tokenizer = text.load(bert)
    with_them, without = (text.logits_of(model, tokenizer, *PAIR, segments=segments) for segments in (True, False))
    assert np.abs(with_them - without).max() > 1e-3


def test_padding_and_batches_change_nothing(bert):
    model, tokenizer = text.load(bert)
    first, second = ["the man", "a woman is in it and he was not"], ["no", "people"]
    whole = text.logits_of(model, tokenizer, first, second, batch_size=2)
    for options in ({"batch_size": 1}, {"padding": "longest"}):
        np.testing.assert_allclose(text.logits_of(model, tokenizer, first, second, **options), whole, atol=1e-5)


def test_a_new_head_is_for_models_without_one(tmp_path, bert):
    BertModel.from_pretrained(bert).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    with pytest.raises(ValueError, match="got none for 2: classifier.bias; .* needs a new head"):
        text.load(tmp_path)
    heads = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        model, _ = text.load(tmp_path, new_head=NLI_CLASSES)
        heads.append(model.classifier.weight)
    assert model.config.num_labels == 3 and text.class_order(model, NLI_CLASSES).tolist() == [0, 1, 2]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])


def test_a_new_head_does_not_excuse_a_missing_body(tmp_path, bert):
    from safetensors.torch import load_file, save_file

    write_model(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({name: w for name, w in weights.items() if "query" not in name}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="expected all weights .*query"):
        text.load(tmp_path, new_head=NLI_CLASSES)


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def widen(folder):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_size": 32}))


@pytest.mark.parametrize(
    ("damage", "new_head", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), None, "found no tokenizer, looked for tokenizer.json or"),
        (cut, None, "expected a checkpoint that transformers can load: .*not fully covered"),
        (lambda folder: (folder / "config.json").write_text("{"), None, "expected a checkpoint that transformers"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), None, "expected a checkpoint that transformers"),
        (widen, None, "expected all weights .* in the sizes .* got none for .*: bert.embeddings"),
        (widen, NLI_CLASSES, "expected all weights .* in the sizes .* got none for .*: bert.embeddings"),
    ],
    ids=["no tokenizer", "truncated", "no config", "no JSON", "other sizes", "other sizes below a new head"],
)
def test_a_damaged_model_is_refused_in_one_line(tmp_path, damage, new_head, message):
    damage(write_model(tmp_path))
    with pytest.raises((DataUnavailable, ValueError), match=f"{tmp_path}: {message}") as refused:
        text.load(tmp_path, new_head=new_head)
    assert "\n" not in str(refused.value) and "calib-text" not in str(refused.value)


@pytest.mark.data
def test_a_loss_that_is_no_number_ends_the_run_and_is_not_kept(tmp_path, options):
    from safetensors.torch import load_file, save_file

    start = write_model(tmp_path / "start")
    weights = load_file(start / "model.safetensors")
    weights["classifier.bias"] *= float("nan")
    save_file(weights, start / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="loss: expected a finite number, got nan in epoch 1; what the checkpoint"):
        nli.train(tmp_path / "run.npz", **{**options, "start": str(start)})
    assert [file.name for file in tmp_path.iterdir()] == ["start"]


def test_an_id_that_occurs_twice_is_refused_before_the_training(tmp_path, options):
    path = tmp_path / "dev.jsonl"
    path.write_text(third(pairID="1n"))
    assert len(pairs.read_pairs(path)) == 2, "a training file may have it"
    with pytest.raises(DataUnavailable, match="dev.jsonl: expected each id once, found '1n' again"):
        nli.train(tmp_path / "run.npz", **{**options, "validation_file": path})
    assert [file.name for file in tmp_path.iterdir()] == ["dev.jsonl"]


def test_a_missing_hub_is_said_with_ways_on(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        DataUnavailable, match=r"^nobody/nothing: not found, .*copy the hub's cache .* or name a folder"
    ):
        hub.fetch_model("nobody/nothing")


@pytest.mark.data
def test_a_run_writes_logits_by_uid_and_no_text(finished, options):
    out, record = finished
    splits = load_examples(out)
    ids = set_of("chaosnli-m").pairs().ids
    assert splits["soft"].ids.tolist() == ids and splits["soft"].class_names == NLI_CLASSES
    with np.load(out) as file:
        assert sorted(file) == ["class_names", "ids", "logits", "split"]
    assert record == json.loads(out.with_suffix(".json").read_text())
    assert record["recipe"]["examples"] == 320 and record["recipe"]["segments"] is True
    assert len(record["recipe"]["start_sha256"]["model.safetensors"]) == 64
    assert record["data"]["chaosNLI_snli.jsonl"] == record["recipe"]["training_sha256"]
    assert len(record["epochs"]) == 1 and 0.5 < record["epochs"][0]["loss"] < 5


@pytest.mark.data
def test_own_predictions_feed_the_gap_study(finished):
    out, record = finished
    data = load_soft_labels("chaosnli-m", "tiny", 42, out.parents[1])
    published = load_soft_labels("chaosnli-m", "roberta-base", 0)
    assert len(data.soft) == 1599 and data.n_missing == 0
    votes = dict(zip(published.soft.ids.tolist(), published.soft.votes.tolist()))
    assert all(
        row.tolist() == votes[name] for name, row in zip(data.soft.ids.tolist(), data.soft.votes) if name in votes
    )
    assert np.array_equal(data.soft.labels, data.soft.votes.argmax(axis=1))
    accuracy = (data.validation.logits.argmax(axis=1) == data.validation.labels).mean()
    assert accuracy == pytest.approx(record["validation"]["accuracy"])


KILLED = """
import os, signal, sys, torch
torch.set_num_threads(1)
from calib.models import checkpoint, nli
save = checkpoint.save
def save_and_die(path, recipe, progress, parts):
    save(path, recipe, progress, parts)
    if progress["batch"] == 10:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save = save_and_die
nli.train(sys.argv[1], **eval(sys.argv[2]))
"""


@pytest.mark.data
def test_killed_within_the_epoch_and_resumed_is_straight_through(finished, options, tmp_path):
    straight, before = finished
    out = tmp_path / "run.npz"
    killed = subprocess.run([sys.executable, "-c", KILLED, out, repr(options)])
    assert killed.returncode == -signal.SIGKILL and not out.exists()
    progress = checkpoint.read(out.with_suffix(".pt"))["progress"]
    assert (progress["epoch"], progress["batch"]) == (0, 10)
    record = nli.train(out, **options)
    for name, part in load_examples(straight).items():
        np.testing.assert_array_equal(load_examples(out)[name].logits, part.logits)
    assert record["epochs"][0]["loss"] == before["epochs"][0]["loss"]


@pytest.mark.data
def test_predicts_from_the_checkpoint_and_from_the_start(finished, bert, tmp_path):
    out, _ = finished

    def predict(start, name, *options):
        arguments = ["predict", str(start), "-o", str(tmp_path / name), *options]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0 and "soft: n = 1599" in result.output
        return load_examples(tmp_path / name)["soft"].logits

    np.testing.assert_array_equal(predict(out.with_suffix(".pt"), "again.npz"), load_examples(out)["soft"].logits)
    assert (
        np.abs(predict(bert, "start.npz", "--dataset", "chaosnli-m") - load_examples(out)["soft"].logits).max() > 0.01
    ), "training did something"
    assert load_record(tmp_path / "start.json")["recipe"]["epochs"] == 0
    for choice in ({"segments": False}, {"classes": NLI_CLASSES}, {"revision": "main"}):
        with pytest.raises(ValueError, match="classes, segments, revision: expected none of them with a checkpoint"):
            nli.predict(out.with_suffix(".pt"), tmp_path / "other.npz", **choice)


@pytest.mark.data
def test_a_checkpoint_whose_start_has_changed_is_refused(tmp_path, options):
    start, out = write_model(tmp_path / "start"), tmp_path / "run.npz"
    nli.train(out, **{**options, "start": str(start), "examples": 16})
    config = json.loads((start / "config.json").read_text())
    names = dict(enumerate(NLI_CLASSES))
    (start / "config.json").write_text(json.dumps({**config, "id2label": names, "label2id": None}))
    with pytest.raises(checkpoint.CheckpointError, match=r"run.pt: its training began with other .* \(config.json\)"):
        nli.predict(out.with_suffix(".pt"), tmp_path / "again.npz")


@pytest.mark.data
def test_training_lowers_the_loss_in_the_order_of_the_checkpoint(tmp_path, options):
    path = tmp_path / "easy.jsonl"
    word = {"entailment": "man", "neutral": "woman", "contradiction": "people"}
    rows = [
        {"pairID": str(i), "gold_label": name, "sentence1": f"the {word[name]} is", "sentence2": word[name]}
        for i, name in enumerate(NLI_CLASSES * 40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    easy = {**options, "training_file": str(path), "validation_file": str(path), "epochs": 1}
    optimiser = torch.optim.AdamW
    try:
        torch.optim.AdamW = lambda parameters, lr, weight_decay: optimiser(parameters, lr=0.01)
        record = nli.train(tmp_path / "easy.npz", **{**easy, "epochs": 8})
    finally:
        torch.optim.AdamW = optimiser
    assert record["validation"]["accuracy"] > 0.95
    trained_on = [record[name]["n_trained_on"] for name in ("validation", "soft")]
    assert trained_on == [120, 0], "the record counts the judged pairs that the training saw"

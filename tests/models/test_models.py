"""The real model path of the SST-2 chapter, on tiny models made on the spot; one test alone reaches for the hub."""

import hashlib
import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
)

from calib import Predictions
from calib.data import DataUnavailable, load_sst2
from calib.data.sst2_table import parse
from calib.models import sst2, text

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a good bad film , . it is not ##s".split()
TOKENIZER_CONFIG = '{"model_max_length": 512, "do_lower_case": true}'  # byte for byte that of the pinned checkpoint
TEXTS = ["a good film .", "Bad films", "it is not a good film , it is bad .", "good", "unheard of"]
LABELS = {0: "NEGATIVE", 1: "POSITIVE"}
CLOSED = "http://127.0.0.1:9"


def write_checkpoint(folder, names=LABELS):
    """Write the four files of a tiny DistilBERT with random weights, large enough that sentences differ."""
    torch.manual_seed(1)
    config = DistilBertConfig(
        vocab_size=len(WORDS), n_layers=2, n_heads=2, dim=32, hidden_dim=64, initializer_range=0.5, id2label=names
    )
    DistilBertForSequenceClassification(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(TOKENIZER_CONFIG)
    return folder


def pinned(repository, folder):
    """Pin a repository to the files of a folder."""
    return replace(repository, files={name: digest(folder / name) for name in repository.files})


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def cached(cache, repository):
    """Folder of a repository's files in a hub cache."""
    return cache / f"{repository.kind}s--{repository.name.replace('/', '--')}" / "snapshots" / repository.revision


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture
def classifier(folder):
    return sst2.load_classifier(folder)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty hub cache, and a hub at a closed port of this machine."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", CLOSED)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", CLOSED + "/{repo_id}/resolve/{revision}/{filename}")
    return tmp_path / "hub"


@pytest.fixture
def warm_cache(cache, monkeypatch):
    """A hub cache with a tiny checkpoint and five sentences, pinned, and the hub switched off."""
    from pyarrow import parquet, table

    checkpoint = cached(cache, sst2.CHECKPOINT)
    checkpoint.mkdir(parents=True)
    write_checkpoint(checkpoint)
    sentences = cached(cache, sst2.SENTENCES)
    (sentences / "data").mkdir(parents=True)
    columns = {"idx": np.arange(5, dtype=np.int32), "sentence": TEXTS, "label": [1, 0, 0, 1, 0]}
    parquet.write_table(table(columns), sentences / next(iter(sst2.SENTENCES.files)))
    monkeypatch.setattr(sst2, "CHECKPOINT", pinned(sst2.CHECKPOINT, checkpoint))
    monkeypatch.setattr(sst2, "SENTENCES", pinned(sst2.SENTENCES, sentences))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return checkpoint


def test_loads_in_float32_for_evaluation(classifier):
    model, _ = classifier
    assert not model.training
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
    assert model.config._attn_implementation == "eager"


def test_loading_is_silent_and_leaves_the_settings(folder, capfd):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    sst2.load_classifier(folder)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_logits_are_float32_and_repeat(classifier):
    model, _ = classifier
    first = text.logits_of(*classifier, TEXTS)
    assert first.shape == (5, 2) and first.dtype == np.float32
    assert np.ptp(first, axis=0).min() > 0.01, "the sentences must differ for the other tests to mean something"
    np.testing.assert_array_equal(text.logits_of(*classifier, TEXTS), first)
    model.train()
    np.testing.assert_array_equal(text.logits_of(*classifier, TEXTS), first, "without dropout, whatever the mode")


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_batch_size_does_not_matter(classifier, batch_size):
    logits = text.logits_of(*classifier, TEXTS, batch_size=batch_size)
    np.testing.assert_allclose(logits, text.logits_of(*classifier, TEXTS), rtol=0, atol=1e-5)


def test_padding_does_not_matter(classifier):
    model, tokenizer = classifier
    bare = [model(tokenizer(text, return_tensors="pt")["input_ids"]).logits[0].tolist() for text in TEXTS]
    np.testing.assert_allclose(text.logits_of(*classifier, TEXTS), bare, rtol=0, atol=1e-5)


def test_long_sentences_are_cut_to_128_tokens(classifier):
    tokens = text.encode(*classifier, ["good " * 300, "bad"])
    assert tokens["input_ids"].shape == (2, 128)
    assert tokens["attention_mask"].sum(dim=1).tolist() == [128, 3]


@pytest.mark.parametrize("arguments", [([], 16, "texts"), (TEXTS, 0, "batch_size")])
def test_logits_of_refuses(classifier, arguments):
    texts, batch_size, name = arguments
    with pytest.raises(ValueError, match=f"{name}: expected"):
        text.logits_of(*classifier, texts, batch_size=batch_size)


def test_distilbert_gets_no_segments(classifier):
    assert "token_type_ids" in classifier[1](TEXTS), "the tokenizer of this checkpoint makes them"
    assert set(text.encode(*classifier, TEXTS)) == {"input_ids", "attention_mask"}


def test_bert_gets_segments_for_pairs(classifier):
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    model = BertForSequenceClassification(config).eval()
    tokens = text.encode(model, classifier[1], ["good film"], ["it is bad"])
    assert set(tokens) == {"input_ids", "attention_mask", "token_type_ids"}
    # [CLS] good film [SEP] it is bad [SEP]
    assert tokens["token_type_ids"][0].tolist() == [0] * 4 + [1] * 4 + [0] * 120
    with torch.inference_mode():
        segments = model(**tokens).logits
        without = model(tokens["input_ids"], tokens["attention_mask"]).logits
    assert not torch.equal(segments, without), "the segments reach the model"


@pytest.mark.parametrize("names", [{0: "LABEL_0", 1: "LABEL_1"}, {0: "POSITIVE", 1: "NEGATIVE"}])
def test_refuses_other_labels(tmp_path, names):
    with pytest.raises(ValueError, match=r"expected the labels \{0: 'NEGATIVE', 1: 'POSITIVE'\}.*" + names[0]):
        sst2.load_classifier(write_checkpoint(tmp_path, names))


def test_refuses_a_checkpoint_without_a_head(tmp_path, folder):
    from transformers import DistilBertModel

    write_checkpoint(tmp_path)
    DistilBertModel.from_pretrained(folder).save_pretrained(tmp_path / "body")
    (tmp_path / "body" / "model.safetensors").replace(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"expected all weights .* got none for 4: classifier\.bias"):
        sst2.load_classifier(tmp_path)


def write_bert(folder, vocabulary=WORDS, **sizes):
    """A tiny BERT whose configuration has other sizes."""
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(**{"vocab_size": len(WORDS), "id2label": LABELS, **small, **sizes})
    BertForSequenceClassification(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    return folder


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            {"vocabulary": [*WORDS, "more", "words"]},
            f"a tokenizer of at most {len(WORDS)} words, .*, got {len(WORDS) + 2}",
        ),
        ({"max_position_embeddings": 64}, r"takes 128 tokens, .*\(max_position_embeddings 64, type_vocab_size 2\)"),
    ],
)
def test_a_tokenizer_that_is_too_large_for_the_model_is_refused_with_both_sizes(tmp_path, made, message):
    with pytest.raises(ValueError, match=f"^{tmp_path}: expected .*{message}"):
        text.load(write_bert(tmp_path, **made))


def test_a_model_with_one_type_of_segments_runs_on_pairs(tmp_path):
    loaded = text.load(write_bert(tmp_path, type_vocab_size=1))
    assert text.logits_of(*loaded, TEXTS, TEXTS).shape == (5, 2)


def test_a_model_without_torchs_attention_runs_with_its_own(tmp_path):
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    write_bert(tmp_path)
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config = DebertaV2Config(vocab_size=len(WORDS), id2label=LABELS, type_vocab_size=2, **small)
    DebertaV2ForSequenceClassification(config).save_pretrained(tmp_path)
    loaded = text.load(tmp_path)
    assert loaded[0].config._attn_implementation == "eager"
    assert text.logits_of(*loaded, TEXTS).shape == (5, 2)


@pytest.mark.parametrize("names", [{0: 0, 1: 1}, {1: "negative", 2: "positive"}])
def test_classes_without_names_are_refused_in_words(tmp_path, names):
    write_bert(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "id2label": names}))
    model, _ = text.load(tmp_path)
    with pytest.raises(ValueError, match="^classes: "):
        text.class_order(model, ("negative", "positive"))


def test_refuses_a_pickle_of_weights(tmp_path):
    write_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(DataUnavailable, match=r"^model.safetensors: not found, looked for .*model.safetensors"):
        sst2.load_classifier(tmp_path)


def test_reads_nothing_else_in_the_folder(tmp_path, folder):
    write_checkpoint(tmp_path)
    for name in ("tokenizer.json", "special_tokens_map.json", "added_tokens.json", "adapter_config.json"):
        (tmp_path / name).write_text("not even JSON")
    logits = text.logits_of(*sst2.load_classifier(tmp_path), TEXTS)
    np.testing.assert_array_equal(logits, text.logits_of(*sst2.load_classifier(folder), TEXTS))


@pytest.mark.parametrize("name", sst2.CHECKPOINT.files)
def test_refuses_another_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(sst2, "CHECKPOINT", pinned(sst2.CHECKPOINT, write_checkpoint(tmp_path)))
    assert sst2.fetch_checkpoint(tmp_path) == tmp_path
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
    with pytest.raises(DataUnavailable) as caught:
        sst2.fetch_checkpoint(tmp_path)
    assert str(caught.value).startswith(f"{name}: not the pinned file")
    assert f"expected SHA-256 {sst2.CHECKPOINT.files[name]}, found {digest(tmp_path / name)}" in str(caught.value)


@pytest.mark.parametrize(
    "fetch, repository", [(sst2.fetch_checkpoint, sst2.CHECKPOINT), (sst2.fetch_sentences, sst2.SENTENCES)]
)
def test_an_unreachable_hub_is_said_within_seconds(cache, fetch, repository):
    start = time.perf_counter()
    with pytest.raises(DataUnavailable) as caught:
        fetch()
    assert time.perf_counter() - start < 5
    for part in (next(iter(repository.files)), repository.name, repository.revision, str(cache), CLOSED):
        assert part in str(caught.value)


def test_an_unreachable_hub_with_a_folder(cache, tmp_path):
    with pytest.raises(DataUnavailable, match=r"^config.json: not found, looked for .* in .*/mine and at"):
        sst2.fetch_checkpoint(tmp_path / "mine")


def test_offline_without_the_files(cache, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataUnavailable, match="offline mode is enabled"):
        sst2.fetch_checkpoint()


def test_predicts_offline_from_a_warm_cache(warm_cache, tmp_path, capfd):
    out = tmp_path / "new" / "logits.csv"
    predictions = sst2.predict(out, batch_size=2)
    assert capfd.readouterr() == ("", ""), "no terminal, no progress bar"
    assert isinstance(predictions, Predictions) and predictions.class_names == ("negative", "positive")
    assert predictions.ids.tolist() == [0, 1, 2, 3, 4] and predictions.labels.tolist() == [1, 0, 0, 1, 0]
    ids, labels, logits = parse(out.read_bytes())
    np.testing.assert_array_equal(ids, predictions.ids)
    np.testing.assert_array_equal(labels, predictions.labels)
    np.testing.assert_array_equal(logits, predictions.logits)
    first = out.read_bytes().split(b"\n")[1].decode()
    assert first == f"0,1,{float(logits[0, 0])!r},{float(logits[0, 1])!r}" and b"\r" not in out.read_bytes()
    assert [path.name for path in out.parent.iterdir()] == ["logits.csv"]


def test_smoke_run_takes_the_first_rows(warm_cache):
    whole, smoke = sst2.predict(), sst2.predict(limit=2)
    assert smoke.ids.tolist() == [0, 1]
    np.testing.assert_allclose(smoke.logits, whole.logits[:2], rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="limit: expected a whole number of at least 1, got 0"):
        sst2.predict(limit=0)


def test_a_failed_run_leaves_the_old_file(warm_cache, tmp_path):
    out = tmp_path / "logits.csv"
    out.write_text("old")
    config = json.loads((warm_cache / "config.json").read_text())
    (warm_cache / "config.json").write_text(json.dumps({**config, "n_layers": 1}))
    with pytest.raises(DataUnavailable, match=r"^config.json: not the pinned file"):
        sst2.predict(out)
    assert out.read_text() == "old" and not list(tmp_path.glob("*.part"))


def test_import_is_light():
    code = "import sys, calib.models.sst2; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "calib.models.sst2" in loaded
    assert not {"torch", "transformers", "pyarrow", "huggingface_hub", "tqdm"} & set(loaded)


@pytest.mark.network
def test_real_logits_are_the_published_ones():
    try:
        predictions = sst2.predict()
    except DataUnavailable as error:
        if "not the pinned file" in str(error):
            raise
        pytest.skip("model hub not reachable")
    published = load_sst2()
    np.testing.assert_array_equal(predictions.ids, published.ids)
    np.testing.assert_array_equal(predictions.labels, published.labels)
    assert np.abs(predictions.logits - published.logits).max() < 1e-4

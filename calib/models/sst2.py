"""Run the pinned DistilBERT on the SST-2 validation set: logits per sentence, as in the published file.

Both come from the Hugging Face hub, each file at a fixed revision and with a known SHA-256. The public logits were
made in float32 on a CPU, with eager attention, every sentence padded to 128 tokens; so are these.
"""

from pathlib import Path

import numpy as np

from calib.checks import as_count
from calib.data.sst2_table import CLASSES, dump
from calib.data.whole import write_whole
from calib.models.hub import HubRepository, fetch
from calib.models.text import load, logits_of
from calib.predictions import Predictions

LABEL_NAMES = {0: "NEGATIVE", 1: "POSITIVE"}
CHECKPOINT = HubRepository(
    name="distilbert/distilbert-base-uncased-finetuned-sst-2-english",
    revision="714eb0fa89d2f80546fda750413ed43d93601a13",
    kind="model",
    files={
        "config.json": "582122c8f414793d131e10022ce9ba04e3811a9da6389137ee2f18665b4f4d15",
        "model.safetensors": "7c3919835e442510166d267fe7cbe847e0c51cd26d9ba07b89a57b952b49b8aa",
        "tokenizer_config.json": "5ab9097b4149371c5fd52b2d6e26cb6f9c07c0d19fcfdda895b1adad6b57c3e0",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
)
SENTENCES = HubRepository(
    name="stanfordnlp/sst2",
    revision="8d51e7e4887a4caaa95b3fbebbf53c0490b58bbb",
    kind="dataset",
    files={
        "data/validation-00000-of-00001.parquet": "fb00fe008f6828f86ba2beda8415a4cf5da0c884f21c5f238c87131b5aa19529",
    },
)


def predict(out=None, limit=None, batch_size=16):
    """Run the pinned checkpoint on the SST-2 validation set, with a progress bar where standard error is a terminal.

    Parameters
    ----------
    out : path, optional
        Where to write the per-example file ``idx,label,logit_0,logit_1``, whole or not at all.
    limit : int, optional
        Run the first sentences only: with 8, a test that everything is in place.
    batch_size : int
        Sentences at a time. The logits depend on it in the last digits only.

    Returns
    -------
    Predictions
        With `idx` as ids, float32 logits (n, 2) and labels.

    Raises
    ------
    DataUnavailable
        If the checkpoint or the sentences cannot be had, or are not the pinned ones.
    """
    limit = None if limit is None else as_count(limit, "limit")
    ids, sentences, labels = fetch_sentences()
    model, tokenizer = load_classifier(fetch_checkpoint())
    logits = logits_of(model, tokenizer, sentences[:limit], batch_size=batch_size, progress=True)
    predictions = Predictions(ids[:limit], logits, labels[:limit], class_names=CLASSES)
    if out is not None:
        save(predictions, out)
    return predictions


def save(predictions, out):
    """Write a per-example file, whole or not at all."""
    content = dump(predictions.ids, predictions.labels, predictions.logits)
    write_whole({Path(out): lambda file: file.write(content)})


def fetch_checkpoint(folder=None):
    """Make sure that the four files of the checkpoint are there and are the pinned ones.

    Parameters
    ----------
    folder : path, optional
        Where they lie, or shall lie; by default the hub's cache. What is there is checked and used without a network.

    Returns
    -------
    Path
        The folder that holds them; it may hold other files, which `load_classifier` leaves alone.

    Raises
    ------
    DataUnavailable
        If a file is missing and the hub cannot be reached, or if it is not the pinned one.
    """
    paths = [fetch(CHECKPOINT, name, folder) for name in CHECKPOINT.files]
    return paths[0].parent


def fetch_sentences():
    """Read the SST-2 validation set from the hub's cache, or else from the hub.

    Returns
    -------
    ids : ndarray int64 (872,)
        The column `idx`.
    sentences : list of str
    labels : ndarray int64 (872,)
        0 negative, 1 positive.

    Raises
    ------
    DataUnavailable
        As in `fetch_checkpoint`.
    """
    from pyarrow.parquet import read_table

    (name,) = SENTENCES.files
    table = read_table(fetch(SENTENCES, name), columns=["idx", "sentence", "label"]).to_pydict()
    return np.array(table["idx"], dtype=np.int64), table["sentence"], np.array(table["label"], dtype=np.int64)


def load_classifier(folder):
    """Load the checkpoint from its four files in a folder, in float32 and with eager attention.

    Parameters
    ----------
    folder : path

    Returns
    -------
    model, tokenizer
        As `calib.models.text.load` returns them.

    Raises
    ------
    DataUnavailable
        If one of the four files is missing, such as ``model.safetensors`` beside a ``pytorch_model.bin``.
    ValueError
        If the labels are not 0 NEGATIVE, 1 POSITIVE, or weights of the model are not in the file.
    """
    model, tokenizer = load(folder, CHECKPOINT.files, attention="eager")
    if model.config.id2label != LABEL_NAMES:
        raise ValueError(f"{folder}: expected the labels {LABEL_NAMES} in config.json, got {model.config.id2label}")
    return model, tokenizer

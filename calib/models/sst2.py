"""Run the pinned DistilBERT on the SST-2 validation set: logits per sentence, as in the published file.

Both come from the Hugging Face hub, each file at a fixed revision and with a known SHA-256. The published logits were
made in float32 on a CPU, with eager attention, every sentence padded to 128 tokens; so are these.
"""

import hashlib
import inspect
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calib.checks import as_count
from calib.data import DataUnavailable
from calib.data.loaders import SST2_CLASSES
from calib.data.sst2 import dump
from calib.predictions import Predictions

MAX_TOKENS = 128
LABEL_NAMES = {0: "NEGATIVE", 1: "POSITIVE"}
TIMEOUT = 5  # seconds for the first answer of the hub


@dataclass(frozen=True)
class HubRepository:
    """Files of one repository on the hub, pinned.

    Attributes
    ----------
    name : str
    revision : str
        Hash of a commit.
    kind : {"model", "dataset"}
    files : dict
        SHA-256 of each file that is used.
    """

    name: str
    revision: str
    kind: str
    files: dict[str, str]


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
    logits = logits_of(model, tokenizer, sentences[:limit], batch_size, progress=True)
    predictions = Predictions(ids[:limit], logits, labels[:limit], class_names=SST2_CLASSES)
    if out is not None:
        save(predictions, out)
    return predictions


def save(predictions, out):
    """Write a per-example file, whole or not at all."""
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = out.with_name(out.name + ".part")
    scratch.write_bytes(dump(predictions.ids, predictions.labels, predictions.logits))
    scratch.replace(out)


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
    paths = [_fetch(CHECKPOINT, name, folder) for name in CHECKPOINT.files]
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
    table = read_table(_fetch(SENTENCES, name), columns=["idx", "sentence", "label"]).to_pydict()
    return np.array(table["idx"], dtype=np.int64), table["sentence"], np.array(table["label"], dtype=np.int64)


def load_classifier(folder):
    """Load the checkpoint from its four files in a folder; nothing else in the folder is read, no code, no pickle.

    Parameters
    ----------
    folder : path

    Returns
    -------
    model : transformers.PreTrainedModel
        In float32, on the CPU, in evaluation mode.
    tokenizer : transformers.PreTrainedTokenizerBase

    Raises
    ------
    DataUnavailable
        If one of the four files is missing, such as ``model.safetensors`` beside a ``pytorch_model.bin``.
    ValueError
        If the labels are not 0 NEGATIVE, 1 POSITIVE, or weights of the model are not in the file.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    here_only = {"local_files_only": True, "trust_remote_code": False}
    with tempfile.TemporaryDirectory(prefix="calib-sst2-") as private, _quiet():
        _link_files(Path(folder), Path(private))
        tokenizer = AutoTokenizer.from_pretrained(private, **here_only)
        model, report = AutoModelForSequenceClassification.from_pretrained(
            private,
            dtype=torch.float32,
            attn_implementation="eager",
            use_safetensors=True,
            output_loading_info=True,
            **here_only,
        )
    if model.config.id2label != LABEL_NAMES:
        raise ValueError(f"{folder}: expected the labels {LABEL_NAMES} in config.json, got {model.config.id2label}")
    missing = sorted(report["missing_keys"])
    if missing:
        raise ValueError(
            f"{folder}: expected all weights in model.safetensors, got none for {len(missing)}: {missing[0]}"
        )
    return model.eval(), tokenizer


def logits_of(model, tokenizer, sentences, batch_size=16, progress=False):
    """Logits of a classifier, sentence by sentence.

    Parameters
    ----------
    model, tokenizer
        As `load_classifier` returns them.
    sentences : list of str, length n
    batch_size : int
    progress : bool
        Show a progress bar where standard error is a terminal.

    Returns
    -------
    ndarray float32 (n, K)
    """
    import torch
    from tqdm import tqdm

    batch_size = as_count(batch_size, "batch_size")
    if not len(sentences):
        raise ValueError("sentences: expected at least one, got none")
    batches = [sentences[start : start + batch_size] for start in range(0, len(sentences), batch_size)]
    with torch.inference_mode():
        bar = tqdm(batches, desc="sst2", unit="batch", disable=None if progress else True)
        return np.concatenate([model(**encode(model, tokenizer, batch)).logits.numpy() for batch in bar])


def encode(model, tokenizer, *texts):
    """Turn texts into the tensors that a model takes, padded to 128 tokens.

    A tokenizer can make more than its model has a use for: the one of this checkpoint makes `token_type_ids`, which
    DistilBERT does not know and BERT needs.

    Parameters
    ----------
    model, tokenizer
    *texts : list of str
        One list of n sentences, or two for n pairs.

    Returns
    -------
    dict
        Integer tensors (n, 128) by argument name.
    """
    tokens = tokenizer(*texts, padding="max_length", truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
    taken = inspect.signature(model.forward).parameters
    return {name: tensor for name, tensor in tokens.items() if name in taken}


def _fetch(repository, name, folder=None):
    """Path of one pinned file, checked: as it lies there, or else from the hub."""
    path = _find(repository, name, folder) or _download(repository, name, folder)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    expected = repository.files[name]
    if found != expected:
        raise DataUnavailable(
            f"{name}: not the pinned file of {repository.name}: expected SHA-256 {expected}, found {found} in {path}; "
            "delete it and run again"
        )
    return path


def _find(repository, name, folder):
    """Path of a file that is there already, or None."""
    from huggingface_hub import try_to_load_from_cache

    if folder is not None:
        path = Path(folder) / name
        return path if path.is_file() else None
    path = try_to_load_from_cache(repository.name, name, revision=repository.revision, repo_type=repository.kind)
    return Path(path) if isinstance(path, str) else None


def _download(repository, name, folder):
    """Download one file; one short request comes first, because `hf_hub_download` would retry for minutes."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HTTPError  # of httpx or httpx2, whichever the library uses

    pin = {"revision": repository.revision, "repo_type": repository.kind}
    url = hf_hub_url(repository.name, name, **pin)
    try:
        get_hf_file_metadata(url, token=False, timeout=TIMEOUT)
        return Path(hf_hub_download(repository.name, name, **pin, token=False, local_dir=folder))
    except (OSError, HTTPError, RuntimeError) as error:  # RuntimeError: from the transfer of large files
        raise DataUnavailable(
            f"{name}: not found, looked for {repository.name} at revision {repository.revision} "
            f"in {folder or constants.HF_HUB_CACHE} and at {url} ({' '.join(str(error).split())}); "
            "run it where the hub can be reached, or copy the hub's cache (HF_HOME) from such a machine"
        ) from error


def _link_files(folder, private):
    """Link the files of the checkpoint, and only those, into a private folder."""
    for name in CHECKPOINT.files:
        path = folder.resolve() / name
        if not path.is_file():
            raise DataUnavailable(f"{name}: not found, looked for {path}; get it with `fetch_checkpoint`")
        (private / name).symlink_to(path)


@contextmanager
def _quiet():
    """Keep transformers from logging and from drawing progress bars."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()

"""Classifiers of sentences and of pairs: loaded from a folder, their classes in a known order, run in float32."""

import inspect
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from calib.checks import as_count
from calib.data.readers import class_permutation
from calib.data.registry import DataUnavailable

MAX_TOKENS = 128
NEEDED = ("config.json", "model.safetensors")
FILES = (
    *NEEDED,
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
)
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json")


def load(folder, files=None, attention="sdpa", new_head=None):
    """Load a classifier from its files in a folder; nothing else in the folder is read, no code, no pickle.

    Parameters
    ----------
    folder : path
    files : iterable of str, optional
        Names of its files; by default those of `FILES` that are there.
    attention : {"sdpa", "eager"}
        A model that has no "sdpa" is run with the attention of its own code, "eager".
    new_head : sequence of str, optional
        Names of classes for which the model gets a new last layer, drawn from torch's generator.

    Returns
    -------
    model : transformers.PreTrainedModel
        In float32, on the CPU, in evaluation mode.
    tokenizer : transformers.PreTrainedTokenizerBase

    Raises
    ------
    DataUnavailable
        If one of the files is missing, such as ``model.safetensors`` beside a ``pytorch_model.bin``.
    ValueError
        If the files cannot be read, or weights of the model are not in them.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = Path(folder)
    files = files or [name for name in FILES if name in NEEDED or (folder / name).is_file()]
    here_only = {"local_files_only": True, "trust_remote_code": False}
    head = {"id2label": dict(enumerate(new_head)), "label2id": None} if new_head else {}
    with tempfile.TemporaryDirectory(prefix="calib-text-") as private, _quiet():
        _link_files(folder, Path(private), files)
        try:
            tokenizer = AutoTokenizer.from_pretrained(private, **here_only)
            model, report = AutoModelForSequenceClassification.from_pretrained(
                private,
                dtype=torch.float32,
                attn_implementation=attention if _has_sdpa(private) else "eager",
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are in the report
                **head,
                **here_only,
            )
        except (OSError, ValueError, SafetensorError) as error:
            reason = " ".join(str(error).replace(private, str(folder)).split())
            raise ValueError(f"{folder}: expected a checkpoint that transformers can load: {reason[:200]}") from error
    body = f"{model.base_model_prefix}."
    absent = {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
    missing = sorted(name for name in absent if not new_head or name.startswith(body))
    if missing:
        raise ValueError(
            f"{folder}: expected all weights in model.safetensors, in the sizes that config.json gives, got none for "
            f"{len(missing)}: {missing[0]}"
            + ("" if new_head else "; a model that was never trained to classify needs a new head")
        )
    model.eval()
    _refuse_other_sizes(folder, model, tokenizer)
    return model, tokenizer


def _has_sdpa(folder):
    """Whether transformers can run the model with torch's own attention."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    known = AutoModelForSequenceClassification._model_mapping
    return type(config) not in known or known[type(config)]._supports_sdpa


def _refuse_other_sizes(folder, model, tokenizer):
    """Raise where the tokenizer makes what the model has no room for: the model would end in an IndexError."""
    import torch

    words = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > words:
        raise ValueError(
            f"{folder}: expected a tokenizer of at most {words} words, as the model has embeddings, got "
            f"{len(tokenizer)}; take both from one checkpoint"
        )
    try:
        with torch.inference_mode():
            model(**encode(model, tokenizer, ["a " * MAX_TOKENS], ["a"]))
    except (IndexError, RuntimeError) as error:
        names = "max_position_embeddings", "type_vocab_size"
        sizes = ", ".join(f"{name} {getattr(model.config, name)}" for name in names if hasattr(model.config, name))
        raise ValueError(
            f"{folder}: expected a model that takes {MAX_TOKENS} tokens, got one that does not ({sizes}): {error}"
        ) from error


def class_order(model, wanted, stated=None):
    """Where each wanted class stands among the outputs of a model.

    Parameters
    ----------
    model
        As `load` returns it.
    wanted : sequence of str
    stated : sequence of str, optional
        Names of the outputs in their order, where the checkpoint does not know them.

    Returns
    -------
    ndarray int64
        ``logits[:, order]`` has the wanted order, and ``order[labels]`` are the labels that the model knows.

    Raises
    ------
    ValueError
        If the checkpoint names its classes LABEL_0, LABEL_1, ..., or otherwise, and none are stated.
    """
    names = model.config.id2label
    if set(names) != set(range(len(names))):
        raise ValueError(f"classes: expected names of the outputs 0 to {len(names) - 1}, got names of {sorted(names)}")
    known = [str(names[i]) for i in range(len(names))]
    lower = [name.lower() for name in known]
    if stated is not None and sorted(lower) == sorted(wanted) and lower != [name.lower() for name in stated]:
        raise ValueError(
            f"classes: expected the order in which the checkpoint names its outputs, {known}, got {list(stated)}; "
            "leave --classes out"
        )
    if stated is not None and len(stated) != len(known):
        raise ValueError(f"classes: expected one name for each of {len(known)} outputs, got {list(stated)}")
    try:
        return np.array(class_permutation(known if stated is None else stated, wanted))
    except ValueError as error:
        raise ValueError(
            f"classes: the outputs of the checkpoint are named {known}, expected {list(wanted)} in some order; state "
            f"the order that its authors give, such as --classes {','.join(wanted)}, or start with a new head"
        ) from error


def logits_of(model, tokenizer, *texts, batch_size=16, progress=False, **options):
    """Logits of a classifier, sentence by sentence or pair by pair.

    Parameters
    ----------
    model, tokenizer
        As `load` returns them.
    *texts : list of str
        One list of n sentences, or two for n pairs.
    batch_size : int
    progress : bool
        Show a progress bar where standard error is a terminal.
    **options
        Of `encode`.

    Returns
    -------
    ndarray float32 (n, K)
    """
    import torch
    from tqdm import tqdm

    batch_size = as_count(batch_size, "batch_size")
    if not len(texts[0]):
        raise ValueError("texts: expected at least one, got none")
    starts = range(0, len(texts[0]), batch_size)
    logits = []
    model.eval()
    with torch.inference_mode():
        for start in tqdm(starts, desc="predict", unit="batch", disable=None if progress else True):
            batch = [column[start : start + batch_size] for column in texts]
            logits.append(model(**encode(model, tokenizer, *batch, **options)).logits.cpu().numpy())
    return np.concatenate(logits)


def encode(model, tokenizer, *texts, padding="max_length", segments=True):
    """Turn texts into the tensors that a model takes, on its device, cut to 128 tokens.

    A tokenizer can make more than its model has a use for, or less than it needs: ``token_type_ids`` say which of
    two sentences a token belongs to. BERT needs them, DistilBERT does not know them.

    Parameters
    ----------
    model, tokenizer
    *texts : list of str
        One list of n sentences, or two for n pairs.
    padding : {"max_length", "longest"}
        Pad to 128 tokens, or to the longest of these texts.
    segments : bool
        False leaves ``token_type_ids`` out, as some public code does.

    Returns
    -------
    dict
        Integer tensors by argument name.
    """
    tokens = tokenizer(
        *texts,
        padding=padding,
        truncation=True,
        max_length=MAX_TOKENS,
        return_tensors="pt",
        return_token_type_ids=True,
    )
    if getattr(model.config, "type_vocab_size", 2) < 2:  # one type: 0, whatever the tokenizer says
        tokens["token_type_ids"].zero_()
    taken = set(inspect.signature(model.forward).parameters) - (set() if segments else {"token_type_ids"})
    return {name: tensor.to(model.device) for name, tensor in tokens.items() if name in taken}


def _link_files(folder, private, names):
    """Link the files of a checkpoint, and only those, into a private folder."""
    if not set(VOCABULARIES) & set(names):  # transformers would make a tokenizer that knows no word
        raise DataUnavailable(
            f"{folder}: found no tokenizer, looked for {' or '.join(VOCABULARIES)}; save it there with transformers' "
            "save_pretrained"
        )
    for name in names:
        path = folder.resolve() / name
        if not path.is_file():
            raise DataUnavailable(
                f"{name}: not found, looked for {path}; name a folder that has {' and '.join(NEEDED)}, as "
                "save_pretrained of transformers makes it, or a model on the hub"
            )
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

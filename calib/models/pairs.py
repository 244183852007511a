"""Sentence pairs with labels: the files of SNLI, MNLI and ChaosNLI, as their authors distribute them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calib.data.loaders import NLI_CLASSES, SUBSETS, load_json_lines
from calib.data.registry import DataUnavailable, read

OFFICIAL = {"uid": "pairID", "label": "gold_label", "premise": "sentence1", "hypothesis": "sentence2"}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sentence pairs with labels in the order entailment, neutral, contradiction.

    Attributes
    ----------
    name : str
    ids : list of str
    premises, hypotheses : list of str
    labels : ndarray int64
    sha256 : str
        Of the file.
    n_unlabelled : int
        Pairs of the file on which its annotators did not agree, left out.
    """

    name: str
    ids: list[str]
    premises: list[str]
    hypotheses: list[str]
    labels: np.ndarray
    sha256: str
    n_unlabelled: int

    def __len__(self):
        return len(self.ids)

    def select(self, rows):
        """Two lists of sentences, at `rows`."""
        return [self.premises[i] for i in rows], [self.hypotheses[i] for i in rows]


def read_pairs(path):
    """Read a file of SNLI or MNLI, as their authors distribute it in JSON lines, or a file of ChaosNLI.

    Parameters
    ----------
    path : path
        Such as ``snli_1.0_train.jsonl``, ``multinli_1.0_dev_matched.jsonl`` or ``chaosNLI_snli.jsonl``.

    Returns
    -------
    Pairs

    Raises
    ------
    DataUnavailable
        If it is missing or has another format.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataUnavailable(
            f"{path}: not found ({error.strerror}); name a .jsonl file of SNLI 1.0 or MultiNLI 1.0, as their "
            "authors distribute it, or of ChaosNLI"
        ) from None
    return _parse(path.name, content)


def chaosnli_pairs(dataset):
    """All items of ChaosNLI-S or ChaosNLI-M, from the data folder; see `read_pairs`."""
    if dataset not in SUBSETS:
        raise ValueError(f"dataset: expected one of {', '.join(SUBSETS)}, got {dataset!r}")
    name = f"chaosnli/chaosNLI_{SUBSETS[dataset][0]}.jsonl"
    return _parse(name, read(name))


def _parse(name, content):
    rows = load_json_lines(content)
    letters = {label[0]: i for i, label in enumerate(NLI_CLASSES)}
    names = {label: i for i, label in enumerate(NLI_CLASSES)}
    if rows and set(OFFICIAL.values()) <= set(rows[0]):
        items = [tuple(row[field] for field in OFFICIAL.values()) for row in rows]
        known = names
    elif rows and {"uid", "old_label", "example"} <= set(rows[0]):
        items = [(r["uid"], r["old_label"], r["example"]["premise"], r["example"]["hypothesis"]) for r in rows]
        known = letters
    else:
        raise DataUnavailable(
            f"{name}: expected JSON lines with {', '.join(OFFICIAL.values())}, as SNLI and MNLI have them, or with "
            f"uid, old_label and example, as ChaosNLI, found {sorted(rows[0])[:6] if rows else 'no line'}"
        )
    labelled = [item for item in items if item[1] in known]
    ids, labels, premises, hypotheses = map(list, zip(*labelled))
    return Pairs(
        name=name,
        ids=ids,
        premises=premises,
        hypotheses=hypotheses,
        labels=np.array([known[label] for label in labels]),
        sha256=hashlib.sha256(content).hexdigest(),
        n_unlabelled=len(items) - len(labelled),
    )

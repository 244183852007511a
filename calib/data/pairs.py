"""Sentence pairs with labels: the files of SNLI, MNLI and ChaosNLI, as their authors distribute them."""

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calib.data.readers import load_json_lines
from calib.data.registry import DataUnavailable

NLI_CLASSES = ("entailment", "neutral", "contradiction")

OFFICIAL = ("pairID", "gold_label", "sentence1", "sentence2")
LABELS = {name: i for i, name in enumerate(NLI_CLASSES)}
LABELS |= {name[0]: i for name, i in LABELS.items()}  # as in ChaosNLI
LABELS |= {"-": None}  # annotators did not agree


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


def read_pairs(path, unique=False):
    """Read a file of SNLI or MNLI, as their authors distribute it in JSON lines, or a file of ChaosNLI.

    Parameters
    ----------
    path : path
        Such as ``snli_1.0_train.jsonl``, ``multinli_1.0_dev_matched.jsonl`` or ``chaosNLI_snli.jsonl``.
    unique : bool
        Refuse an id that occurs twice, where logits are written by id.

    Returns
    -------
    Pairs

    Raises
    ------
    DataUnavailable
        If it is missing or a line of it has another format.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataUnavailable(
            f"{path}: not found ({error.strerror}); name a .jsonl file of SNLI 1.0 or MultiNLI 1.0, as their "
            "authors distribute it, or of ChaosNLI"
        ) from None
    pairs = parse_pairs(path.name, content)
    if unique and len(set(pairs.ids)) < len(pairs):
        twice = next(name for name, n in Counter(pairs.ids).items() if n > 1)
        raise DataUnavailable(f"{path}: expected each id once, found {twice!r} again")
    return pairs


def parse_pairs(name, content):
    """Pairs from the bytes of such a file; see `read_pairs`."""
    try:
        rows = load_json_lines(content)
    except DataUnavailable as error:
        raise DataUnavailable(f"{name}: {error}") from error
    items = []
    for line, row in enumerate(rows, start=1):
        try:
            items.append(_official(row) if "gold_label" in row else _chaosnli(row))
        except (KeyError, TypeError):
            raise DataUnavailable(
                f"{name}: expected JSON lines with {', '.join(OFFICIAL)}, as SNLI and MNLI have them, or with uid, "
                f"old_label and example, as ChaosNLI, each of them text, found {str(row)[:80]} in line {line}"
            ) from None
        if items[-1][1] not in LABELS:
            raise DataUnavailable(
                f"{name}: expected a label among {', '.join(LABELS)}, found {items[-1][1]!r} in line {line}"
            )
    labelled = [item for item in items if LABELS[item[1]] is not None]
    if not labelled:
        raise DataUnavailable(f"{name}: expected pairs with labels, found none in {len(rows)} lines")
    ids, labels, premises, hypotheses = map(list, zip(*labelled))
    return Pairs(
        name=name,
        ids=ids,
        premises=premises,
        hypotheses=hypotheses,
        labels=np.array([LABELS[label] for label in labels]),
        sha256=hashlib.sha256(content).hexdigest(),
        n_unlabelled=len(items) - len(labelled),
    )


def _official(row):
    return _texts(*(row[field] for field in OFFICIAL))


def _chaosnli(row):
    return _texts(row["uid"], row["old_label"], row["example"]["premise"], row["example"]["hypothesis"])


def _texts(*values):
    if not all(isinstance(value, str) for value in values):
        raise TypeError
    return values

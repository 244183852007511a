"""Readers of the registered files: each returns `Predictions` with aligned classes, and counts what is left out."""

import io
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calib.data import sst2
from calib.data.registry import REGISTRY, DataUnavailable, read
from calib.names import DATASETS
from calib.predictions import Predictions

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NLI_CLASSES = ("entailment", "neutral", "contradiction")
NLI_PREDICTION_CLASSES = ("entailment", "contradiction", "neutral")
SST2_CLASSES = ("negative", "positive")
SUBSETS = {"chaosnli-s": ("snli", "SNLI"), "chaosnli-m": ("mnli_m", "MNLI")}

DOGAH_NAMES = {
    "model": "model",
    "dataset": "dataset",
    "seed": "seed",
    "test_accuracy": "accuracy",
    "T_star_hard": "T_hard",
    "T_star_soft": "T_oracle",
    "uncal_ece": "ece_uncal",
    "ts_hard_ece": "ece_hard",
    "ts_soft_ece": "ece_oracle",
    "uncal_bs_soft": "brier_uncal",
    "ts_hard_bs_soft": "brier_hard",
    "ts_soft_bs_soft": "brier_oracle",
    "gap": "gap",
    "iso_hard_bs_soft": "iso_brier_hard",
    "iso_soft_bs_soft": "iso_brier_oracle",
    "iso_gap": "iso_gap",
}


class SoftLabelData(NamedTuple):
    """What the study of the soft-label gap needs of one data set and model.

    Attributes
    ----------
    validation : Predictions
        With hard labels.
    soft : Predictions
        With votes and the hard labels of the same examples, in the order of the file of votes.
    n_missing : int
        Examples with votes but without a prediction; they are not in `soft`.
    """

    validation: Predictions
    soft: Predictions
    n_missing: int


def load_sst2():
    """Logits of the pinned DistilBERT on the 872 sentences of the SST-2 validation set; ids are `idx`."""
    ids, labels, logits = sst2.parse(read("sst2/distilbert-sst2-validation-logits.csv"))
    return Predictions(ids, logits, labels, class_names=SST2_CLASSES)


def load_soft_labels(dataset, model, seed, folder=None):
    """Validation set and soft-labelled set of one data set, model and training seed.

    Parameters
    ----------
    dataset : {"cifar10h", "chaosnli-s", "chaosnli-m"}
    model : str
        "resnet110" for CIFAR-10H; "bert-base-uncased" (ChaosNLI-S only) or "roberta-base".
    seed : int
    folder : path, optional
        Where predictions of our own lie, as ``<dataset>/<model>-<seed>.npz``; without it, the published ones are read.

    Returns
    -------
    SoftLabelData
    """
    if folder is not None and dataset in ("cifar10h", *SUBSETS):
        from calib.data.own import load_own

        return load_own(Path(folder) / dataset / f"{model}-{seed}.npz", dataset)
    if dataset == "cifar10h":
        return load_cifar10h(model, seed)
    if dataset in SUBSETS:
        return load_chaosnli(dataset, model, seed)
    raise ValueError(f"dataset: expected cifar10h, chaosnli-s or chaosnli-m, got {dataset!r}")


def load_cifar10h(model="resnet110", seed=0):
    """CIFAR-10H: 5,000 validation images with labels, 10,000 test images with labels and human votes."""
    if (model, seed) != ("resnet110", 0):
        raise ValueError(f"model, seed: expected resnet110 and 0, got {model!r} and {seed!r}")
    (logits, labels), (test_logits, test_labels) = load_arrays(read("cifar10/resnet110_c10_logits.p"))
    votes = load_npy(read("cifar10h/cifar10h-counts.npy"))
    original = load_npy(read("cifar10/cifar10_test_set_original_labels.npy"))
    if not np.array_equal(original, test_labels[:, 0]):
        raise DataUnavailable("cifar10/resnet110_c10_logits.p: expected test rows in the original order; labels differ")
    validation = Predictions(_named("validation", logits), logits, labels[:, 0], class_names=CIFAR10_CLASSES)
    soft = Predictions(_named("test", test_logits), test_logits, test_labels[:, 0], votes, CIFAR10_CLASSES)
    return SoftLabelData(validation, soft, n_missing=0)


def load_chaosnli(subset, model, seed):
    """ChaosNLI with the published predictions of one model and seed.

    The validation set is the whole "dev" file of predictions, with the labels in it. Soft-labelled items are found
    by uid in the "dev" and "test" files; their hard label is the majority of the 100 votes, ties to the lower class.
    Columns are put in the order entailment, neutral, contradiction.
    """
    _, predictions_name = _names_in_files(subset)
    development = load_nli_predictions(f"chaosnli/predictions/{predictions_name}_dev_{model}_{seed}.json")
    test = load_nli_predictions(f"chaosnli/predictions/{predictions_name}_test_{model}_{seed}.json")
    counts = load_votes(subset)

    logits = dict(zip([*development.ids, *test.ids], [*development.logits, *test.logits]))
    found = [uid for uid in counts if uid in logits]
    votes = np.array([counts[uid] for uid in found])
    soft = Predictions(
        ids=found,
        logits=[logits[uid] for uid in found],
        labels=votes.argmax(axis=1),
        votes=votes,
        class_names=NLI_CLASSES,
    )
    return SoftLabelData(development, soft, n_missing=len(counts) - len(found))


def load_votes(subset):
    """The 100 votes on each item of a part of ChaosNLI, by uid, in the order of the file."""
    votes_name, _ = _names_in_files(subset)
    return {item["uid"]: item["label_count"] for item in _json_lines(f"chaosnli/chaosNLI_{votes_name}.jsonl")}


def load_nli_predictions(name):
    """Predictions and labels of one registered file, in the order entailment, neutral, contradiction."""
    if name not in REGISTRY:
        known = ", ".join(known for known in REGISTRY if known.startswith("chaosnli/predictions/"))
        raise ValueError(f"model, seed: expected those of a registered file, got {name}; registered are {known}")
    rows = _json_lines(name)
    order = class_permutation(NLI_PREDICTION_CLASSES, NLI_CLASSES)
    position = np.argsort(order)  # where each class of the file stands in our order
    return Predictions(
        ids=[row["uid"] for row in rows],
        logits=np.array([row["logits"] for row in rows])[:, order],
        labels=position[[row["true"] for row in rows]],
        class_names=NLI_CLASSES,
    )


def load_original_labels(subset):
    """The label that SNLI or MNLI itself gives to each ChaosNLI item, by uid: `old_label` in the file of votes."""
    votes_name, _ = _names_in_files(subset)
    letters = [name[0] for name in NLI_CLASSES]
    items = _json_lines(f"chaosnli/chaosNLI_{votes_name}.jsonl")
    return {item["uid"]: letters.index(item["old_label"]) for item in items}


def load_original_votes(subset):
    """The votes that SNLI or MNLI itself has on each ChaosNLI item, by uid: `old_labels`, five, of which three agree.

    Returns
    -------
    dict of str to list of int
        Counts in the order entailment, neutral, contradiction; a few pairs of SNLI have four votes.
    """
    votes_name, _ = _names_in_files(subset)
    items = _json_lines(f"chaosnli/chaosNLI_{votes_name}.jsonl")
    return {item["uid"]: [item["old_labels"].count(name) for name in NLI_CLASSES] for item in items}


def load_cross_validated():
    """A second predictor of the CIFAR-10 test images, with the votes of CIFAR-10H and no validation set.

    Out-of-sample probabilities by cross-validation (Northcutt et al. 2021); their logarithms are the logits.

    Returns
    -------
    Predictions
        With the ids, labels and votes of `load_cifar10h`.
    """
    name = "cifar10/cifar10_test_set_pyx.npy"
    probabilities, soft = load_npy(read(name)), load_cifar10h().soft
    if probabilities.shape != soft.logits.shape:
        raise DataUnavailable(f"{name}: expected shape {soft.logits.shape}, got {probabilities.shape}")
    if not (probabilities > 0).all() or np.abs(probabilities.sum(axis=1) - 1).max() > 1e-6:
        raise DataUnavailable(f"{name}: expected probabilities above 0 in rows that sum to 1")
    agreement = np.mean(probabilities.argmax(axis=1) == soft.labels)
    if agreement < 0.9:  # rows in any other order agree in a tenth
        raise DataUnavailable(f"{name}: expected rows in the original order, but {agreement:.0%} name the label")
    return replace(soft, logits=np.log(probabilities))


def cluster_names(ids):
    """What an example shares with others: the image of an SNLI pair, the premise of an MNLI pair, else itself.

    An SNLI uid begins with the file of the image, an MNLI uid with the number of the premise.

    Examples
    --------
    >>> cluster_names(["2407214681.jpg#0r1n", "50830c", "test-17"])
    ['2407214681.jpg', '50830', 'test-17']
    """
    ids = list(ids)
    for name in ids:
        if not isinstance(name, str):
            raise ValueError(f"ids: expected strings, such as the uid of a pair, got {name!r}")
    return [re.sub(r"#.*|(?<=\d)[enc]$", "", name) for name in ids]


def load_dogah2026():
    """The 27 per-seed results of Dogah (2026), under the names that this book uses.

    Returns
    -------
    list of dict
        model, dataset, seed, accuracy, T_hard, T_oracle, ece_uncal, ece_hard, ece_oracle, brier_uncal, brier_hard,
        brier_oracle, gap, iso_brier_hard, iso_brier_oracle, iso_gap.
    """
    files = [json.loads(read(name)) for name in REGISTRY if name.startswith("dogah2026/")]
    rows = [{ours: file[theirs] for theirs, ours in DOGAH_NAMES.items()} for file in files]
    keys = {name: key for key, name in DATASETS.items()}
    return [{**row, "dataset": keys[row["dataset"]]} for row in rows]


def class_permutation(names, wanted):
    """Indices that put columns named `names` in the order `wanted`.

    Raises
    ------
    ValueError
        If the two do not name the same classes, as with LABEL_0, LABEL_1: the order is then never guessed.

    Examples
    --------
    >>> class_permutation(["contradiction", "entailment", "neutral"], ["entailment", "neutral", "contradiction"])
    [1, 2, 0]
    """
    names, wanted = [name.lower() for name in names], [name.lower() for name in wanted]
    if sorted(names) != sorted(wanted):
        raise ValueError(f"names: expected the classes {wanted} in some order, got {names}; state the order")
    return [names.index(name) for name in wanted]


def load_arrays(content):
    """Unpickle nested tuples of NumPy arrays; anything else in the pickle is refused and never run."""
    try:
        return _ArraysOnly(io.BytesIO(content)).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, ValueError, TypeError) as error:
        raise DataUnavailable(f"expected a pickle of NumPy arrays only, got: {error}") from error


def load_npy(content):
    """Read an ``.npy`` file of numbers; objects in it, and a header that promises more than there is, are refused."""
    try:
        return np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, MemoryError, OSError, SyntaxError) as error:
        raise DataUnavailable(f"expected an array of numbers in npy format, got: {error}") from error


def load_json_lines(content):
    """Read one JSON value per line; lines that are none, or that nest without end, are refused."""
    values = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise DataUnavailable(f"expected JSON in line {number}, got: {str(error)[:80]}") from error
    return values


class _ArraysOnly(pickle.Unpickler):
    """An unpickler that knows three names: those that rebuild a NumPy array."""

    ALLOWED = frozenset({"_reconstruct", "ndarray", "dtype"})
    MODULES = frozenset({"numpy", "numpy.core.multiarray", "numpy._core.multiarray"})

    def find_class(self, module, name):
        if module not in self.MODULES or name not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of an array")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _named(split, logits):
    return [f"{split}-{i}" for i in range(len(logits))]


def _names_in_files(subset):
    if subset not in SUBSETS:
        raise ValueError(f"subset: expected {' or '.join(SUBSETS)}, got {subset!r}")
    return SUBSETS[subset]


def _json_lines(name):
    return load_json_lines(read(name))

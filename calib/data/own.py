"""Our own predictions joined with the labels and votes of others, by id: what the study of the gap reads."""

from dataclasses import replace

import numpy as np

from calib.data import loaders
from calib.data.examples import load_examples
from calib.data.registry import DataUnavailable, data_folder, read
from calib.predictions import Predictions


def load_own(path, dataset):
    """Validation set and soft-labelled set of a per-example file that `calib train` wrote.

    Parameters
    ----------
    path : path
        See `calib.data.examples`.
    dataset : {"cifar10h", "chaosnli-s", "chaosnli-m"}

    Returns
    -------
    calib.data.SoftLabelData

    Raises
    ------
    DataUnavailable
        If the file is none, has not both sets, or a label of its validation set is not known here.
    """
    splits = load_examples(path)
    soft, names = ("test", loaders.CIFAR10_CLASSES) if dataset == "cifar10h" else ("soft", loaders.NLI_CLASSES)
    if set(splits) != {"validation", soft}:
        raise DataUnavailable(f"{path}: expected the splits validation and {soft}, found {', '.join(splits)}")
    join = _cifar10h if dataset == "cifar10h" else _chaosnli
    try:
        return join(dataset, _in_order(splits["validation"], names), _in_order(splits[soft], names))
    except ValueError as error:
        raise DataUnavailable(f"{path}: {error}") from error


def _in_order(predictions, names):
    """Predictions whose classes have these names, in this order."""
    order = loaders.class_permutation(predictions.class_names, names)
    return replace(predictions, logits=predictions.logits[:, order], class_names=names)


def _cifar10h(dataset, validation, test):
    from calib.models.images import train_labels

    votes = loaders.load_npy(read("cifar10h/cifar10h-counts.npy"))
    labels = loaders.load_npy(read("cifar10/cifar10_test_set_original_labels.npy"))
    return loaders.SoftLabelData(
        replace(validation, labels=train_labels(validation.ids)),
        *_join(test, [f"test-{i}" for i in range(len(votes))], labels, votes),
    )


def _chaosnli(dataset, validation, soft):
    from calib.models.pairs import read_pairs

    votes = loaders.load_votes(dataset)
    known = {subset: loaders.load_original_labels(subset) for subset in loaders.SUBSETS}
    known = {**known["chaosnli-s"], **known["chaosnli-m"]}
    for source in ("SNLI", "MNLI"):
        for half in ("dev", "test"):
            rows = loaders.load_nli_predictions(f"chaosnli/predictions/{source}_{half}_roberta-base_0.json")
            known |= dict(zip(rows.ids.tolist(), rows.labels.tolist()))
    for path in sorted((data_folder() / "nli").glob("*dev*.jsonl")):
        rows = read_pairs(path)
        known |= dict(zip(rows.ids, rows.labels.tolist()))
    unknown = [name for name in validation.ids.tolist() if name not in known]
    if unknown:
        raise ValueError(
            f"the labels of {len(unknown)} of {len(validation)} validation items are not known here, the first "
            f"{unknown[0]!r}; put the file that they come from into {data_folder() / 'nli'}, such as snli_1.0_dev.jsonl"
        )
    labels = np.array([known[name] for name in validation.ids.tolist()])
    counts = np.array(list(votes.values()))
    return loaders.SoftLabelData(
        replace(validation, labels=labels), *_join(soft, list(votes), counts.argmax(axis=1), counts)
    )


def _join(predictions, ids, labels, votes):
    """Predictions in the order of `ids` with labels and votes, and how many ids have none."""
    row = {name: i for i, name in enumerate(predictions.ids.tolist())}
    unknown = sorted(set(row) - set(ids))
    if unknown:
        raise ValueError(
            f"{len(unknown)} of {len(row)} soft-labelled items have no votes, the first {unknown[0]!r}; is this the "
            "file of another data set?"
        )
    found = [i for i, name in enumerate(ids) if name in row]
    logits = predictions.logits[[row[ids[i]] for i in found]]
    joined = Predictions([ids[i] for i in found], logits, labels[found], votes[found], predictions.class_names)
    return joined, len(ids) - len(found)

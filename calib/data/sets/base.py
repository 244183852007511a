"""What a data set with votes knows, and how its votes meet predictions."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calib.data.examples import load_examples
from calib.data.readers import class_permutation
from calib.data.registry import DataUnavailable
from calib.predictions import Predictions


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


@dataclass(frozen=True)
class SoftLabelSet:
    """A data set with votes; each file beside this one makes one of it.

    Attributes
    ----------
    key, title : str
        In parameters and names of results; in figures, tables and prose.
    task : {"vision", "language"}
    classes : tuple of str
    protocols : tuple of str
        "paper", and "clean" where the validation set holds soft-labelled examples that it takes out.
    own_split : str
        What files of our own predictions call the soft-labelled examples.
    """

    key: str
    title: str
    task: str
    classes: tuple
    protocols: tuple = ("paper",)
    own_split: str = "soft"

    def votes(self):
        """Counts of each class by id, in the order of the file of votes."""
        raise NotImplementedError

    def labels(self):
        """Hard labels in the order of `votes`: by default the majority, ties to the lower class."""
        return np.array(list(self.votes().values())).argmax(axis=1)

    def predictions(self, model, seed):
        """Public predictions: the validation set with labels, and logits of the soft-labelled examples by id."""
        raise NotImplementedError

    def validation_labels(self, ids):
        """Labels of validation examples of our own predictions, by id."""
        raise NotImplementedError

    def cluster(self, name):
        """What an example shares with others, from its id; by default it shares nothing."""
        return name

    def clusters(self, ids):
        """Names of the clusters of examples."""
        return [self.cluster(name) for name in ids]

    def published(self, model, seed):
        """`SoftLabelData` from the public predictions of a model and seed."""
        validation, logits = self.predictions(model, seed)
        return SoftLabelData(validation, *self._with_votes(logits))

    def own(self, path):
        """`SoftLabelData` from a per-example file that `calib train` wrote; see `calib.data.examples`.

        Raises
        ------
        DataUnavailable
            If the file is none, has not both sets, or a label of its validation set is not known here.
        """
        splits = load_examples(path)
        if set(splits) != {"validation", self.own_split}:
            found = ", ".join(splits)
            raise DataUnavailable(f"{path}: expected the splits validation and {self.own_split}, found {found}")
        try:
            validation, soft = (self._in_order(splits[name]) for name in ("validation", self.own_split))
            validation = replace(validation, labels=self.validation_labels(validation.ids))
            logits = dict(zip(soft.ids.tolist(), soft.logits))
            self._refuse_unknown(logits)
            return SoftLabelData(validation, *self._with_votes(logits))
        except ValueError as error:
            raise DataUnavailable(f"{path}: {error}") from error

    def _in_order(self, predictions):
        """Predictions with the classes of this set in its order."""
        order = class_permutation(predictions.class_names, self.classes)
        return replace(predictions, logits=predictions.logits[:, order], class_names=self.classes)

    def _refuse_unknown(self, logits):
        unknown = sorted(set(logits) - set(self.votes()))
        if unknown:
            raise ValueError(
                f"{len(unknown)} of {len(logits)} soft-labelled items have no votes, the first {unknown[0]!r}; is this "
                "the file of another data set?"
            )

    def _with_votes(self, logits):
        """Examples that have votes and logits, in the order of the votes; and how many have no logits."""
        votes, labels = self.votes(), self.labels()
        ids = list(votes)
        rows = [i for i, name in enumerate(ids) if name in logits]
        counts = np.array(list(votes.values()))
        found = [ids[i] for i in rows]
        soft = Predictions(found, np.array([logits[name] for name in found]), labels[rows], counts[rows], self.classes)
        return soft, len(ids) - len(found)

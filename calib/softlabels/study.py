"""One study of the soft-label gap: what is fitted, what is judged, and what its examples share."""

from dataclasses import dataclass, replace
from functools import cached_property

from calib.checks import as_clusters
from calib.data.sets import load_soft_labels, set_of
from calib.predictions import Predictions, count_overlap

VALIDATION = {"paper": "overlapping", "clean": "disjoint"}
"""What the validation set of a protocol is, in words."""


@dataclass(frozen=True, eq=False)
class Study:
    """A validation set with hard labels, and soft-labelled examples in two halves.

    Parameters
    ----------
    validation : Predictions
        With hard labels: $T_hard$ is fitted here.
    soft : Predictions
        With votes and hard labels, in the order of the file. The first half is for the oracle, the second is judged.
    clusters : sequence, optional
        Examples with the same value are drawn together: those of the validation set, then those of `soft`.
    overlap_declared : bool
        True where the protocol lets the validation set contain judged examples; otherwise they are an error.
    key : tuple
        Data set, model, training seed, protocol.
    n_missing : int
        Examples with votes but without a prediction.
    """

    validation: Predictions
    soft: Predictions
    clusters: tuple | None = None
    overlap_declared: bool = False
    key: tuple = ()
    n_missing: int = 0

    def __post_init__(self):
        if self.validation.class_names != self.soft.class_names:
            raise ValueError(
                "validation, soft: expected the same classes in the same order, got "
                f"{self.validation.class_names} and {self.soft.class_names}"
            )
        count_overlap(self.validation, self.second, self.overlap_declared)
        if self.clusters is not None:
            as_clusters(self.clusters, len(self.validation) + len(self.soft))

    @property
    def name(self):
        """Under which its numbers are recorded."""
        return "/".join(["gap", *map(str, self.key)])

    @cached_property
    def first(self):
        """The first half of the soft-labelled examples, for the oracle."""
        return self.soft.select(slice(0, len(self.soft) // 2))

    @cached_property
    def second(self):
        """The second half, on which everything is judged."""
        return self.soft.select(slice(len(self.soft) // 2, None))

    @property
    def judged_clusters(self):
        """Clusters of the second half; None where there are none."""
        return None if self.clusters is None else self.clusters[len(self.validation) + len(self.first) :]

    @property
    def n_overlap(self):
        """Validation examples that are judged too."""
        return count_overlap(self.validation, self.second, declared=True)

    def with_labels(self, labels):
        """The same with other hard labels of the soft-labelled examples."""
        return replace(self, soft=replace(self.soft, labels=labels))


def key_of(name):
    """Data set, model, training seed and protocol of a study, from the name under which its numbers are recorded.

    Examples
    --------
    >>> key_of("gap/cifar10h/resnet110/0/paper")
    ('cifar10h', 'resnet110', 0, 'paper')
    """
    _, dataset, model, seed, protocol = name.split("/")
    return dataset, model, int(seed), protocol


def load_study(dataset, model, seed, protocol="paper", folder=None):
    """The study of one data set, model, training seed and protocol.

    Parameters
    ----------
    dataset, model, seed, folder
        As in `calib.data.load_soft_labels`.
    protocol : {"paper", "clean"}
        "paper" keeps the validation set as published, with soft-labelled examples in it, and declares the overlap;
        "clean" takes them out.

    Returns
    -------
    Study
    """
    if protocol not in VALIDATION:
        raise ValueError(f'protocol: expected "paper" or "clean", got {protocol!r}')
    validation, soft, n_missing = load_soft_labels(dataset, model, seed, folder)
    validation = validation if protocol == "paper" else validation.without(soft.ids)
    clusters = set_of(dataset).clusters([*validation.ids.tolist(), *soft.ids.tolist()])
    key = dataset, model, seed, protocol
    return Study(validation, soft, tuple(clusters), protocol == "paper", key, n_missing)

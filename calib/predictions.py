"""The one data type: what a classifier said about named examples, and what is known of their labels."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from calib.checks import as_array, as_labels, as_logits, as_names, refuse_mixed


@dataclass(frozen=True, eq=False)
class Predictions:
    """Logits of a classifier on named examples, aligned with labels and votes.

    Parameters
    ----------
    ids : array_like (n,)
        Unique names of the examples, integers or strings.
    logits : array_like (n, K)
        Unnormalised scores; -inf marks a masked class. Their floating type is kept.
    labels : array_like (n,), optional
        Hard labels, integers from 0 to K - 1.
    votes : array_like (n, K), optional
        How many annotators chose each class; each row has at least one vote.
    class_names : sequence of str, optional
        Names of the K classes, in the order of the columns.

    Raises
    ------
    ValueError
        If shapes differ, a value is not finite, a label is out of range, a row has no vote or an id occurs twice.

    Examples
    --------
    >>> p = Predictions(ids=["a", "b"], logits=[[2.0, 0.0], [0.0, 1.0]], labels=[0, 1], votes=[[8, 2], [1, 3]])
    >>> p.distributions.tolist()
    [[0.8, 0.2], [0.25, 0.75]]
    >>> p.without(["a"]).ids.tolist()
    ['b']
    """

    ids: np.ndarray
    logits: np.ndarray
    labels: np.ndarray | None = None
    votes: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None

    def __post_init__(self):
        logits = as_logits(self.logits)
        n, n_classes = logits.shape
        fields = {"logits": logits, "ids": _check_ids(self.ids, n)}
        if self.labels is not None:
            fields["labels"] = as_labels(self.labels, n, n_classes)
        if self.votes is not None:
            fields["votes"] = _check_votes(self.votes, n, n_classes)
        if self.class_names is not None:
            fields["class_names"] = tuple(as_names("class_names", self.class_names))
            if len(fields["class_names"]) != n_classes:
                raise ValueError(f"class_names: expected {n_classes} names, got {len(fields['class_names'])}")
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __len__(self):
        return len(self.ids)

    @property
    def n_classes(self):
        """Number of classes K."""
        return self.logits.shape[1]

    @property
    def distributions(self):
        """Share of each class among the votes of an example, float64 (n, K)."""
        if self.votes is None:
            raise ValueError("distributions: these predictions have no votes")
        return self.votes / self.votes.sum(axis=1, keepdims=True, dtype=np.float64)

    def select(self, rows):
        """Return the examples at `rows` (indices, a slice or a boolean mask), in that order; at least one."""
        rows = np.arange(len(self))[rows]
        if rows.ndim != 1 or len(rows) == 0:
            raise ValueError(f"rows: expected at least one example, got an array of shape {rows.shape}")
        return replace(
            self,
            ids=self.ids[rows],
            logits=self.logits[rows],
            labels=None if self.labels is None else self.labels[rows],
            votes=None if self.votes is None else self.votes[rows],
        )

    def split(self, *sizes, key=None):
        """Cut into consecutive parts of the given sizes, which must add up to n.

        With a `key`, the examples are first put in the order of the SHA-256 of ``"<key>:<id>"``: a split
        that anyone can repeat from the ids alone, whatever the order of the file.
        """
        if sum(sizes) != len(self) or min(sizes, default=0) < 1:
            raise ValueError(f"sizes: expected numbers above 0 that add up to {len(self)}, got {sizes}")
        order = np.arange(len(self)) if key is None else hash_order(self.ids, key)
        return tuple(self.select(rows) for rows in np.split(order, np.cumsum(sizes)[:-1]))

    def without(self, ids):
        """Return the examples whose id is not among `ids`, which are of the same type."""
        ids = list(ids)
        refuse_mixed(ids, "ids")
        ids = np.asarray(ids, dtype=None if ids else self.ids.dtype)
        if (ids.dtype.kind == "U") != (self.ids.dtype.kind == "U"):
            raise ValueError(f"ids: expected ids of type {self.ids.dtype}, got type {ids.dtype}")
        return self.select(~np.isin(self.ids, ids))


def hash_order(ids, key):
    """Return the indices that put `ids` in ascending order of the hex SHA-256 of ``"<key>:<id>"``.

    Examples
    --------
    >>> hash_order([0, 1, 2, 3], "calib-sst2-v1").tolist()
    [2, 1, 0, 3]
    """
    digests = [hashlib.sha256(f"{key}:{name}".encode()).hexdigest() for name in np.asarray(ids).tolist()]
    return np.array(sorted(range(len(digests)), key=digests.__getitem__), dtype=np.int64)


def count_overlap(fitted, evaluated, declared=False):
    """Count the examples that were both fitted and evaluated on; raise unless the overlap is declared.

    Parameters
    ----------
    fitted, evaluated : Predictions
    declared : bool
        True where the protocol says that the two overlap.
    """
    shared = np.intersect1d(fitted.ids, evaluated.ids)
    if len(shared) and not declared:
        raise ValueError(
            f"fitted, evaluated: expected no example in both, got {len(shared)}, the first {shared[0].item()!r}; "
            "remove them with without(ids), or declare the overlap where the protocol has it"
        )
    return len(shared)


def _check_ids(ids, n):
    given, ids = ids, as_array("ids", ids)
    if ids.shape != (n,) or ids.dtype.kind not in "iuU":
        raise ValueError(f"ids: expected {n} integers or strings, got shape {ids.shape} of type {ids.dtype}")
    if ids.dtype.kind == "U":
        refuse_mixed(list(given), "ids")
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < n:
        raise ValueError(f"ids: expected unique names, got {values[counts > 1][0].item()!r} {counts.max()} times")
    return ids


def _check_votes(votes, n, n_classes):
    votes = as_array("votes", votes)
    if votes.shape != (n, n_classes) or votes.dtype.kind not in "iu":
        raise ValueError(f"votes: expected integers ({n}, {n_classes}), got shape {votes.shape} of type {votes.dtype}")
    bad = (votes < 0).any(axis=1) | (votes.sum(axis=1) == 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"votes: expected counts of 0 or more and at least one vote, got {votes[row]} in row {row}")
    return votes.astype(np.int64, copy=False)

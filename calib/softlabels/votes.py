"""Votes as they come, checked: tables with one row per vote, and counts of each class."""

from collections import Counter

import numpy as np

from calib.checks import as_array, as_names, is_missing

COLUMNS = ("item", "label", "annotator")


def count_votes(table, items, class_names):
    """Count the votes of a table, item by item and class by class.

    Parameters
    ----------
    table : dict of sequences, pandas data frame or the like
        One row per vote: "item", "label", and "annotator" where it is known.
    items, class_names : sequence
        What the items and classes are called, in the order of the rows and columns of the result.

    Returns
    -------
    ndarray int64 (n, K)

    Raises
    ------
    ValueError
        For an unknown item or label, or an annotator with several votes on one item.

    Examples
    --------
    >>> table = {"item": ["b", "a", "b"], "label": ["no", "yes", "yes"], "annotator": [1, 1, 2]}
    >>> count_votes(table, ["a", "b"], ["yes", "no"]).tolist()
    [[1, 0], [1, 1]]
    """
    found = list(table.keys())
    if not {"item", "label"} <= set(found):
        raise ValueError(f"votes: expected columns item and label, found {found}")
    columns = {name: as_names(f"votes, column {name}", table[name]) for name in COLUMNS if name in found}
    items, class_names = as_names("items", items), as_names("class_names", class_names)
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"votes: expected columns of one length, got {sizes}")
    known = [pair for pair in zip(columns["item"], columns.get("annotator", ())) if not is_missing(pair[1])]
    if again := _repeated(known):
        raise ValueError(
            f"votes: expected one vote of an annotator on an item, got more for item, annotator {_some(again)}"
        )
    rows = _positions("item", columns["item"], "items", items)
    labels = _positions("label", columns["label"], "class_names", class_names)
    size = len(items), len(class_names)
    return np.bincount(rows * size[1] + labels, minlength=size[0] * size[1]).reshape(size)


def as_counts(votes, shape):
    """Votes as an array of counts, checked."""
    votes = as_array("votes", votes)
    if votes.shape != shape or votes.dtype.kind not in "iu":
        raise ValueError(
            f"votes: expected counts, integers of shape {shape} as the logits, or a table with columns item and label; "
            f"got shape {votes.shape} of type {votes.dtype}"
        )
    if votes.min() < 0:
        row = int((votes < 0).any(axis=1).argmax())
        raise ValueError(f"votes: expected counts of 0 or more, got {votes[row]} in row {row}")
    return votes


def refuse_unvoted(counts, items):
    """Raise an error that names the items without a vote, where there are any."""
    none = [name for name, number in zip(items, counts.sum(axis=1)) if number == 0]
    if none:
        raise ValueError(
            f"votes: expected at least one vote on every item, got none on {_some(none)}; leave those items out"
        )


def _positions(column, values, argument, names):
    """Place of each value of a column among the names."""
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        raise ValueError(f"{argument}: expected each name once, got {_some(_repeated(names))} several times")
    unknown = list(dict.fromkeys(value for value in values if value not in places))
    if unknown:
        raise ValueError(f"votes: expected in column {column} one of {argument}, {_some(names)}; got {_some(unknown)}")
    return np.array([places[value] for value in values], dtype=np.int64)


def _repeated(values):
    return [value for value, number in Counter(values).items() if number > 1]


def _some(values):
    """The first five, and how many more."""
    return ", ".join(map(repr, values[:5])) + (f" and {len(values) - 5} more" if len(values) > 5 else "")

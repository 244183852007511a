"""Checks at the boundary: what was expected, what came, and the first row that offends.

Public functions check their arguments here, at the boundary.
"""

import numpy as np


def _describe(value):
    array = np.asarray(value)
    return f"shape {array.shape} of type {array.dtype}"


def as_array(name, value, dtype=None):
    """Return `value` as an array; ragged lists and hidden entries are errors."""
    if hasattr(value, "detach"):  # a tensor of torch, on whatever device, with or without a gradient
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value  # which NumPy does not have
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name}: expected an array without masked entries; choose the rows first")
    try:
        return np.asarray(value, dtype=dtype)
    except ValueError as error:
        raise ValueError(f"{name}: expected numbers, got others or rows that do not fit together") from error


def _first(rows):
    """Index of the first offending row of a boolean array (n,) or (n, K)."""
    return int(np.flatnonzero(rows.reshape(len(rows), -1).any(axis=1))[0])


def as_floats(name, value, ndim):
    """Return `value` as a floating array of `ndim` axes with at least one row; its precision is kept."""
    array = as_array(name, value)
    if array.ndim != ndim:
        axes = "(n, K)" if ndim == 2 else "(n,)"
        raise ValueError(f"{name}: expected shape {axes}, got {_describe(value)}")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name}: expected real numbers, got {_describe(value)}")
    if len(array) == 0:
        raise ValueError(f"{name}: expected at least one row, got {_describe(value)}")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def as_matrix(name, value):
    """Check scores (n, K): real numbers, at least one row and two columns."""
    value = as_floats(name, value, 2)
    if value.shape[1] < 2:
        raise ValueError(
            f"{name}: expected one column per class, at least two, got {_describe(value)}; "
            "for a two-class score z pass two columns, [0, z]"
        )
    return value


def as_logits(logits, name="logits"):
    """Check logits (n, K), K >= 2: no NaN, no +inf; -inf masks a class, but never a whole row."""
    logits = as_matrix(name, logits)
    if not np.isfinite(logits.max(axis=1)).all():  # a row maximum is NaN or +inf if a value is, -inf if all are
        refuse_nonfinite(logits, name)
    return logits


def refuse_nonfinite(logits, name="logits"):
    """Raise for the first row with a NaN, a +inf, or nothing but -inf."""
    for row, values in enumerate(logits):
        bad = np.isnan(values) | np.isposinf(values)
        if bad.any():
            column = int(bad.argmax())
            raise ValueError(
                f"{name}: expected finite values (or -inf for a masked class), got {values[column]} in row {row}, "
                f"column {column}"
            )
        if np.isneginf(values).all():
            raise ValueError(f"{name}: expected at least one finite value per row, got none in row {row}")


def as_probabilities(probabilities, name="probabilities"):
    """Check probabilities (n, K): values in [0, 1], rows that sum to one at the precision of their type."""
    probabilities = as_floats(name, probabilities, 2)
    if not (probabilities.min() >= 0 and probabilities.max() <= 1):  # false for NaN
        bad = ~((probabilities >= 0) & (probabilities <= 1))
        row, column = _first(bad), int(bad[_first(bad)].argmax())
        hint = "logits?" if name == "probabilities" else "votes? Divide them by the sum of their row"
        raise ValueError(
            f"{name}: expected values in [0, 1], got {probabilities[row, column]} in row {row}, column {column} "
            f"(are these {hint})"
        )
    sums = probabilities.sum(axis=1, dtype=np.float64)
    n_classes = probabilities.shape[1]
    # the sum of K exponentials that divided them may have been one in single precision
    bad = np.abs(sums - 1) > max(1e-6, np.sqrt(n_classes) * float(np.finfo(np.float32).eps))
    if bad.any():
        bad = np.abs(sums - 1) > _rounding_of(probabilities)
    if bad.any():
        row = _first(bad)
        raise ValueError(f"{name}: expected rows that sum to 1, got {sums[row]:.10g} in row {row}")
    return probabilities


def _rounding_of(probabilities):
    """How far rows may be from a sum of one if their numbers were once rounded to half precision: else 1e-6.

    What was converted afterwards is known by its bits: those of bfloat16, which NumPy does not have, are the first 16
    of a float32.
    """
    n_classes, single = probabilities.shape[1], probabilities.astype(np.float32)
    if np.array_equal(probabilities.astype(np.float16), probabilities):
        half = np.finfo(np.float16)
        return 2 * float(half.eps) + n_classes * float(half.smallest_subnormal)
    if np.array_equal(single, probabilities) and not (single.view(np.uint32) & 0xFFFF).any():
        return 2.0**-7
    return max(1e-6, np.sqrt(n_classes) * float(np.finfo(np.float32).eps))


def as_labels(labels, n, n_classes, name="labels"):
    """Check hard labels (n,): integers from 0 to K - 1. A column (n, 1) is an error, never broadcast."""
    labels = as_array(name, labels)
    if labels.ndim != 1 or len(labels) != n:
        hint = f"; pass {name}[:, 0]" if labels.shape == (n, 1) else ""
        raise ValueError(f"{name}: expected shape ({n},), got {_describe(labels)}{hint}")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected integers, got {_describe(labels)}")
    if labels.min() < 0 or labels.max() >= n_classes:
        row = _first((labels < 0) | (labels >= n_classes))
        raise ValueError(f"{name}: expected values from 0 to {n_classes - 1}, got {labels[row]} in row {row}")
    return labels.astype(np.int64, copy=False)


def as_targets(targets, n, n_classes, name="targets"):
    """Check targets: hard labels (n,) of integer type, or distributions (n, K) whose rows sum to one."""
    targets = as_array(name, targets)
    if targets.ndim != 2 or targets.shape == (n, 1):
        return as_labels(targets, n, n_classes, name)
    if targets.shape != (n, n_classes):
        raise ValueError(
            f"{name}: expected labels ({n},) or distributions ({n}, {n_classes}), got {_describe(targets)}"
        )
    return as_probabilities(targets, name)


def one_hot(targets, n_classes):
    """Checked targets as distributions (n, K)."""
    if targets.ndim == 2:
        return targets
    distributions = np.zeros((len(targets), n_classes))
    distributions[np.arange(len(targets)), targets] = 1
    return distributions


def as_temperature(temperature, name="temperature"):
    """Check a temperature: one finite positive number."""
    number = isinstance(temperature, (int, float, np.integer, np.floating)) and not isinstance(temperature, bool)
    if not number or not 0 < temperature < np.inf:
        raise ValueError(f"{name}: expected one finite number above 0, got {temperature!r}")
    return float(temperature)


def as_confidence(confidence, name="confidence"):
    """Check confidences (n,): values in [0, 1]; their type is kept, since bin edges follow it."""
    confidence = as_floats(name, confidence, 1)
    bad = ~((confidence >= 0) & (confidence <= 1))
    if bad.any():
        row = _first(bad)
        raise ValueError(f"{name}: expected values in [0, 1], got {confidence[row]} in row {row}")
    return confidence


def as_correct(correct, n, name="correct"):
    """Check outcomes (n,): booleans, or numbers that are 0 or 1."""
    correct = as_array(name, correct)
    if correct.shape != (n,):
        raise ValueError(f"{name}: expected shape ({n},), got {_describe(correct)}")
    if correct.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected booleans, or 0 and 1, got {_describe(correct)}")
    bad = (correct != 0) & (correct != 1)
    if bad.any():
        row = _first(bad)
        raise ValueError(f"{name}: expected 0 or 1, got {correct[row]} in row {row}")
    return correct.astype(bool)


def as_count(value, name, minimum=1):
    """Check a whole number of at least `minimum`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ValueError(f"{name}: expected a whole number of at least {minimum}, got {value!r}")
    return int(value)


def as_level(level):
    """Check the level of an interval: a number between 0 and 1."""
    if not isinstance(level, (int, float, np.integer, np.floating)) or not 0 < level < 1:
        raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
    return level


def as_names(name, values):
    """Return strings, integers or the like, in a list or a column with an order, as a list."""
    array = as_array(name, values, dtype=object)
    if array.ndim != 1:  # no axis: a set, a generator, a string
        got = f"a {type(values).__name__}" if array.ndim == 0 else f"shape {array.shape}"
        raise ValueError(f"{name}: expected a list of names, such as strings or integers, got {got}")
    names = array.tolist()
    for row, value in enumerate(names):
        try:
            hash(value)
        except TypeError:
            raise ValueError(f"{name}: expected strings, integers or the like, got {value!r} in row {row}") from None
    return names


def as_clusters(clusters, n, name="clusters"):
    """Check names of clusters (n,), none missing: the different ones in ascending order, and whose each row is."""
    names = as_names(name, clusters)
    missing = [is_missing(value) for value in names]
    if len(missing) != n:
        raise ValueError(f"{name}: expected {n} values, one per row, got {len(missing)}")
    if any(missing):
        raise ValueError(f"{name}: expected a name for each row, got none in row {missing.index(True)}")
    refuse_mixed(names, name)
    try:
        return np.unique(clusters, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{name}: expected names of one type, got several") from error


def refuse_mixed(names, name):
    """Raise where some names are strings and others not: NumPy would turn all into strings, 1 and "1" into one."""
    strings = [isinstance(value, str) for value in names]
    if any(strings) and not all(strings):
        row = strings.index(not strings[0])
        raise ValueError(f"{name}: expected strings or integers, not both, got {names[0]!r} and {names[row]!r}")


def is_missing(value):
    """Whether a value is None, NaN, NaT, or NA of pandas, which does not say whether it equals itself."""
    try:
        return value is None or not value == value
    except TypeError:
        return True

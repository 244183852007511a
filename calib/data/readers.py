"""Readers of the formats that data come in: nothing in a file is run, and what does not fit is refused."""

import io
import json
import pickle
from functools import lru_cache

import numpy as np

from calib.data.registry import DataUnavailable


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


@lru_cache(maxsize=8)  # studies share files
def load_json_lines(content):
    """Read one JSON value per line, to be kept as they are; lines that are none, or nest without end, are refused."""
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

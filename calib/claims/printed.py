"""What the sources print: values that this book answers for, claims, settings (``printed.csv``).

The first five columns say what is printed. The others say what answers for it: ``ours``, the names of results, one for
each number in ``printed``; ``place``, a page of the book and the section that computes them; ``note``, a remark.
"""

import csv
import re
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files

KINDS = {
    "exact": "fully determined: must come out to every printed digit",
    "reaggregate": "follows from the paper's per-seed files: must come out to every printed digit",
    "claim": "a sentence that those files can decide",
    "other split": "another split of the same data: must come out close",
    "bound": "how far two computations of the source agree",
    "protocol": "a setting to adopt",
    "context": "a figure for comparison only",
}


def rows():
    """All rows of ``printed.csv``: dicts with source, where, quantity, printed, kind, ours, place, note."""
    with files("calib.claims").joinpath("printed.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def printed(source, where, quantity):
    """One printed value, as printed.

    Raises
    ------
    KeyError
        If there is not exactly one such row.

    Examples
    --------
    >>> printed("SST-2 isolated fit", "calibration pool", "temperature")
    '2.4819242151'
    """
    key = (source, where, quantity)
    found = [row["printed"] for row in rows() if (row["source"], row["where"], row["quantity"]) == key]
    if len(found) != 1:
        raise KeyError(f"printed.csv: expected one row {key}, found {len(found)}")
    return found[0]


NUMBER = re.compile(r"-?\d+(?:\.\d+)?%?")


def as_printed(text, values):
    """Our values in the shape of a printed text: as many digits, rounded half up, percent where it has percent.

    Parameters
    ----------
    text : str
    values : sequence of numbers
        One for each number in the text.

    Raises
    ------
    ValueError
        If the text has more or fewer numbers than there are values.

    Examples
    --------
    >>> as_printed("0.523 (0.009)", [0.5225, 0.00871])
    '0.523 (0.009)'
    >>> as_printed("4/6", [3, 6]), as_printed("12.9%", [0.12876])
    ('3/6', '12.9%')
    """
    numbers = NUMBER.findall(text)
    if len(numbers) != len(values):
        raise ValueError(f"values: expected {len(numbers)}, one for each number in {text!r}, got {len(values)}")
    remaining = iter(values)
    return NUMBER.sub(lambda number: _like(number[0], next(remaining)), text)


def _like(number, value):
    digits = len(number.rstrip("%").partition(".")[2])
    return half_up(100 * value, digits) + "%" if number.endswith("%") else half_up(value, digits)


def half_up(value, digits):
    """Format a number as the paper prints it: rounded half up in decimal, after dropping binary noise.

    Examples
    --------
    >>> half_up(0.5225, 3), f"{0.5225:.3f}"
    ('0.523', '0.522')
    """
    noiseless = Decimal(f"{value:.12f}")
    rounded = noiseless.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return str(rounded + 0)  # 0 in place of -0

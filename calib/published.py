"""What the sources print: values that this book answers for, claims, settings (``published.csv``)."""

import csv
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
    """All rows of ``published.csv``: dicts with source, where, quantity, printed, kind."""
    with files("calib").joinpath("published.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def printed(source, where, quantity):
    """One published value, as printed.

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
        raise KeyError(f"published.csv: expected one row {key}, found {len(found)}")
    return found[0]


def half_up(value, digits):
    """Format a number as the paper prints it: rounded half up in decimal, after dropping binary noise.

    Examples
    --------
    >>> half_up(0.5225, 3), f"{0.5225:.3f}"
    ('0.523', '0.522')
    """
    noiseless = Decimal(f"{value:.12f}")
    return str(noiseless.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))

"""Logits and labels of one's own, from a CSV file: a table that is not exactly a table is refused, with its line."""

import csv
import io
import re

from calib.predictions import Predictions

WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)


def read_logits(path):
    """Predictions from a CSV with the columns label and logit_0, logit_1, ..., in any order; others are passed over.

    Parameters
    ----------
    path : path
        In UTF-8, with a header; fields in double quotes may hold commas and line ends.

    Returns
    -------
    Predictions
        Ids count the rows.

    Raises
    ------
    ValueError
        For missing or repeated columns, a row with more or fewer fields than the header, an open quote, or a field
        that is no number: names the file, the line and the column.
    """
    header, *rows = _rows(path)
    columns = _columns(path, header)
    if not rows:
        raise ValueError(f"{path}: expected at least one row, found none")
    labels, logits = [], []
    for line, row in rows:
        if len(row) != len(header[1]):
            raise ValueError(
                f"{path}: expected {len(header[1])} fields, as in the header, found {len(row)} in line {line}"
            )
        label, *values = (row[k] for k in columns.values())
        labels.append(int(_field(path, line, "label", label, WHOLE, "a whole number")))
        named = zip(list(columns)[1:], values)
        logits.append([float(_field(path, line, name, value, NUMBER, "a number")) for name, value in named])
    return Predictions(range(len(rows)), logits, labels)


def _rows(path):
    """Rows with the line on which each begins; blank lines are passed over."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected a CSV file in UTF-8, found other bytes ({error.reason})") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found, begin = [], 1
    try:
        for row in reader:
            if row:
                found.append((begin, row))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}: expected a CSV file, found {error} in the row that begins in line {begin}"
        ) from error
    if not found:
        raise ValueError(f"{path}: expected a header with label, logit_0, logit_1, ..., found an empty file")
    return found


def _columns(path, header):
    """Where label, logit_0, logit_1, ... stand in the header."""
    line, names = header
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"{path}: expected each column once, found {twice!r} {names.count(twice)} times in line {line}"
        )
    wanted = ["label", *(f"logit_{k}" for k in range(max(2, sum(name.startswith("logit_") for name in names))))]
    if not set(wanted) <= set(names):
        raise ValueError(f"{path}: expected columns label, logit_0, logit_1, ... without gaps, found {names}")
    return {name: names.index(name) for name in wanted}


def _field(path, line, column, value, form, expected):
    if not form.fullmatch(value.strip()):
        raise ValueError(f"{path}: expected {expected} in column {column}, found {value!r} in line {line}")
    return value

"""Inputs at the edge, given to calib and to the installed peers: python tests/measure/edges.py OUT.json.

The file holds what each program answers, or the error it raises, beside the right answer.
"""

import contextlib
import io
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import peers

import calib

LOGITS, LABELS = peers.workload(1000, 3)
RIGHT = f"{peers.reference_temperature(LOGITS, LABELS):.4f}"
BAD = 400  # the row that is spoilt


def spoilt(array, value):
    array = array.copy()
    array[BAD] = value
    return array


def rows(*values):
    return np.array(values, dtype=np.float32)


def far_logits():
    """Three classes, logits of 1000 and -1000, one row in ten wrong: 2000 / T = ln 18."""
    labels = np.arange(100) % 3
    predicted = np.where(np.arange(100) % 10 == 0, (labels + 1) % 3, labels)
    return (2000 * np.eye(3, dtype=np.float32) - 1000)[predicted], labels


FITS = [  # input, right answer, logits, targets
    ("labels", RIGHT, LOGITS, LABELS),
    ("labels of shape (n, 1)", f"an error, or {RIGHT}", LOGITS, LABELS[:, None]),
    ("a label K", "an error", LOGITS, spoilt(LABELS, 3)),
    ("a label -1", "an error", LOGITS, spoilt(LABELS, -1)),
    ("a NaN logit", "an error", spoilt(LOGITS, [np.nan, 0, 0]), LABELS),
    ("anti-correlated scores", "no optimum: the upper bound, said", rows([4, 0], [4, 0], [0, 4]), np.array([1, 1, 0])),
    ("separable scores", "no optimum: the lower bound, said", rows([4, 0], [0, 4]), np.array([0, 1])),
    ("logits of 1000 and -1000", "691.953", *far_logits()),
    ("constant logits", "not identified, said", np.zeros((100, 3), np.float32), np.arange(100) % 3),
    ("soft labels, softmax at T = 2.5", "2.5", LOGITS, peers.softmax(LOGITS, 2.5)),
]

THREE = rows([0.75, 0.15, 0.1], [0.25, 0.65, 0.1], [0.1, 0.35, 0.55])
FOUR = rows([0.75, 0.15, 0.05, 0.05], [0.15, 0.65, 0.1, 0.1], [0.1, 0.2, 0.55, 0.15])
HITS = np.array([0, 2, 1])  # the first is right: (0.25 + 0.65 + 0.55) / 3
ECES = [  # input, right answer, probabilities, labels; all in ten bins
    ("probabilities and labels", "0.483333", THREE, HITS),
    ("a row of NaN", "an error", np.where([[False], [True], [False]], np.float32(np.nan), THREE), HITS),
    ("confidence [0.92, 1], correct [1, 0]", "0.46", rows([0.92, 0.08], [1, 0]), np.array([0, 1])),
    ("all wrong at confidence 1", "1", np.eye(3, dtype=np.float32), np.array([1, 2, 0])),
    ("a class missing from y", "0.483333", FOUR, HITS),
    ("rows that sum to 1.2", "an error", THREE * np.float32(1.2), HITS),
    ("logits for probabilities", "an error", rows([2, 0.5, 0.1], [0.3, 3, 0.1], [0.2, 0.1, 4]), HITS),
    ("a label K", "an error", THREE, np.array([0, 3, 1])),
    ("labels of shape (n, 1)", "an error, or 0.483333", THREE, HITS[:, None]),
]


def answer(prepare, *data):
    """What a program returns, raises, warns and prints, in a line."""
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            value = prepare(*data)()
        except Exception as error:
            return " ".join(f"{type(error).__name__}: {error}".split())[:240]
    outdated = (DeprecationWarning, FutureWarning)
    said = [str(w.message) for w in caught if not issubclass(w.category, outdated)] + printed.getvalue().split("\n")
    notes = sorted({" ".join(line.split())[:160] for line in said if line.strip()})
    return "; ".join([value if isinstance(value, str) else f"{value:.6g}", *notes])


def describe(logits, targets):
    """The temperature of calib and what it says beside it."""
    fitted = calib.fit_temperature(logits, targets)
    bound = f" at the {fitted.at_bound} bound" if fitted.at_bound else ""
    return lambda: f"{fitted.temperature:.6g}" + bound + ("" if fitted.identified else ", not identified")


def netcal_float32(logits, targets):
    return peers.fit_netcal(logits, targets, np.float32)


def table(cases, programs, *settings):
    """One row for each case, with the answer of every program."""
    return [
        {
            "input": name,
            "right": right,
            "answers": {peer: answer(call, *data, *settings) for peer, call in programs.items()},
        }
        for name, right, *data in cases
    ]


if __name__ == "__main__":
    fits = {**peers.fit, "calib": describe, "netcal from float32": netcal_float32}
    with np.errstate(all="ignore"):
        report = {"machine": peers.machine(), "fit": table(FITS, fits), "ece": table(ECES, peers.ece, 10)}
    Path(sys.argv[1]).write_text(json.dumps(report, indent=1) + "\n")

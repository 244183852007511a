"""The ledger: every printed value beside the one that a build computed, with a verdict."""

from decimal import Decimal

from calib.claims.printed import NUMBER, as_printed

VERDICTS = {
    "exact": "Equal to the printed value in every digit.",
    "not equal": "Should be equal in every digit and is not.",
    "shown": "A claim that the figures bear out in every reading it leaves open; a bound that is kept.",
    "not shown": "A claim that the figures bear out in one reading only, or for means and not for single runs.",
    "contradicted": "A claim that the figures bear out in no reading; a bound that is not kept.",
    "rounding": "A bound of a few last bits of float64, exceeded by sums in another order: no fault of the source.",
    "close": "Another split of the same data; the printed value is in the central 95% of random splits.",
    "not close": "Another split of the same data; the printed value is outside the central 95% of random splits.",
    "context": "Shown for comparison; no verdict is claimed.",
    "pending": "Nothing in this build decides it; the row says why.",
}
ROUNDING = 1e-14
"""Between scores of at most 2: less than fifty times the distance of neighbouring numbers."""


def ledger(results, rows):
    """Every printed row with what a build has for it.

    Parameters
    ----------
    results : dict
        As in ``results.json``: {run: {name: value}}.
    rows : list of dict
        As `calib.claims.printed.rows` gives them.

    Returns
    -------
    list of dict
        The rows in their order. Each gets ``reproduced``, ours in the shape of the printed text; ``difference``, ours
        less printed, at the printed digits; ``verdict``, a key of `VERDICTS`; ``spread``, the central 95% over random
        splits. Texts are empty where there is nothing to say. A pending row has its reason in ``note``.

    Raises
    ------
    KeyError
        If a result that a row names is missing. Only the result that decides a claim may be.

    Notes
    -----
    A row from another split is judged by ``splits_<name>_low`` and ``splits_<name>_high`` of the same run. A claim is
    decided by the text recorded under its name, ``"shown"`` or ``"shown: what came out"``, with any verdict in front.

    Examples
    --------
    >>> row = {"printed": "0.129", "kind": "exact", "ours": "run/ece", "note": ""}
    >>> [found] = ledger({"run": {"ece": 0.1288}}, [row])
    >>> found["reproduced"], found["difference"], found["verdict"]
    ('0.129', '0', 'exact')
    """
    empty = {"reproduced": "", "difference": "", "spread": ""}
    return [row | empty | JUDGES[row["kind"]](results, row) for row in rows]


def _determined(results, row):
    if not row["ours"]:
        return {"verdict": "pending"}
    compared = _compare(results, row)
    return compared | {"verdict": "exact" if compared["reproduced"] == row["printed"] else "not equal"}


def _other_split(results, row):
    names = row["ours"].split()
    values = _values(results, row)
    if any(isinstance(value, str) for value in values):
        return {"reproduced": " ".join(values), "verdict": "context"}
    compared = _compare(results, row)
    printed = [float(number) for number in NUMBER.findall(row["printed"])]
    spreads = [_spread(results, name) for name in names]
    if not all(spreads):
        return compared | {"verdict": "exact" if compared["reproduced"] == row["printed"] else "context"}
    inside = all(low <= value <= high for value, (low, high) in zip(printed, spreads))
    ends = [NUMBER.findall(as_printed(row["printed"], end)) for end in zip(*spreads)]
    spread = "; ".join(f"{low} to {high}" for low, high in zip(*ends))
    return compared | {"verdict": "close" if inside else "not close", "spread": spread}


def _bound(results, row):
    [value] = _values(results, row)
    missed = "rounding" if value <= ROUNDING else "contradicted"
    verdict = "shown" if value <= float(row["printed"]) else missed
    return {"reproduced": f"{value:.0e}".replace("e-0", "e-"), "verdict": verdict}


def _claim(results, row):
    run, name = row["ours"].rsplit("/", 1)
    decided = results.get(run, {}).get(name)
    if decided is None:
        return {"verdict": "pending", "note": "No run decides this claim yet."}
    verdict, _, reproduced = decided.partition(": ")
    if verdict not in VERDICTS:
        raise ValueError(f"{row['ours']}: expected one of {', '.join(VERDICTS)}, then ': ' and a text; got {decided!r}")
    return {"verdict": verdict, "reproduced": reproduced}


def _context(results, row):
    return {"verdict": "context"}


JUDGES = {
    "exact": _determined,
    "reaggregate": _determined,
    "protocol": _determined,
    "other split": _other_split,
    "bound": _bound,
    "claim": _claim,
    "context": _context,
}


def _values(results, row):
    keys = [key.rsplit("/", 1) for key in row["ours"].split()]
    missing = ["/".join(key) for key in keys if key[1] not in results.get(key[0], {})]
    if missing:
        raise KeyError(f"results: no {', '.join(missing)} for {row['source']}, {row['where']}, {row['quantity']}")
    return [results[run][name] for run, name in keys]


def _compare(results, row):
    reproduced = as_printed(row["printed"], _values(results, row))
    pairs = zip(NUMBER.findall(reproduced), NUMBER.findall(row["printed"]))
    differences = [Decimal(ours.rstrip("%")) - Decimal(theirs.rstrip("%")) for ours, theirs in pairs]
    text = " ".join(f"{difference:+}" if difference else "0" for difference in differences)
    return {"reproduced": reproduced, "difference": text if any(differences) else "0"}


def _spread(results, key):
    """Ends of the central 95% over random splits, or nothing where they were not recorded."""
    run, name = key.rsplit("/", 1)
    return tuple(results[run][end] for end in (f"splits_{name}_low", f"splits_{name}_high") if end in results[run])

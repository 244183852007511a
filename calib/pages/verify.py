"""Compare a fresh build with the published record: numbers, each to the tolerance of its kind, and what pages say.

Counts, words and decisions must be equal. All others may differ by what another processor, another build of NumPy or
torch and another number of threads change: the order of sums and the last bits of exp and log.

A score is a mean of n terms of one sign, each correct to a few units of u = 2**-53; however it is summed, its relative
error stays below n u, 2e-12 for the largest n of the book. A temperature is the root of a derivative that is computed
as exactly, and is found to the step at which the search stops: 1e-12 relative in float64, in practice 1e-9 where the
passes over the logits run in float32 (`calib.objective`). A score at a fitted temperature moves by that times its slope
in log T, at most 0.2. A share of the soft-label gap divides by the gap: on CIFAR-10H, slope 0.015 over 0.001, the low
end of the gap's interval, is 2e-8 for each of the two terms. Hence 1e-7 for what is computed from float64 or given
logits. One page draws its logits in float32 and means over them in float32: a few units of 2**-24, hence 1e-6.
Networks that a page trains are trained in float64, since training amplifies the last bits step by step; what it makes
of them stays below 1e-8, and is bound by the same two tolerances.

All of this was measured, under the instructions that older processors and processors of another maker have
(``tests/measure/variation.py``); the trust page says on how many numbers. ARM could not be had.
"""

import re
from dataclasses import dataclass
from itertools import zip_longest

from calib.pages import record as results

TOLERANCES = {"exact": 0.0, "double": 1e-7, "single": 1e-6}
"""Largest difference by kind, over the `scale` of the published number."""
NUMBER = re.compile(r"[-\N{MINUS SIGN}]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def scale(value):
    """What a difference is measured by: the number where it is above 1, 1 down to a hundredth, then less and less.

    A score of 0.011 that moves by 0.01 has moved by all it is. Below a thousandth are differences of scores, which
    carry the rounding of these.

    Examples
    --------
    >>> scale(-20.0), scale(0.3), round(scale(0.005), 3), scale(0.0)
    (20.0, 1.0, 0.5, 0.1)
    """
    size = abs(value)
    return max(1.0, size) if size >= 0.01 else 100 * max(size, 0.001)


@dataclass(frozen=True)
class Difference:
    """One number of a fresh build beside the published one; None where there is none."""

    run: str
    name: str
    published: object
    fresh: object
    kind: str

    @property
    def size(self):
        """The difference over the scale of the published number; infinite between what cannot be compared."""
        if self.published == self.fresh and type(self.published) is type(self.fresh):
            return 0.0
        if type(self.published) is not type(self.fresh) or isinstance(self.published, (str, bool)):
            return float("inf")
        return abs(self.fresh - self.published) / scale(self.published)

    @property
    def within(self):
        """Whether the difference is within the tolerance of its kind."""
        return self.size <= TOLERANCES[self.kind]


def compare(published, fresh, single=()):
    """Differences of two sets of results, {run: {name: value}}, for every name of either.

    Parameters
    ----------
    published, fresh : dict
    single : collection of str
        Runs that draw logits in float32.

    Examples
    --------
    >>> found = compare({"run": {"ece": 0.25, "n": 8}}, {"run": {"ece": 0.25 + 1e-12, "n": 9}})
    >>> [(d.name, d.kind, d.within) for d in found]
    [('ece', 'double', True), ('n', 'exact', False)]
    """
    differences = []
    for run in sorted({*published, *fresh}):
        old, new = published.get(run, {}), fresh.get(run, {})
        for name in sorted({*old, *new}):
            differences.append(Difference(run, name, old.get(name), new.get(name), kind(old.get(name), run in single)))
    return differences


def kind(value, single=False):
    """Kind of a number: a key of `TOLERANCES`."""
    if not isinstance(value, float):
        return "exact"
    return "single" if single else "double"


def unlike_texts(published, fresh):
    """What two executed notebooks say differently: text, tables, captions, beyond the last digit of a printed number.

    Parameters
    ----------
    published, fresh : nbformat.NotebookNode

    Returns
    -------
    list of str
        For each cell that differs, its name and both texts around the first difference.

    Examples
    --------
    >>> unlike("The ECE is 12.9%, n = 6.", "The ECE is 12.8%, n = 6."), unlike("n = 6", "n = 7")
    (None, ('n = 6', 'n = 7'))
    """
    sides = [dict(_texts(notebook)) for notebook in (published, fresh)]
    found = []
    for place in {**sides[0], **sides[1]}:
        difference = unlike(*(side.get(place, "nothing") for side in sides))
        if difference:
            found.append("{}: published {!r}, now {!r}".format(place, *difference))
    return found


def unlike(published, fresh):
    """Both texts around their first difference, or None where only last digits differ."""
    pairs = zip_longest(*(re.split(f"({NUMBER.pattern})", text) for text in (published, fresh)), fillvalue="")
    before = ""
    for old, new in pairs:
        if old != new and not _rounded_alike(old, new):
            return f"{before[-30:]}{old[:60]}", f"{before[-30:]}{new[:60]}"
        before += old
    return None


def _rounded_alike(old, new):
    """Whether two texts are numbers with equally many decimals that differ by one in the last."""
    if not (NUMBER.fullmatch(old) and NUMBER.fullmatch(new)) or "." not in old:
        return False
    (old, power), (new, other) = (_parts(text) for text in (old, new))
    decimals = [len(text.partition(".")[2]) for text in (old, new)]
    return power == other and decimals[0] == decimals[1] and abs(float(old) - float(new)) < 1.5 * 10 ** -decimals[0]


def _parts(text):
    """Digits and exponent of a printed number."""
    digits, _, power = text.replace("\N{MINUS SIGN}", "-").replace(",", "").partition("e")
    return digits, power


def _texts(notebook):
    """Texts of an executed notebook by place; without what an edition adds, and the numbers that `compare` takes."""
    for cell in notebook.cells:
        if not cell.id.startswith("cell-"):
            continue
        if cell.cell_type == "markdown":
            yield cell.id, cell.source
            continue
        shown = cell.metadata.get("mystnb", {})
        texts = [shown["figure"]["caption"], shown["image"]["alt"]] if shown else []
        for output in cell.outputs:
            if results.GLUE not in output.get("data", {}):
                texts.append(output.get("text", ""))
                texts += [output.get("data", {}).get(kind, "") for kind in ("text/markdown", "text/html", "text/plain")]
        yield f"{cell.id}, output", "\n".join(texts)


def unlike_results(notebook, published):
    """First number of an executed notebook that is not in the results as it is there, or None."""
    for run, values in results.collect(notebook).items():
        for name, value in values.items():
            if published.get(run, {}).get(name) != value:
                return f"{run}/{name}: {value} on the page, {published.get(run, {}).get(name)} in the results"
    return None


def unlike_source(notebook, source):
    """First text cell of an executed notebook that is not that of its source with its numbers in place, or None.

    Parameters
    ----------
    notebook, source : nbformat.NotebookNode
        As executed, and as jupytext reads it.
    """
    values = results.glued(notebook)
    expected = [results.resolve(cell.source, values) for cell in source.cells if cell.cell_type == "markdown"]
    ours = [c for c in notebook.cells if c.cell_type == "markdown" and c.id.startswith("cell-")]
    for text, cell in zip_longest(expected, ours):
        if cell is None or text != cell.source:
            where = "end" if cell is None else cell.id
            return f"{where}: expected the text of its source with its numbers, {(text or 'nothing')[:60]!r}"
    return None

"""Compare the numbers of a fresh build with the published record, each to the tolerance of its kind.

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

from dataclasses import dataclass

TOLERANCES = {"exact": 0.0, "double": 1e-7, "single": 1e-6}
"""Largest difference by kind, relative to the published number or, where that is below 1, absolute."""


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
        """The difference, relative where the published number is above 1; infinite between what cannot be compared."""
        if self.published == self.fresh and type(self.published) is type(self.fresh):
            return 0.0
        if type(self.published) is not type(self.fresh) or isinstance(self.published, (str, bool)):
            return float("inf")
        return abs(self.fresh - self.published) / max(1.0, abs(self.published))

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

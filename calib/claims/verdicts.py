"""The claims of the soft-label gap paper (Dogah 2026), each with the rule that decides it from the per-seed results.

A printed value is a mean over training seeds, as the paper says of all its values, and agrees if the mean, rounded
half up, shows the printed digits. A sentence is *shown* if the files bear it out in every reading that it leaves open:
every way to average, and, for a sign or an order, the single runs too. It is *not shown* if they do so in one reading,
or for the means alone, and *contradicted* if in none.
"""

from collections.abc import Callable
from typing import NamedTuple

from calib.claims import rules
from calib.claims.rules import LANGUAGE, VISION
from calib.claims.seeds import SCALES, configurations

BERT_LARGE_S = ("chaosnli-s", "bert-large-uncased")


class Rule(NamedTuple):
    """What decides a claim.

    Attributes
    ----------
    decide : callable
        Gives the verdict from configurations, printed text and options. Its docstring is the rule that the book prints.
    options : tuple
    """

    decide: Callable
    options: tuple = ()

    @property
    def text(self):
        """The rule in words."""
        return " ".join(self.decide.__doc__.split())


def decide(rows, claims):
    """Verdict of every claim, by its name.

    Parameters
    ----------
    rows : list of dict
        As `calib.data.load_dogah2026` gives them.
    claims : list of dict
        Rows of ``printed.csv`` of kind "claim".

    Returns
    -------
    dict of str to Verdict
    """
    runs = configurations(rows)
    rules = {name_of(claim): (rule_of(claim), claim["printed"]) for claim in claims}
    return {name: rule.decide(runs, printed, *rule.options) for name, (rule, printed) in rules.items()}


def name_of(claim):
    """Name under which the verdict of a claim is recorded: its row of ``printed.csv`` says ``claims/<name>``."""
    return claim["ours"].removeprefix("claims/")


def rule_of(claim):
    """The rule of a claim, by its name."""
    return RULES[name_of(claim)]


RULES = {
    "gap_positive": Rule(rules.always_positive),
    "gap_range": Rule(rules.range_of_means),
    "language_gap": Rule(rules.mean_gap, (LANGUAGE,)),
    "vision_gap": Rule(rules.mean_gap, (VISION,)),
    "language_over_vision": Rule(rules.language_over_vision),
    "ratio_vision": Rule(rules.temperature_ratios, (VISION,)),
    "ratio_language": Rule(rules.temperature_ratios, (LANGUAGE,)),
    "largest_ratio": Rule(rules.largest_ratio),
    "vision_gap_over_brier": Rule(rules.largest_share),
    "bert_large_gap_over_brier": Rule(rules.share_of_brier, (BERT_LARGE_S, "brier_hard")),
    "bert_large_degradation": Rule(rules.share_of_brier, (BERT_LARGE_S, "brier_oracle")),
    "gap_over_std_8": Rule(rules.over_deviation, (SCALES, 8)),
    "gap_over_std_18": Rule(rules.over_deviation, (LANGUAGE, 18)),
    "h2_vision": Rule(rules.rises_with_size, ("cifar10h",)),
    "h2_chaosnli_s": Rule(rules.rises_with_size, ("chaosnli-s",)),
    "h2_chaosnli_m": Rule(rules.falls_with_size),
    "h3": Rule(rules.language_above_vision),
    "bert_large_T_hard": Rule(rules.mean_temperature, (BERT_LARGE_S,)),
    "isotonic_at_least": Rule(rules.isotonic_at_least),
}
"""The rule of each claim, by the name under which its verdict is recorded."""

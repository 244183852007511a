"""What decides the claims of the soft-label gap paper: the docstring of each function is the rule that the book prints.

Each takes the per-seed results by configuration, as `configurations` of `calib.claims.seeds` gives, and the text.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calib.claims.printed import NUMBER, as_printed, half_up
from calib.claims.seeds import SCALES, named, ordered_pairs, trend_p
from calib.data.titles import model_title
from calib.reliability import wilson_interval

SHOWN, NOT_SHOWN, CONTRADICTED = "shown", "not shown", "contradicted"
VISION, LANGUAGE = ("cifar10h",), ("chaosnli-s", "chaosnli-m")
JUDGED_M = 800  # the second half of 1,599 examples; every accuracy in the files is a multiple of 1/800
WORDS = {"four": 4, "five": 5, "seven": 7}


class Verdict(NamedTuple):
    """What became of a claim.

    Attributes
    ----------
    verdict : str
        "shown", "not shown" or "contradicted".
    evidence : str
        What decides it, in words.
    figures : dict of str to int or float
        The numbers behind it, by name.
    """

    verdict: str
    evidence: str
    figures: dict


def _grade(fully, partly=False):
    return SHOWN if fully else NOT_SHOWN if partly else CONTRADICTED


def _agrees(value, number):
    return as_printed(number, [value]) == number


def _all_agree(values, printed):
    """Whether each value shows the digits of its printed number; there must be as many numbers as values."""
    numbers = NUMBER.findall(printed)
    if len(numbers) != len(values):
        raise ValueError(f"printed: expected {len(values)} numbers, found {len(numbers)} in {printed!r}")
    return all(map(_agrees, values, numbers))


def _of(runs, datasets, name):
    """Values of one name for each configuration of these data sets: {(dataset, model): array}."""
    return {key: values[name] for key, values in runs.items() if key[0] in datasets}


def _mean_of_means(runs, datasets):
    return np.mean([gap.mean() for gap in _of(runs, datasets, "gap").values()])


def _ratio(values, over, under):
    """Ratio of the means, and mean of the ratios."""
    return np.array([values[over].mean() / values[under].mean(), (values[over] / values[under]).mean()])


def _ends(arrays):
    values = np.concatenate([np.atleast_1d(array) for array in arrays])
    return {"run_low": values.min(), "run_high": values.max()}


def always_positive(runs, printed):
    """Shown if both gaps are above zero in every run.

    Not shown if only in every mean over seeds.
    """
    gaps = [list(_of(runs, SCALES, name).values()) for name in ("gap", "iso_gap")]
    above = [int((np.concatenate(values) > 0).sum()) for values in gaps]
    total = sum(map(len, gaps[0]))
    means = all(value.mean() > 0 for values in gaps for value in values)
    evidence = f"above zero in {above[0]} of {total} runs, isotonic in {above[1]} of {total}"
    figures = {"runs": total, "temperature": above[0], "isotonic": above[1]}
    return Verdict(_grade(above == [total, total], means), evidence, figures)


def range_of_means(runs, printed):
    """Shown if the lowest and the highest mean gap of a configuration agree with print."""
    gaps = _of(runs, SCALES, "gap").values()
    means, ends = [gap.mean() for gap in gaps], _ends(gaps)
    agree = _all_agree([min(means), max(means)], printed)
    evidence = f"{min(means):.5f} to {max(means):.5f}; single runs {ends['run_low']:.5f} to {ends['run_high']:.5f}"
    return Verdict(_grade(agree), evidence, {"low": min(means), "high": max(means)} | ends)


def mean_gap(runs, printed, datasets):
    """Shown if the mean over the configurations agrees with print."""
    mean = _mean_of_means(runs, datasets)
    return Verdict(_grade(_agrees(mean, *NUMBER.findall(printed))), f"{mean:.5f}", {"mean": mean})


def language_over_vision(runs, printed):
    """Shown if the mean language gap over the mean vision gap, neither rounded, agrees with print."""
    language, vision = (_mean_of_means(runs, datasets) for datasets in (LANGUAGE, VISION))
    single = [language / gap.mean() for gap in _of(runs, VISION, "gap").values()]
    evidence = f"{language / vision:.2f}; over single vision models {min(single):.1f} to {max(single):.1f}"
    figures = {"ratio": language / vision, "low": min(single), "high": max(single)}
    return Verdict(_grade(_agrees(language / vision, *NUMBER.findall(printed))), evidence, figures)


def temperature_ratios(runs, printed, datasets):
    """Shown if both ends agree with print, as ratios of the means and as means of the ratios.

    Not shown if in one of the two ways only.
    """
    chosen = [values for key, values in runs.items() if key[0] in datasets]
    ratios = np.array([_ratio(values, "T_oracle", "T_hard") for values in chosen])
    low, high = ratios.min(axis=0), ratios.max(axis=0)  # one for each way of averaging
    agree = [_all_agree(ends, printed) for ends in zip(low, high)]
    ends = _ends([values["T_oracle"] / values["T_hard"] for values in chosen])
    evidence = (
        f"{low[0]:.3f} to {high[0]:.3f} as ratios of means, {low[1]:.3f} to {high[1]:.3f} as means of ratios; "
        f"single runs {ends['run_low']:.2f} to {ends['run_high']:.2f}"
    )
    figures = {"low": low[0], "high": high[0], "mean_low": low[1], "mean_high": high[1]} | ends
    return Verdict(_grade(all(agree), any(agree)), evidence, figures)


def largest_ratio(runs, printed):
    """Shown if the named one is the largest and agrees with print, as ratio of the means and as mean of the ratios.

    Not shown if in one of the two ways only.
    """
    ratios = {key: _ratio(values, "T_oracle", "T_hard") for key, values in runs.items()}
    largest = [max(ratios, key=lambda key, way=way: ratios[key][way]) for way in (0, 1)]
    values = [ratios[key][way] for way, key in enumerate(largest)]
    agree = [
        _agrees(value, NUMBER.findall(printed)[0]) and named(key) in printed for key, value in zip(largest, values)
    ]
    run = max((values["T_oracle"] / values["T_hard"]).max() for values in runs.values())
    ways = ", ".join(f"{value:.4f} {way}" for value, way in zip(values, ("as ratio of means", "as mean of ratios")))
    figures = {"of_means": values[0], "mean": values[1], "run": run}
    return Verdict(_grade(all(agree), any(agree)), f"{ways}; largest single run {run:.2f}", figures)


def share_of_brier(runs, printed, configuration, under):
    """Shown if the share agrees with print, as ratio of the means and as mean of the ratios.

    Not shown if in one of the two ways only.
    """
    values, number = runs[configuration], NUMBER.findall(printed)[0]
    shares, ends = _ratio(values, "gap", under), _ends([values["gap"] / values[under]])
    agree = [_agrees(share, number) for share in shares]
    evidence = (
        f"{shares[0]:.1%} as ratio of means, {shares[1]:.1%} as mean of ratios; single runs {ends['run_low']:.1%} to "
        f"{ends['run_high']:.1%}"
    )
    return Verdict(_grade(all(agree), any(agree)), evidence, {"of_means": shares[0], "mean": shares[1]} | ends)


def largest_share(runs, printed):
    """Shown if the model has the largest mean vision gap and its share, ratio of means and mean of ratios, agrees.

    Not shown if in one of the two ways only.
    """
    gaps = _of(runs, VISION, "gap")
    largest = max(gaps, key=lambda key: gaps[key].mean())
    found = share_of_brier(runs, printed, largest, "brier_hard")
    verdict = found.verdict if model_title(largest[1]) in printed else CONTRADICTED
    return found._replace(verdict=verdict, evidence=f"{model_title(largest[1])} {found.evidence}")


def over_deviation(runs, printed, datasets, threshold):
    """Shown if as many as printed are above, with n and with n - 1 in the deviation and from the numbers in print.

    Configurations whose deviation rounds to 0.000 are left out. Not shown if not in all three ways.
    """
    expected, *among = [WORDS[word] for word in printed.split() if word in WORDS]
    gaps = list(_of(runs, datasets, "gap").values())
    ways = {
        "n": [(gap.mean(), gap.std()) for gap in gaps],
        "n_minus_1": [(gap.mean(), gap.std(ddof=1)) for gap in gaps],
        "rounded": [(float(half_up(gap.mean(), 3)), float(half_up(gap.std(), 3))) for gap in gaps],
    }
    shown = {way: [(m, s) for m, s in pairs if half_up(s, 3) != "0.000"] for way, pairs in ways.items()}
    counts = {way: sum(m / s > threshold for m, s in pairs) for way, pairs in shown.items()}
    agree = [counts[way] == expected and len(shown[way]) == (among or [len(gaps)])[0] for way in ways]
    evidence = (
        f"{counts['n']} with n in the denominator, {counts['n_minus_1']} with n - 1, {counts['rounded']} from print"
    )
    return Verdict(_grade(all(agree), any(agree)), evidence, counts)


def rises_with_size(runs, printed, dataset):
    """Shown if the mean gaps are as printed and at both steps up every run of the larger model has the larger gap.

    Not shown if only the means rise.
    """
    groups = list(_of(runs, [dataset], "gap").values())
    means, steps = [gap.mean() for gap in groups], [ordered_pairs(*pair) for pair in pairwise(groups)]
    sizes = [len(a) * len(b) for a, b in pairwise(groups)]
    rise = all(a < b for a, b in pairwise(means)) and (not NUMBER.findall(printed) or _all_agree(means, printed))
    evidence = (
        f"means {', '.join(f'{mean:.5f}' for mean in means)}; the larger model has the larger gap in {steps[0]} of "
        f"{sizes[0]} and in {steps[1]} of {sizes[1]} pairs of runs"
    )
    figures = {"first_step": steps[0], "second_step": steps[1], "ends": ordered_pairs(groups[0], groups[-1])}
    figures |= {"p": trend_p(groups)}
    return Verdict(_grade(rise and steps == sizes, rise), evidence, figures)


def falls_with_size(runs, printed):
    """Shown if the mean gaps fall, the accuracies are in the printed range, and near chance.

    Near chance: 1/3, a uniform guess, is in the 95% Wilson interval of every accuracy. Not shown if in that of some.
    """
    groups = list(_of(runs, ["chaosnli-m"], "gap").values())[::-1]
    means, steps = [gap.mean() for gap in groups], [ordered_pairs(*pair) for pair in pairwise(groups)]
    accuracies = np.array([accuracy.mean() for accuracy in _of(runs, ["chaosnli-m"], "accuracy").values()])
    low, high = (int(number.strip("-%")) for number in NUMBER.findall(printed))
    facts = all(a < b for a, b in pairwise(means)) and all(low <= int(half_up(100 * a, 0)) <= high for a in accuracies)
    lower, upper = wilson_interval(accuracies * JUDGED_M, np.full(len(accuracies), JUDGED_M))
    chance = (lower <= 1 / 3) & (1 / 3 <= upper)
    evidence = (
        f"in {sum(steps)} of {sum(len(a) * len(b) for a, b in pairwise(groups))} pairs of neighbours the larger model "
        f"has the smaller gap; but accuracy is {accuracies.min():.1%} to {accuracies.max():.1%}, and a uniform guess "
        "is right in 33.3%"
    )
    figures = {"first_step": steps[1], "second_step": steps[0], "p": trend_p(groups)}
    figures |= {"accuracy_low": accuracies.min(), "accuracy_high": accuracies.max()}
    return Verdict(_grade(facts and chance.all(), facts and chance.any()), evidence, figures)


def language_above_vision(runs, printed):
    """Shown if every language run has a larger gap than every vision run.

    Not shown if only the mean of the language configurations is larger.
    """
    low = _ends(_of(runs, LANGUAGE, "gap").values())["run_low"]
    high = _ends(_of(runs, VISION, "gap").values())["run_high"]
    larger = _mean_of_means(runs, LANGUAGE) > _mean_of_means(runs, VISION)
    evidence = f"smallest gap of a language run {low:.4f}, largest of a vision run {high:.4f}"
    return Verdict(_grade(low > high, larger), evidence, {"language_run_low": low, "vision_run_high": high})


def mean_temperature(runs, printed, configuration):
    """Shown if the mean over seeds agrees with print."""
    temperatures = runs[configuration]["T_hard"]
    mean, ends = temperatures.mean(), _ends([temperatures])
    evidence = f"{mean:.4f}; single runs {ends['run_low']:.3f} to {ends['run_high']:.3f}"
    return Verdict(_grade(_agrees(mean, *NUMBER.findall(printed))), evidence, {"mean": mean} | ends)


def isotonic_at_least(runs, printed):
    """Shown if in every language run the isotonic gap is at least the temperature gap of the same run.

    Not shown if only in every mean over seeds.
    """
    over = [values["iso_gap"] - values["gap"] for key, values in runs.items() if key[0] in LANGUAGE]
    means, each = [difference.mean() >= 0 for difference in over], np.concatenate(over)
    evidence = f"in {sum(means)} of {len(means)} means and {(each >= 0).sum()} of {len(each)} runs"
    figures = {"runs": int((each >= 0).sum()), "smallest_difference": each.min()}
    return Verdict(_grade((each >= 0).all(), all(means)), evidence, figures)

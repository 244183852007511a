# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The paper's own numbers, audited
#
# {cite:t}`dogah2026` publishes its results per training seed. Its tables follow from them to every printed digit, as
# [](soft-label-gap-summary.ipynb) shows. Do its sentences? Each of them gets a rule, and a verdict beside it.
#
# :::{admonition} Before you start
# - **You will** see which sentences the files bear out, what three training seeds can show and what they cannot, how far "near chance" is
#   from chance, and what the released code does to the numbers.
# - **You need** the definitions and the protocol of [](../soft-label-gap.md).
# - **Time** about 10 minutes to read, a few seconds to run.
# :::
#
# **Primary analyses**: the verdict of every sentence by the rule that stands beside it; for H2, whether the runs of neighbouring
# scales separate; for "near chance", references computed from the votes; and for the released code, two measurements on our own runs,
# of the overlap and of the ECE. Everything else on this page is exploratory and says so. The rules were written by readers of the paper's tables,
# so they are stated in full, for others to disagree with.

# %% tags=["hide-input"]
from math import comb, factorial

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown
from scipy.stats import t as student

from calib import brier, ece, fit_temperature, softmax, top_label
from calib.claims.printed import half_up, rows
from calib.claims.rules import CONTRADICTED, LANGUAGE, NOT_SHOWN, SHOWN, VISION
from calib.claims.seeds import configurations, named
from calib.claims.verdicts import decide, name_of, rule_of
from calib.data import DATASETS, SETS, load_dogah2026
from calib.data.titles import model_title
from calib.pages.record import load_runs, record
from calib.pages.show import show, table
from calib.plots import COLOURS, DASHED, label, log_axis
from calib.reliability import wilson_interval
from calib.softlabels.gap import N_BINS
from calib.softlabels.study import key_of, load_study

plt.style.use("calib.paper")

# %% tags=["parameters"]
results_folder = "../_build/results"  # where the runs of the gap study put their numbers
gap_runs = ["soft-label-gap"]  # the runs on which the released code's choices are measured

# %% [markdown]
# ## The sentences and their verdicts
#
# A printed value is a mean over training seeds, as the paper says of all its values, and *agrees* if that mean, rounded half up, shows
# the printed digits. A run is one configuration of data set and model with one seed. A sentence is
#
# - **shown** if the files bear it out in every reading that it leaves open: in every way to compute a number, and for a sign or an order
#   in the single runs too;
# - **not shown** if they do so in one reading only, or for the means over seeds and not for the runs; it may be true;
# - **contradicted** if they do so in none.

# %%
claims = [row for row in rows() if row["kind"] == "claim"]
results = load_dogah2026()
verdicts = decide(results, claims)

# %% tags=["hide-input"]
sentence = {name_of(claim): f"{claim['quantity'][0].upper()}{claim['quantity'][1:]}: “{claim['printed']}”" for claim in claims}
record("claims", **{name: f"{found.verdict}: {found.evidence}" for name, found in verdicts.items()})
figures = {f"{name}_{key}": value for name, found in verdicts.items() for key, value in found.figures.items()}
counts = {word: sum(v.verdict == word for v in verdicts.values()) for word in (SHOWN, NOT_SHOWN, CONTRADICTED)}
record("paper-audited", **figures, claims=len(verdicts), shown=counts[SHOWN], not_shown=counts[NOT_SHOWN], contradicted=counts[CONTRADICTED])
rule = {name_of(claim): rule_of(claim).text for claim in claims}
Markdown("\n".join(
    f"{sentence[name]}\n: **{found.verdict.capitalize()}.** {found.evidence[0].upper()}{found.evidence[1:]}.\n: *Rule.* {rule[name]}\n"
    for name, found in verdicts.items()
))

# %% [markdown]
# Of {glue:text}`paper-audited/claims:d` sentences: {glue:text}`paper-audited/shown:d` shown, {glue:text}`paper-audited/not_shown:d` not shown,
# {glue:text}`paper-audited/contradicted:d` contradicted. Every printed number can be had from the files. What is not shown, and why:
#
# - The largest ratio of temperatures is the printed one only as the ratio of the mean temperatures
#   ({glue:text}`paper-audited/largest_ratio_of_means:.4f`). The mean of the three ratios, {glue:text}`paper-audited/largest_ratio_mean:.4f`,
#   rounds to another last digit.
# - Language configurations whose gap is above 18 deviations are {glue:text}`paper-audited/gap_over_std_18_n:d` with n in the denominator of
#   the deviation, {glue:text}`paper-audited/gap_over_std_18_n_minus_1:d` with $n - 1$, and
#   {glue:text}`paper-audited/gap_over_std_18_rounded:d` if one divides the numbers in print. With three seeds the choice of denominator is
#   a factor of {glue:text}`paper-audited/deviation_factor:.2f`. The sentence about 8 deviations does not depend on it.
# - The isotonic gap is the larger one in {glue:text}`paper-audited/isotonic_at_least_runs:d` of
#   {glue:text}`paper-audited/language_runs:d` language runs; in the others the difference is at most
#   {glue:text}`paper-audited/isotonic_at_most_below:.5f`.
# - That the gap grows with scale, on CIFAR-10H and on ChaosNLI-S: the means rise, and neighbours in scale overlap. Three means rise by accident in one case of six; the next section comes to it.
#
# Contradicted is one part of a sentence on ChaosNLI-M: the order is reversed, as it says, but accuracies of {glue:text}`paper-audited/h2_chaosnli_m_accuracy_low:.0%` to
# {glue:text}`paper-audited/h2_chaosnli_m_accuracy_high:.0%` are not near chance if chance is a uniform guess. The section on chance below has another meaning that makes it defensible.
#
# ## What three seeds show

# %%
runs = configurations(results)
n_seeds = len(next(iter(runs.values()))["seed"])
gaps = {key: values["gap"] for key, values in runs.items()}
half = {
    key: student.ppf(0.975, n_seeds - 1) * gap.std(ddof=1) / np.sqrt(n_seeds)
    for key, gap in gaps.items()
}
share = {key: values["gap"] / values["brier_hard"] for key, values in runs.items()}
lowest, narrow = min((gap.mean() - half[key], key) for key, gap in gaps.items())

# %% tags=["hide-input"]
cells = []
for key, gap in gaps.items():
    ends = gap.mean() - half[key], gap.mean() + half[key]
    shares = [f"{half_up(100 * values.mean(), 1)}%" for values in (share[key], runs[key]["accuracy"])]
    numbers = [f"{value:#.3g}" for value in (*gap, gap.mean(), gap.std(), gap.std(ddof=1))]
    cells.append([named(key), *numbers, f"{ends[0]:#.3g} to {ends[1]:#.3g}", *shares])
seeds = [f"Seed {seed}" for seed in runs["cifar10h", "resnet18"]["seed"]]
table("l" + "r" * 9, ["Configuration", *seeds, "Mean", "Std, $n$", "Std, $n - 1$", "95% interval", "Of the Brier score", "Accuracy"], cells)

# %% [markdown]
# The gap of each run. Exploratory: the interval of Student's t for the mean over seeds, and the gap's share of the Brier score of
# $T_\mathrm{hard}$, mean over seeds.

# %% tags=["hide-input"]
RUN = COLOURS["other"]
fig, ax = plt.subplots(figsize=(7.2, 4.4))
for y, gap in enumerate(reversed(gaps.values())):
    ax.plot(gap, np.full(len(gap), y), "o", color=RUN, markersize=6, alpha=0.75)
    ax.plot([gap.mean()] * 2, [y - 0.32, y + 0.32], color=RUN, linewidth=2)
    label(ax, f"{gap.mean():#.3g}", (gap.max(), y), (8, 0), RUN)
ax.set_yticks(range(len(gaps)), [model_title(model) for _, model in reversed(gaps)])
for y, dataset in zip((7, 4, 1), ("cifar10h", "chaosnli-s", "chaosnli-m")):
    label(ax, DATASETS[dataset], (0.5, y), (0, 0), xycoords=("axes fraction", "data"), weight="bold")
for edge in (2.5, 5.5):
    ax.axhline(edge, color=COLOURS["neutral"], linewidth=0.6)
log_axis(ax.xaxis, [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
ax.set_xlim(0.0012, 0.3)
ax.grid(axis="y", visible=False)
ax.set_xlabel("soft-label gap; dots: seeds, lines: their mean")
show(
    fig,
    name="fig-audit-gaps",
    caption=f"The gap of each of the paper's {len(results)} runs, by data set and from the small model to the large one, from its per-seed "
    "files. Judged on the second half of each set of soft-labelled examples.",
    alt="Soft-label gap per seed. Means: " + "; ".join(f"{named(key)} {gap.mean():#.3g}" for key, gap in gaps.items()) + ". The runs of "
    "neighbouring models overlap on CIFAR-10H and between BERT-base and BERT-large on ChaosNLI-S; on ChaosNLI-M they fall apart, "
    "the larger model with the smaller gap.",
)

# %% tags=["remove-cell"]
language, vision = ([key for key in runs if key[0] in datasets] for datasets in (LANGUAGE, VISION))
record(
    "paper-audited",
    seeds=n_seeds,
    deviation_factor=np.sqrt(n_seeds / (n_seeds - 1)),
    language_runs=sum(len(gaps[key]) for key in language),
    vision_runs=sum(len(gaps[key]) for key in vision),
    sign_p=2 * 0.5**n_seeds,
    lowest_interval_end=lowest,
    lowest_interval=named(narrow),
    deals=factorial(3 * n_seeds) // factorial(n_seeds) ** 3,
    intervals_above_zero=sum(gap.mean() > half[key] for key, gap in gaps.items()),
    isotonic_at_most_below=-verdicts["isotonic_at_least"].figures["smallest_difference"],
    language_share_low=min(share[key].min() for key in language),
    vision_share_high=max(share[key].max() for key in vision),
    share_s_small=share["chaosnli-s", "distilbert-base-uncased"].mean(),
    share_s_middle=share["chaosnli-s", "bert-base-uncased"].mean(),
    share_s_large=share["chaosnli-s", "bert-large-uncased"].mean(),
    accuracy_s_small=runs["chaosnli-s", "distilbert-base-uncased"]["accuracy"].mean(),
    accuracy_s_middle=runs["chaosnli-s", "bert-base-uncased"]["accuracy"].mean(),
    accuracy_s_large=runs["chaosnli-s", "bert-large-uncased"]["accuracy"].mean(),
);

# %% [markdown]
# **H1, the gap is above zero.** So it is in {glue:text}`paper-audited/gap_positive_temperature:d` of
# {glue:text}`paper-audited/gap_positive_runs:d` runs, and for isotonic regression in {glue:text}`paper-audited/gap_positive_isotonic:d`.
# For one configuration three seeds of one sign prove little: the smallest two-sided p of a sign test is
# {glue:text}`paper-audited/sign_p:.2f`. Exploratory: of the nine intervals of Student's t {glue:text}`paper-audited/intervals_above_zero:d` lie above zero; the lowest end, of
# {glue:text}`paper-audited/lowest_interval:s`, is {glue:text}`paper-audited/lowest_interval_end:.5f`. These intervals speak of other trainings, not of other
# examples: all runs of a data set are judged on the same ones. And the sign is no discovery. The oracle is fitted to the score that judges
# it, on examples of the same kind, so that it can lose by sampling error only. What is to be learned is the size.
#
# **H2, the gap grows with scale.** Three independent means fall into a given order by chance in one case of six, so an order of means alone is weak
# evidence. The seeds of two models have nothing in common but their number, so nothing
# is paired. With three runs of each model, nine pairs compare two neighbours in scale, and the hypothesis says that the larger model has the larger gap:
#
# | data set | small to middle | middle to large | exact p of a rise | exact p of a fall |
# |:---|---:|---:|---:|---:|
# | CIFAR-10H | {glue:text}`paper-audited/h2_vision_first_step:d` of 9 | {glue:text}`paper-audited/h2_vision_second_step:d` of 9 | {glue:text}`paper-audited/h2_vision_p:.4f` | |
# | ChaosNLI-S | {glue:text}`paper-audited/h2_chaosnli_s_first_step:d` of 9 | {glue:text}`paper-audited/h2_chaosnli_s_second_step:d` of 9 | {glue:text}`paper-audited/h2_chaosnli_s_p:.4f` | |
# | ChaosNLI-M, reversed | {glue:text}`paper-audited/h2_chaosnli_m_first_step:d` of 9 | {glue:text}`paper-audited/h2_chaosnli_m_second_step:d` of 9 | | {glue:text}`paper-audited/h2_chaosnli_m_p:.4f` |
#
# The p-values are one-sided and exploratory: Jonckheere's test over all {glue:text}`paper-audited/deals:,d` ways to deal nine gaps to three models. In vision the
# seeds do not separate any two neighbours, but the ends: ResNet-101 has the larger gap than ResNet-18 in {glue:text}`paper-audited/h2_vision_ends:d` of 9 pairs, and BERT-large than DistilBERT on
# ChaosNLI-S in {glue:text}`paper-audited/h2_chaosnli_s_ends:d` of 9. A gap that is larger for the largest model than for the smallest is what the runs do show there. On ChaosNLI-S they separate DistilBERT from BERT-base and not BERT-base from BERT-large. The one
# order that is beyond the noise of seeds at both steps is the reversed one on ChaosNLI-M, which the paper calls inconclusive.
# That a rise at each step is not shown does not make it false: with three seeds only a step larger than the spread of the runs can be seen.
#
# Scale is not alone in changing on ChaosNLI-S. The accuracy falls from {glue:text}`paper-audited/accuracy_s_small:.1%` to
# {glue:text}`paper-audited/accuracy_s_middle:.1%` to {glue:text}`paper-audited/accuracy_s_large:.1%`. The two smaller models start from published checkpoints that were
# fine-tuned on SNLI. BERT-large starts from a checkpoint of the paper's own, trained for one epoch on 10,000 pairs with embeddings and all but the last
# four layers frozen (`experiments/language/finetune_bert_large_snli.py`). Size and training change together, so the
# gap cannot be put down to size. Exploratory: as a share of the Brier score of $T_\mathrm{hard}$ the gap falls, from {glue:text}`paper-audited/share_s_small:.1%` to
# {glue:text}`paper-audited/share_s_middle:.1%` to {glue:text}`paper-audited/share_s_large:.1%`.
#
# **H3, the gap is larger in language than in vision.** The smallest gap of {glue:text}`paper-audited/language_runs:d` language runs,
# {glue:text}`paper-audited/h3_language_run_low:.4f`, is far above the largest of {glue:text}`paper-audited/vision_runs:d` vision runs,
# {glue:text}`paper-audited/h3_vision_run_high:.4f`. Exploratory: as a share of the Brier score too ({glue:text}`paper-audited/language_share_low:.1%` and
# {glue:text}`paper-audited/vision_share_high:.1%`). No seed is needed to see it. What the runs cannot say is why: there is one data set of images and one kind of sentence pairs, whose
# examples were chosen because annotators disagreed on them {cite:p}`nie2020`, and classes, accuracies and training differ too. The factor of
# {glue:text}`paper-audited/language_over_vision_ratio:.0f` divides by a mean over three small gaps; over one vision model at a time it is
# {glue:text}`paper-audited/language_over_vision_low:.0f` to {glue:text}`paper-audited/language_over_vision_high:.0f`.
#
# ## Near chance?
#
# On ChaosNLI-M the paper explains the reversed order by accuracies near chance. Chance can mean a uniform guess, or the constant answer: the class that most often
# has the majority. And what would a human score? A human is one vote drawn at random: how often is it the majority's (to which it belongs), and how often
# that of another voter? All of this comes from the votes on the half that the paper judges on.

# %%
references = {}
for dataset in LANGUAGE:
    votes = np.array(list(SETS[dataset].votes().values()))
    votes = votes[len(votes) // 2 :]
    n_votes = votes.sum(axis=1, keepdims=True)
    agreement = votes * (votes - 1) / (n_votes * (n_votes - 1))
    references[dataset] = {
        "judged": len(votes),
        "uniform": 1 / votes.shape[1],
        "constant": np.bincount(votes.argmax(axis=1)).max() / len(votes),
        "two_humans": agreement.sum(axis=1).mean(),
        "human": (votes.max(axis=1) / n_votes[:, 0]).mean(),
    }

# %% tags=["remove-cell"]
for dataset, found in references.items():
    record("paper-audited", **{f"{name}_{dataset[-1]}": value for name, value in found.items()})

# %% tags=["hide-input"]
words = {"uniform": "uniform\nguess", "constant": "constant\nanswer", "two_humans": "two humans\nagree", "human": "human and\nmajority"}
fig, axes = plt.subplots(2, 1, figsize=(7.2, 5), sharex=True)
for ax, (dataset, found) in zip(axes, references.items()):
    for name, text in words.items():
        ax.axvline(found[name], color=COLOURS["neutral"], linewidth=1.2, linestyle=DASHED, zorder=1)
        label(ax, f"{text}\n{found[name]:.1%}", (found[name], 3.6), (3, 0), va="top")
    chosen = [key for key in reversed(runs) if key[0] == dataset]
    for y, key in enumerate(chosen):
        accuracy = runs[key]["accuracy"]
        low, high = wilson_interval([accuracy.mean() * found["judged"]], [found["judged"]])
        ax.plot([low[0], high[0]], [y, y], color=RUN, linewidth=5, alpha=0.3, solid_capstyle="butt")
        ax.plot(accuracy, np.full(len(accuracy), y), "o", color=RUN, markersize=6, alpha=0.75)
    ax.set_yticks(range(len(chosen)), [model_title(model) for _, model in chosen])
    ax.set(ylim=(-0.6, 3.8), xlim=(0.3, 0.87), title=f"{DATASETS[dataset]}, n = {found['judged']:,}")
    ax.grid(visible=False)
axes[-1].set_xlabel("accuracy against the majority of the votes, or agreement; dots: seeds")
show(
    fig,
    name="fig-audit-chance",
    caption="Accuracy of the paper's language runs against the majority of the votes, with the 95% Wilson interval of the mean over seeds, beside "
    "four references from the votes on the same half.",
    alt="; ".join(
        f"{DATASETS[dataset]}: uniform guess {found['uniform']:.1%}, constant answer {found['constant']:.1%}, two humans {found['two_humans']:.1%}, human and "
        f"majority {found['human']:.1%}; " + ", ".join(f"{model_title(key[1])} {half_up(100 * runs[key]['accuracy'].mean(), 1)}%" for key in runs if key[0] == dataset)
        for dataset, found in references.items()
    ) + ".",
)

# %% tags=["remove-cell"]
over = {key: runs[key]["accuracy"].mean() - references[key[0]]["constant"] for key in language}
low = {key: wilson_interval([runs[key]["accuracy"].mean() * references[key[0]]["judged"]], [references[key[0]]["judged"]])[0][0] for key in language}
reach = [model_title(key[1]) for key in language if key[0] == "chaosnli-m" and low[key] <= references["chaosnli-m"]["constant"]]
record(
    "paper-audited",
    over_constant_m_low=min(over[key] for key in language if key[0] == "chaosnli-m"),
    over_constant_m_high=max(over[key] for key in language if key[0] == "chaosnli-m"),
    over_constant_s_large=over["chaosnli-s", "bert-large-uncased"],
    reach_constant_m=" and ".join(reach) or "no model",
);

# %% [markdown]
# The accuracies on ChaosNLI-M, {glue:text}`paper-audited/h2_chaosnli_m_accuracy_low:.1%` to {glue:text}`paper-audited/h2_chaosnli_m_accuracy_high:.1%`, are nowhere near
# the {glue:text}`paper-audited/uniform_m:.1%` of a uniform guess. They are near the {glue:text}`paper-audited/constant_m:.1%` of the constant answer: they are higher by
# {glue:text}`paper-audited/over_constant_m_low:.1%` to {glue:text}`paper-audited/over_constant_m_high:.1%` of the examples, and the interval of
# {glue:text}`paper-audited/reach_constant_m:s` contains it. A human vote agrees with the majority in {glue:text}`paper-audited/human_m:.1%` of the cases and with another human in
# {glue:text}`paper-audited/two_humans_m:.1%`. In this sense the sentence can be defended. But then it strikes BERT-large on ChaosNLI-S as well: there
# {glue:text}`paper-audited/accuracy_s_large:.1%` is {glue:text}`paper-audited/over_constant_s_large:.1%` above the constant answer,
# {glue:text}`paper-audited/constant_s:.1%`, and that run is the last step of the order that counts as support for H2.
#
# ## What the released code does
#
# The code beside the paper (repository dogahwisdom/temperature-scaling-research, commit 49420b1) was read, not run.
#
# - **The overlap.** $T_\mathrm{hard}$ is fitted on the whole development split, which contains the soft-labelled examples, the judged ones too
#   (`experiments/language/train_bert.py`). It can move $T_\mathrm{hard}$ on ChaosNLI, and with it the gap, the Brier score and the ECE of
#   $T_\mathrm{hard}$. Measured below.
# - **No segment ids.** The BERT models get ids and mask only, so that nothing but the separator tells the two sentences of a pair apart (the same file). It can move
#   accuracy and logits of BERT-base and BERT-large, and so two of the three models of each H2 series on ChaosNLI; DistilBERT has no segment ids. In which
#   direction cannot be said. Not measured: it needs the models.
# - **Augmented validation images.** The validation subset keeps the random crops and flips of training (`experiments/vision/train_resnet.py`). It can move
#   $T_\mathrm{hard}$ on CIFAR-10H, and every vision gap with it. Not measured on the paper's networks, which are not published; nine networks of our own, in [](three-scales.ipynb), have a lower
#   $T_\mathrm{hard}$ then and a much larger gap.
# - **A confidence of exactly 1** is in no bin of the ECE (`experiments/utils/calibration.py`). It can move every ECE, most of all at T = 1 in vision, by leaving out the
#   surest examples. Accuracy, Brier scores and gaps stay. Measured below.
#
# ### The overlap
#
# The {glue:text}`paper-audited/pairs:d` pairs of model and seed on ChaosNLI, four times: $T_\mathrm{hard}$ from the whole development
# file (overlapping validation), without the judged examples, without the oracle's half instead, and without either (disjoint validation). The oracle
# stays the same. Taking examples out does two things: the fit no longer sees what it is judged on, and the validation set loses some of its
# hardest examples. To leave out the oracle's half does only the second.

# %%
recorded = {
    name: values
    for name, values in load_runs(results_folder, gap_runs).items()
    if "images" not in values
}  # of public models
pairs, data = {}, {}
for name in (name for name in recorded if name.endswith("/paper")):
    dataset, model, seed, _ = key_of(name)
    study = load_study(dataset, model, seed)
    validation, oracle, judged = study.validation, study.first, study.second
    data[dataset, model, seed] = judged
    if dataset in LANGUAGE:
        found = {
            "paper": recorded[name],
            "clean": recorded[name.replace("paper", "clean")],
        }
        for way, left_out in (("judged", judged), ("oracle", oracle)):
            kept = validation.without(left_out.ids)
            T = fit_temperature(kept.logits, kept.labels).temperature
            gap = (
                brier(softmax(judged.logits, T), judged.distributions)
                - recorded[name]["brier_oracle"]
            )
            found[way] = {"T_hard": T, "gap": gap, "n_val": len(kept)}
        pairs[dataset, model, seed] = found

# %% tags=["hide-input"]
WAYS = {"paper": "whole file", "judged": "without judged", "oracle": "without oracle's", "clean": "without both"}
cells = []
for (dataset, model, seed), found in pairs.items():
    numbers = [f"{found[way]['T_hard']:.3f}" for way in WAYS] + [f"{found[way]['gap']:.4f}" for way in WAYS]
    cells.append([DATASETS[dataset], model_title(model), seed, *numbers])
heads = [f"{name}, {text}" for name in ("$T_\\mathrm{hard}$", "Gap") for text in WAYS.values()]
table("llr" + "r" * 8, ["Data", "Model", "Seed", *heads], cells)

# %% tags=["remove-cell"]
change = {way: np.array([found[way]["gap"] / found["paper"]["gap"] - 1 for found in pairs.values()]) for way in WAYS}
rest = np.array([(found["judged"]["gap"] - found["oracle"]["gap"]) / found["paper"]["gap"] for found in pairs.values()])
record(
    "paper-audited",
    pairs=len(pairs),
    **{f"gap_without_{way}_{end}": getattr(change[way], end)() for way in ("judged", "oracle", "clean") for end in ("min", "max")},
    gap_seen_min=rest.min(),
    gap_seen_max=rest.max(),
    T_hard_fall_min=min(1 - found["clean"]["T_hard"] / found["paper"]["T_hard"] for found in pairs.values()),
    T_hard_fall_max=max(1 - found["clean"]["T_hard"] / found["paper"]["T_hard"] for found in pairs.values()),
);

# %% [markdown]
# The overlap makes the gap smaller, not larger. Without the judged examples it is {glue:text}`paper-audited/gap_without_judged_min:.0%` to
# {glue:text}`paper-audited/gap_without_judged_max:.0%` larger than with the whole file, and without any soft-labelled example
# {glue:text}`paper-audited/gap_without_clean_min:.0%` to {glue:text}`paper-audited/gap_without_clean_max:.0%`; $T_\mathrm{hard}$ falls by
# {glue:text}`paper-audited/T_hard_fall_min:.0%` to {glue:text}`paper-audited/T_hard_fall_max:.0%`. But to leave out the oracle's half, which is never judged, adds
# {glue:text}`paper-audited/gap_without_oracle_min:.0%` to {glue:text}`paper-audited/gap_without_oracle_max:.0%` as well. The difference of the two, an estimate of what it matters that the fit has *seen* the judged examples,
# is {glue:text}`paper-audited/gap_seen_min:+.1%` to {glue:text}`paper-audited/gap_seen_max:+.1%` of the gap; it is not sharp, since the two halves are not quite alike. So what moves the gap is for the most part the population of the
# validation set, and not that one temperature remembers what it was judged on. The paper's validation set is the whole development split, of which our file is
# one half, so its gaps on ChaosNLI would move in the same direction.
#
# ### Confidences of exactly 1

# %%
dropped = {"float64": {"ones": 0, "change": 0.0}, "float32": {"ones": 0, "change": 0.0}}
for name, values in recorded.items():
    dataset, model, seed, _ = key_of(name)
    judged = data[dataset, model, seed]
    for T in (1.0, values["T_hard"], values["T_oracle"]):
        for precision, found in dropped.items():
            confidence, correct = top_label(
                softmax(judged.logits, T).astype(precision), judged.labels
            )
            kept = confidence < 1
            without = ece(confidence[kept], correct[kept], bins=N_BINS) * kept.mean()
            found["ones"] = max(found["ones"], int((~kept).sum()))
            found["change"] = max(
                found["change"], abs(without - ece(confidence, correct, bins=N_BINS))
            )

# %% tags=["remove-cell"]
top_two = {key: np.partition(judged.logits, -2, axis=1)[:, -2:] for key, judged in data.items()}
margins = {key: float(np.abs(np.diff(two, axis=1)).max()) for key, two in top_two.items()}
record(
    "paper-audited",
    ece_runs=len(recorded),
    ones_float64=dropped["float64"]["ones"],
    ones_float32=dropped["float32"]["ones"],
    ece_change_float64=dropped["float64"]["change"],
    ece_change_float32=dropped["float32"]["change"],
    margin_needed=53 * np.log(2),
    margin_vision=max(value for key, value in margins.items() if key[0] in VISION),
    margin_language=max(value for key, value in margins.items() if key[0] in LANGUAGE),
);

# %% [markdown]
# The released code computes probabilities in float64, and there the rule drops nothing in any of our
# {glue:text}`paper-audited/ece_runs:d` runs, at any of the three temperatures: {glue:text}`paper-audited/ones_float64:d` confidences are exactly 1, and
# the ECE moves by {glue:text}`paper-audited/ece_change_float64:.1g`. A float64 confidence becomes 1 when the largest logit leads by about
# {glue:text}`paper-audited/margin_needed:.1f`; the largest lead is {glue:text}`paper-audited/margin_vision:.1f` for our ResNet-110 and {glue:text}`paper-audited/margin_language:.1f` for our language
# models. Rounded to float32, up to {glue:text}`paper-audited/ones_float32:,d` judged examples of one run drop out,
# but nearly all of them are right, and no ECE moves by more than {glue:text}`paper-audited/ece_change_float32:.5f`. The logits of the paper's models are not
# published; unless theirs lead by far more than ours, its ECEs are what they would be with a last bin that is closed.
#
# ## Take-aways
#
# - Of {glue:text}`paper-audited/claims:d` sentences: {glue:text}`paper-audited/shown:d` shown, {glue:text}`paper-audited/not_shown:d` not shown,
#   {glue:text}`paper-audited/contradicted:d` contradicted ({glue:text}`paper-audited/gap_positive_runs:d` runs, {glue:text}`paper-audited/seeds:d` seeds of each of nine configurations).
# - H1 and H3 are true of every single run. The sign in H1 is built into the comparison, and the runs do not show the cause of H3.
# - That the gap grows with each step of scale is not shown. The largest model has the larger gap than the smallest in {glue:text}`paper-audited/h2_vision_ends:d` of 9 pairs of runs in vision and
#   {glue:text}`paper-audited/h2_chaosnli_s_ends:d` of 9 on ChaosNLI-S, but neighbours overlap in vision ({glue:text}`paper-audited/h2_vision_first_step:d` and {glue:text}`paper-audited/h2_vision_second_step:d` of 9 pairs) and
#   at the upper step on ChaosNLI-S ({glue:text}`paper-audited/h2_chaosnli_s_second_step:d` of 9), where the largest model was also trained in another way. The clearest
#   order of all is the reversed one on ChaosNLI-M.
# - "Near chance" is contradicted for a uniform guess; it is near the constant answer ({glue:text}`paper-audited/constant_m:.1%`). The same is true of BERT-large on ChaosNLI-S.
# - The overlap of validation and judged examples makes the gap smaller, for the most part by changing the population.
#
# ## Exercises
#
# The folded cell computes the numbers of the answers.

# %% tags=["hide-cell"]
enough = next(n for n in range(1, 20) if 2 * 0.5**n < 0.05)
record("paper-audited", runs_for_sign_test=enough, p_three_runs=1 / comb(6, 3), p_four_runs=1 / comb(8, 4));

# %% [markdown]
# 1. How many seeds of one configuration does a two-sided sign test need before it can reach p < 0.05?
#
#    :::{dropdown} Answer
#    With n runs of one sign the smallest two-sided p is $2 \cdot 2^{-n}$. It is below 0.05 from n = {glue:text}`paper-audited/runs_for_sign_test:d` on.
#    :::
#
# 2. With three runs of each of two models, what is the smallest one-sided p of an exact test that the larger model has the larger gap? With four of each?
#
#    :::{dropdown} Answer
#    There are $\binom{6}{3}$ ways to deal six gaps to two models, and one of them separates the models in the right order: p = {glue:text}`paper-audited/p_three_runs:.3f`.
#    With four runs each it is $1/\binom{8}{4}$, {glue:text}`paper-audited/p_four_runs:.4f`.
#    :::
#
# 3. Why does the mean of the three ratios of temperatures differ from the ratio of the mean temperatures? Which would you report?
#
#    :::{dropdown} Answer
#    The ratio of means weights each seed by its $T_\mathrm{hard}$, the mean of ratios weights all seeds alike. If a training is a draw of the model, the ratio is
#    a property of the draw, and its mean over draws is what carries over to the next. Either will do if the text says which.
#    :::

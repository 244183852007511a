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
# # {glue:text}`where:s`
#
# On {glue:text}`where:s` (training seeds: {glue:text}`seeds:s`), how much worse, against the votes of annotators, is a temperature fitted to
# hard labels than one fitted to the votes themselves? A classifier learns from hard labels, and so does its temperature, while human annotators disagree about
# many of the same examples.
#
# :::{admonition} Before you start
# - **You will** see both temperatures, what each does to the Brier score against the votes, and the same for
#   isotonic regression.
# - **You need** temperature scaling and the Brier score. The question and the protocol are on the page
#   [](../soft-label-gap.md).
# - **Time** about five minutes to read, a few seconds to run.
# :::

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown

from calib import brier, fit_temperature, reliability_table, softmax, top_label
from calib.data import load_soft_labels
from calib.data.examples import load_record
from calib.gap import N_BINS, halves, soft_label_gap
from calib.names import DATASETS, MODELS
from calib.plots import COLOURS, label, log_axis, reliability_diagram, show, table
from calib.results import glue, record

plt.style.use("calib.paper")

# %% tags=["parameters"]
dataset = "cifar10h"  # cifar10h, chaosnli-s or chaosnli-m
model = "resnet110"  # resnet110 for cifar10h; bert-base-uncased or roberta-base for ChaosNLI
seeds = [0]  # training seeds of the model
protocols = ["paper"]  # validation set: "paper" as published, "clean" without soft-labelled items
folder = None  # predictions of your own, <folder>/<dataset>/<model>-<seed>.npz; None: the published ones

# %% tags=["hide-input", "remove-output"]
if not set(protocols) <= {"paper", "clean"}:
    raise ValueError(f'protocols: expected "paper" or "clean", got {protocols}')
trained = [load_record(f"{folder}/{dataset}/{model}-{seed}.json") for seed in seeds] if folder else []
copies = "jpeg" in [run.get("images") for run in trained]
where = f"{DATASETS.get(dataset, dataset)}{', JPEG copies,' if copies else ''} with {MODELS.get(model, model)}"
epochs = ", ".join(sorted({str(run["recipe"]["epochs"]) for run in trained}))
origins = {"": "published by others", "0": "of a model that was not trained here"}
ours = f"of our own training ({epochs} epochs{', on JPEG copies of the images' if copies else ''})"
glue(where=where, seeds=", ".join(map(str, seeds)), origin=origins.get(epochs, ours))

# %% [markdown]
# ## The data
#
# The soft-labelled examples are cut in two, in the order of their file: the oracle is fitted on the first half, and
# everything is judged on the second. The validation set has hard labels only. The logits are {glue:text}`origin:s`.

# %%
data = {seed: load_soft_labels(dataset, model, seed, folder) for seed in seeds}
validation, soft, n_missing = data[seeds[0]]
first, second = halves(soft)
glue(n_first=len(first), n_second=len(second), n_missing=n_missing)

# %% tags=["hide-input"]
agreement = second.distributions.max(axis=1)
glue(mean_agreement=agreement.mean(), unanimous=float((agreement == 1).mean()))
votes = second.votes.sum(axis=1)
glue(votes=f"{votes.min()} to {votes.max()}" if votes.min() < votes.max() else str(votes.min()))
fig, ax = plt.subplots(figsize=(7.2, 3))
ax.hist(agreement, bins=np.linspace(1 / soft.n_classes, 1, 21), color=COLOURS["neutral"], alpha=0.5)
ax.axvline(agreement.mean(), color="black", linewidth=1.5)
ax.margins(y=0.18)
label(ax, f"mean {agreement.mean():.2f}", (agreement.mean(), 0.95), (-5, 0), "black", xycoords=("data", "axes fraction"))
ax.set(xlabel="share of the votes for the most chosen class", ylabel="examples")
show(
    fig,
    name=f"fig-gap-{dataset}-{model}-agreement",
    caption=f"How far annotators agree: share of the votes that the most chosen class of an example gets. {where}, "
    f"evaluation half, n = {len(second):,}; 20 equal-width bins from 1/{soft.n_classes}.",
    alt=f"Histogram of annotator agreement over {len(second):,} examples; mean {agreement.mean():.2f}, "
    f"{(agreement == 1).mean():.0%} of the examples are unanimous.",
)

# %% [markdown]
# There are {glue:text}`n_first:,d` examples in the first half and {glue:text}`n_second:,d` in the second, each with
# {glue:text}`votes:s` votes over {glue:text}`n_classes:d` classes. Examples with
# votes but without a prediction, which are left out: {glue:text}`n_missing:d`. On the evaluation half the most chosen class gets
# {glue:text}`mean_agreement:.1%` of the votes on average, and {glue:text}`unanimous:.1%` of the examples are
# unanimous.
#
# ## Fitted to labels, fitted to votes
#
# $T_\mathrm{hard}$ minimises the negative log-likelihood of the hard labels of the validation set.
# $T_\mathrm{oracle}$ minimises the Brier score against the votes of the first half. The gap is the difference of their
# Brier scores against the votes of the second half {cite:p}`dogah2026`.

# %%
results = {}
for seed in seeds:
    validation, soft, n_missing = data[seed]
    for protocol in protocols:
        hard = validation if protocol == "paper" else validation.without(soft.ids)
        found = soft_label_gap(hard, soft, overlap_declared=protocol == "paper")
        pixels = {"images": "jpeg"} if copies else {}  # results on copies say so
        results[seed, protocol] = record(f"gap/{dataset}/{model}/{seed}/{protocol}", n_missing=n_missing, **found, **pixels)

# %% tags=["hide-input"]
columns = ["gap", "iso_gap", "T_hard", "T_oracle", "brier_uncal", "brier_hard", "brier_oracle", "accuracy", "n_val", "n_overlap"]
heads = ["Seed", "Protocol", "Gap", "Isotonic gap", "$T_\\mathrm{hard}$", "$T_\\mathrm{oracle}$", "Brier, T = 1", "Brier, hard",
         "Brier, oracle", "Accuracy", "Validation n", "Of these judged"]
formats = [".4f", ".4f", ".3f", ".3f", ".4f", ".4f", ".4f", ".3f", ",d", ",d"]
rows = [[*key, *(format(result[name], spec) for name, spec in zip(columns, formats))] for key, result in results.items()]
table("rl" + "r" * len(columns), heads, rows)

# %% tags=["hide-input", "remove-output"]
summary = {name: np.array([results[seed, protocols[0]][name] for seed in seeds]) for name in found}
ratio = summary["T_oracle"] / summary["T_hard"]
given = dict(zip(validation.ids, validation.labels))
shared = [label == given[name] for name, label in zip(soft.ids, soft.labels) if name in given]
glue(n_shared=len(shared), same_label=f"{np.mean(shared):.1%}" if shared else "no case to compare")
glue(protocol=protocols[0], n_classes=soft.n_classes, ece_hard=summary["ece_hard"].mean(), ece_oracle=summary["ece_oracle"].mean())

# %% [markdown]
# $T_\mathrm{hard}$ is fitted to the labels that the data set gives. Accuracy and ECE use the hard label of the evaluated example,
# and the Brier scores compare with its votes. On the soft-labelled examples that are also in the validation file
# ({glue:text}`n_shared:,d`), the given label is the hard label in {glue:text}`same_label:s`.
# "Of these judged" counts the validation examples that are also in the evaluation half: the protocol named paper declares that overlap, the
# protocol named clean removes every soft-labelled example from the validation set.
#
# ## The picture

# %% tags=["hide-input"]
grid = np.geomspace(0.5, 8, 80)
validation, soft, _ = data[seeds[-1]]  # the figures show the last seed
second, seed = halves(soft)[1], seeds[-1]
shown = results[seed, protocols[0]]
curve = [brier(softmax(second.logits, T), second.distributions) for T in grid]
fig, ax = plt.subplots(figsize=(7.2, 3.6))
ax.plot(grid, curve, color=COLOURS["neutral"])
marks = [("T = 1", 1.0, "brier_uncal", "t1"), ("hard labels", shown["T_hard"], "brier_hard", "fitted"),
         ("oracle", shown["T_oracle"], "brier_oracle", "oracle")]
for (text, T, name, colour), place in zip(marks, ((6, 6), (-6, -6), (0, -8))):
    ax.plot(T, shown[name], "o", color=COLOURS[colour], markersize=7)
    label(ax, f"{text}\nT = {T:.2f}" if T != 1 else text, (T, shown[name]), place, COLOURS[colour])
ax.margins(y=0.3)
log_axis(ax.xaxis, [0.5, 1, 2, 4, 8])
ax.set(xlabel="temperature T (log scale)", ylabel="Brier score against the votes")
show(
    fig,
    name=f"fig-gap-{dataset}-{model}-brier",
    caption=f"Brier score against the votes over the temperature. {where}, seed {seed}, protocol {protocols[0]}, evaluation "
    f"half, n = {len(second):,}.",
    alt=f"The Brier score is {shown['brier_uncal']:.3f} at T = 1, {shown['brier_hard']:.3f} at the temperature from hard labels, "
    f"{shown['T_hard']:.2f}, and {shown['brier_oracle']:.3f} at the oracle's, {shown['T_oracle']:.2f}.",
)

# %% tags=["hide-input"]
fig, axes = plt.subplots(3, 1, figsize=(7.2, 8), sharex=True)
for ax, (text, T, _, colour) in zip(axes, marks):
    binned = reliability_table(*top_label(softmax(second.logits, T), second.labels), bins=N_BINS)
    reliability_diagram(ax, binned, COLOURS[colour], start=1 / second.n_classes)
    ax.set(title=f"{text}, ECE {binned.ece:.3f}", yticks=[0, 0.25, 0.5, 0.75, 1])
    ax.label_outer()
show(
    fig,
    name=f"fig-gap-{dataset}-{model}-reliability",
    caption=f"Top-label reliability against the hard labels, {N_BINS} equal-width bins, counts on top, 95% Wilson intervals. {where}, seed "
    f"{seed}, protocol {protocols[0]}, evaluation half, n = {len(second):,}.",
    alt=f"Three reliability diagrams: ECE {shown['ece_uncal']:.3f} at T = 1, {shown['ece_hard']:.3f} at the temperature from "
    f"hard labels, {shown['ece_oracle']:.3f} at the oracle's.",
)

# %% [markdown]
# Calibration against one hard label and calibration against the votes are two targets. With protocol
# {glue:text}`protocol:s`, the ECE (mean over the seeds) against the hard label is {glue:text}`ece_hard:.3f` for the temperature from
# hard labels and {glue:text}`ece_oracle:.3f` for the oracle. Which of the two is lower differs between data sets: the oracle was fitted to votes, and
# where votes and given labels disagree much, the temperature from given labels can fit the majority badly too.
#
# ## Take-aways

# %% tags=["hide-input"]
spread = f"on average over {len(seeds)} training seeds, from {summary['gap'].min():.4f} to {summary['gap'].max():.4f}" if len(seeds) > 1 else "for its one training seed"
factors = f"{ratio.min():.2f} to {ratio.max():.2f}" if len(seeds) > 1 else f"{ratio[0]:.2f}"
positive = sum(result["gap"] > 0 for result in results.values())
points = [
    f"On {where}, protocol {protocols[0]}, n = {len(second):,} judged, the gap is {summary['gap'].mean():.4f} {spread}: "
    f"{(summary['gap'] / summary['brier_hard']).mean():.1%} of the Brier score of the temperature from hard labels.",
    f"It is above zero in {positive} of {len(results)} combinations of seed and protocol. The oracle divides the logits by "
    f"{factors} times as much as the temperature from hard labels; above 1 it is the less sure of the two.",
    f"Isotonic regression in place of the temperature has a gap of {summary['iso_gap'].mean():.4f}.",
    "The two temperatures differ in three things at once: the population they were fitted on, the labels, and the objective. The gap "
    "alone does not say which of them matters.",
]
if len(protocols) > 1:
    other = np.mean([results[seed, protocols[1]]["gap"] for seed in seeds])
    points.insert(2, f"With protocol {protocols[1]} the mean gap is {other:.4f}. Protocol {protocols[0]} lets the validation set contain "
                  f"{int(summary['n_overlap'].max())} of the examples that are judged.")
Markdown("\n".join(f"- {point}" for point in points))

# %% [markdown]
# ## Exercises
#
# The folded cell computes the answers, for the last seed.

# %% tags=["hide-cell"]
first = halves(soft)[0]
by_nll = fit_temperature(first.logits, first.distributions).temperature
by_hard = fit_temperature(first.logits, first.labels).temperature
left = shown["brier_hard"] - brier(softmax(second.logits, by_nll), second.distributions)
kept = left / shown["gap"]
nearer = abs(np.log(by_hard / shown["T_hard"])) < abs(np.log(by_hard / shown["T_oracle"]))
glue(
    kept=kept, objective="so the objective is not what makes it" if abs(kept - 1) < 0.2 else "so the objective has a part in it",
    moved="the examples move the temperature more than the labels do" if not nearer else "the labels move the temperature more than the examples do",
    by_nll=by_nll, by_hard=by_hard, gap_left=left, gap_shown=shown["gap"], hard_shown=shown["T_hard"], oracle_shown=shown["T_oracle"], n_fit=len(first),
    nearer="$T_\\mathrm{hard}$" if nearer else "$T_\\mathrm{oracle}$",
)  # fmt: skip

# %% [markdown]
# 1. Fit the oracle by NLL in place of the Brier score, on the same votes. How much of the gap is left?
#
#    :::{dropdown} Answer
#    The NLL of the votes is lowest at {glue:text}`by_nll:.3f`, the Brier score at {glue:text}`oracle_shown:.3f`. The gap to the temperature from hard labels is
#    {glue:text}`gap_left:.4f` with the one and {glue:text}`gap_shown:.4f` with the other: {glue:text}`kept:.0%` of the gap is there without the Brier score, {glue:text}`objective:s`.
#    :::
#
# 2. Fit a temperature to the *hard labels of the first half*. Is it nearer to $T_\mathrm{hard}$ or to $T_\mathrm{oracle}$?
#
#    :::{dropdown} Answer
#    On the {glue:text}`n_fit:,d` examples it is {glue:text}`by_hard:.3f`. By the ratio, that is nearer to {glue:text}`nearer:s`; the two are {glue:text}`hard_shown:.3f` and
#    {glue:text}`oracle_shown:.3f`. It differs from $T_\mathrm{hard}$ in its examples and in how a hard label is chosen, and from $T_\mathrm{oracle}$ in labels and objective. So in this run {glue:text}`moved:s`; [](three-parts.ipynb) takes all runs apart in this way.
#    :::

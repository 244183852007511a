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
# A classifier learns from hard labels, and so does its temperature. Human annotators disagree about many of the same
# examples. On {glue:text}`where:s` (training seeds {glue:text}`seeds:s`): how much worse, against the votes, is the
# temperature fitted to hard labels than one fitted to the votes themselves?
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

from calib import brier, reliability_table, softmax, top_label
from calib.data import load_soft_labels
from calib.gap import N_BINS, halves, soft_label_gap
from calib.plots import COLOURS, reliability_diagram, show
from calib.results import glue, record

plt.style.use("calib.paper")

# %% tags=["parameters"]
dataset = "cifar10h"  # cifar10h, chaosnli-s or chaosnli-m
model = "resnet110"  # resnet110 for cifar10h; bert-base-uncased or roberta-base for ChaosNLI
seeds = [0]  # training seeds of the model
protocols = ["paper"]  # validation set: "paper" as published, "clean" without soft-labelled items

# %% tags=["hide-input", "remove-output"]
DATASETS = {"cifar10h": "CIFAR-10H", "chaosnli-s": "ChaosNLI-S", "chaosnli-m": "ChaosNLI-M"}
MODELS = {"resnet110": "ResNet-110", "bert-base-uncased": "BERT-base", "roberta-base": "RoBERTa-base"}
where = f"{DATASETS[dataset]} with {MODELS[model]}"
glue(where=where, seeds=", ".join(map(str, seeds)))

# %% [markdown]
# ## The data
#
# The soft-labelled examples are cut in two, in the order of their file: the oracle is fitted on the first half, and
# everything is judged on the second. The validation set has hard labels only.

# %%
data = {seed: load_soft_labels(dataset, model, seed) for seed in seeds}
validation, soft, n_missing = data[seeds[0]]
first, second = halves(soft)
glue(n_first=len(first), n_second=len(second), n_missing=n_missing)

# %% tags=["hide-input"]
agreement = second.distributions.max(axis=1)
glue(mean_agreement=agreement.mean(), unanimous=float((agreement == 1).mean()))
votes = second.votes.sum(axis=1)
glue(votes=f"{votes.min()} to {votes.max()}" if votes.min() < votes.max() else str(votes.min()))
fig, ax = plt.subplots(figsize=(7.2, 2.8))
ax.hist(agreement, bins=np.linspace(1 / soft.n_classes, 1, 21), color=COLOURS["oracle"], alpha=0.6)
ax.axvline(agreement.mean(), color=COLOURS["neutral"], linewidth=1.5)
ax.annotate(f"mean {agreement.mean():.2f}", (agreement.mean(), 0.95), xycoords=("data", "axes fraction"),
            xytext=(-5, 0), textcoords="offset points", ha="right", color=COLOURS["neutral"])
ax.set(xlabel="share of the votes for the most chosen class", ylabel="examples")
show(
    fig,
    name=f"fig-gap-{dataset}-{model}-agreement",
    caption=f"How far annotators agree: share of the votes that the most chosen class of an example gets. {where}, "
    f"evaluation half, n = {len(second):,}.",
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
# ## Two temperatures
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
        results[seed, protocol] = record(f"gap/{dataset}/{model}/{seed}/{protocol}", n_missing=n_missing, **found)

# %% tags=["hide-input"]
columns = ["gap", "iso_gap", "T_hard", "T_oracle", "brier_uncal", "brier_hard", "brier_oracle", "accuracy", "n_val", "n_overlap"]
heads = ["gap", "isotonic gap", "$T_\\mathrm{hard}$", "$T_\\mathrm{oracle}$", "Brier, T = 1", "Brier, hard", "Brier, oracle", "accuracy",
         "validation n", "of these judged"]
formats = [".4f", ".4f", ".3f", ".3f", ".4f", ".4f", ".4f", ".3f", ",d", ",d"]
lines = ["| seed | protocol | " + " | ".join(heads) + " |", "|---:|:---|" + "---:|" * len(heads)]
for (seed, protocol), result in results.items():
    cells = [format(result[name], spec) for name, spec in zip(columns, formats)]
    lines.append(f"| {seed} | {protocol} | " + " | ".join(cells) + " |")
Markdown("\n".join(lines))

# %% tags=["hide-input", "remove-output"]
summary = {name: np.array([results[seed, protocols[0]][name] for seed in seeds]) for name in next(iter(results.values()))}
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
fig, ax = plt.subplots(figsize=(7.2, 3.4))
ax.plot(grid, curve, color=COLOURS["neutral"])
marks = [("T = 1", 1.0, "brier_uncal", "t1"), ("hard labels", shown["T_hard"], "brier_hard", "fitted"),
         ("oracle", shown["T_oracle"], "brier_oracle", "oracle")]
places = ({"ha": "left", "xytext": (6, 10)}, {"ha": "right", "xytext": (-8, -30)}, {"ha": "center", "xytext": (0, -36)})
for (text, T, name, colour), place in zip(marks, places):
    ax.plot(T, shown[name], "o", color=COLOURS[colour], markersize=7)
    words = f"{text}\nT = {T:.2f}" if T != 1 else text
    ax.annotate(words, (T, shown[name]), textcoords="offset points", color=COLOURS[colour], **place)
ax.margins(y=0.3)
ax.set_xscale("log")
ax.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
ax.minorticks_off()
ax.set(xlabel="temperature (log scale)", ylabel="Brier score against the votes")
show(
    fig,
    name=f"fig-gap-{dataset}-{model}-brier",
    caption=f"Brier score against the votes over the temperature. {where}, seed {seed}, protocol {protocols[0]}, evaluation "
    f"half, n = {len(second):,}.",
    alt=f"The Brier score is {shown['brier_uncal']:.3f} at T = 1, {shown['brier_hard']:.3f} at the temperature from hard labels, "
    f"{shown['T_hard']:.2f}, and {shown['brier_oracle']:.3f} at the oracle's, {shown['T_oracle']:.2f}.",
)

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(7.2, 3), sharey=True)
for ax, (text, T, _, colour) in zip(axes, marks):
    table = reliability_table(*top_label(softmax(second.logits, T), second.labels), bins=N_BINS)
    reliability_diagram(ax, table, COLOURS[colour], counts=False)
    ax.set_title(f"{text}\nECE {table.ece:.3f}", fontsize=10)
axes[1].set_ylabel("")
axes[2].set_ylabel("")
show(
    fig,
    name=f"fig-gap-{dataset}-{model}-reliability",
    caption=f"Top-label reliability against the hard labels, {N_BINS} equal-width bins, 95% Wilson intervals. {where}, seed "
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
    f"{factors} times as much as the temperature from hard labels.",
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
# 1. Fit the oracle by NLL in place of the Brier score, on the same votes. How much of the gap is left?
# 2. Fit a temperature to the *hard labels of the first half*. Is it nearer to $T_\mathrm{hard}$ or to $T_\mathrm{oracle}$?

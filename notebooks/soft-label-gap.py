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
# # The gap of every run
#
# How much worse, against the votes of annotators, is a temperature fitted to hard labels than one fitted to the votes themselves? A classifier learns from hard labels, and so does its
# temperature, while human annotators disagree about many of the same examples. One run is told in full; all others stand beside it.
#
# :::{admonition} Before you start
# - **You will** see both temperatures, what each does to the Brier score against the votes, and the same for
#   isotonic regression.
# - **You need** temperature scaling and the Brier score. The question and the protocol are on the page
#   [](../soft-label-gap.md).
# - **Time** about five minutes to read, half a minute to run.
# :::

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown

from calib import brier, fit_temperature, reliability_table, softmax, top_label
from calib.data import DATASETS, SETS
from calib.data.examples import load_record
from calib.data.titles import model_title
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, label, log_axis, reliability_diagram
from calib.softlabels.gap import N_BINS, soft_label_gap
from calib.softlabels.study import VALIDATION, load_study

plt.style.use("calib.paper")

# %% tags=["parameters"]
story = ["chaosnli-s", "roberta-base", 0]  # the run that is told in full
studies = [
    ["cifar10h", "resnet110", 0],
    ["chaosnli-s", "bert-base-uncased", 0],
    ["chaosnli-s", "bert-base-uncased", 1],
    ["chaosnli-s", "roberta-base", 0],
    ["chaosnli-s", "roberta-base", 1],
    ["chaosnli-s", "roberta-base", 2],
    ["chaosnli-m", "roberta-base", 0],
    ["chaosnli-m", "roberta-base", 1],
    ["chaosnli-m", "roberta-base", 2],
]  # data set, model and training seed of public predictions
trained = [
    ["cifar10h", "resnet8", 42],
    ["cifar10h", "resnet8", 123],
    ["cifar10h", "resnet8", 456],
    ["cifar10h", "resnet20", 42],
    ["cifar10h", "resnet20", 123],
    ["cifar10h", "resnet20", 456],
    ["cifar10h", "resnet32", 42],
    ["cifar10h", "resnet32", 123],
    ["cifar10h", "resnet32", 456],
]  # the same of our own, in the folder below
folder = "ladder/predictions"  # <folder>/<dataset>/<model>-<seed>.npz

# %% tags=["remove-cell"]
if story not in studies + trained:
    raise ValueError(f"story: expected one of the studies, got {story}")
dataset, model, seed = story
where = f"{DATASETS[dataset]} with {model_title(model)}, training seed {seed}"

# %% [markdown]
# ## One run: the data
#
# The soft-labelled examples are cut in two, in the order of their file: the oracle is fitted on the first half, and
# everything is judged on the second. The validation set has hard labels only.

# %%
study = load_study(dataset, model, seed, "paper", folder if story in trained else None)
agreement = study.second.distributions.max(axis=1)

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3))
ax.hist(agreement, bins=np.linspace(1 / study.soft.n_classes, 1, 21), color=COLOURS["neutral"], alpha=0.5)
ax.axvline(agreement.mean(), color="black", linewidth=1.5)
ax.margins(y=0.18)
label(ax, f"mean {agreement.mean():.2f}", (agreement.mean(), 0.95), (-5, 0), "black", xycoords=("data", "axes fraction"))
ax.set(xlabel="share of the votes for the most chosen class", ylabel="examples")
glue(where=where, n_first=len(study.first), n_second=len(study.second), n_missing=study.n_missing, mean_agreement=agreement.mean(), unanimous=float((agreement == 1).mean()))
show(
    fig,
    name="fig-one-gap-agreement",
    caption=f"How far annotators agree: share of the votes that the most chosen class of an example gets. {where}, "
    f"evaluation half, n = {len(study.second):,}; 20 equal-width bins from 1/{study.soft.n_classes}.",
    alt=f"Histogram of annotator agreement over {len(study.second):,} examples; mean {agreement.mean():.2f}, "
    f"{(agreement == 1).mean():.0%} of the examples are unanimous.",
)

# %% [markdown]
# On {glue:text}`where:s`, there are {glue:text}`n_first:,d` examples in the first half and {glue:text}`n_second:,d` in the second. Examples with
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
hard = fit_temperature(study.validation.logits, study.validation.labels)
oracle = fit_temperature(
    study.first.logits, study.first.distributions, objective="brier"
)
judged, votes = study.second.logits, study.second.distributions
scores = [
    brier(softmax(judged, T), votes)
    for T in (1.0, hard.temperature, oracle.temperature)
]

# %% tags=["hide-input"]
results, counts = {}, {}
for key, where_from in [(tuple(one), None) for one in studies] + [(tuple(one), folder) for one in trained]:
    copies = where_from and load_record(f"{where_from}/{key[0]}/{key[1]}-{key[2]}.json").get("images") == "jpeg"
    pixels = {"images": "jpeg"} if copies else {}  # results on copies say so
    for protocol in SETS[key[0]].protocols:
        one = load_study(*key, protocol, where_from)
        results[*key, protocol] = record(one.name, n_missing=one.n_missing, **soft_label_gap(one), **pixels)
        counts[f"votes_{key[0]}"] = sorted({int(number) for number in (min(one.soft.votes.sum(axis=1)), max(one.soft.votes.sum(axis=1)))})
glue(**{name: " to ".join(map(str, ends)) for name, ends in counts.items()})
told = results[dataset, model, seed, "paper"]
given = dict(zip(study.validation.ids, study.validation.labels))
shared = [label == given[name] for name, label in zip(study.soft.ids, study.soft.labels) if name in given]
sure = "Of the soft-labelled examples none is in the validation file."
if shared:
    sure = (f"Of the soft-labelled examples {len(shared):,} are in the validation file too; for {np.mean(shared):.1%} of them the label given there is the hard label. "
            f"{told['n_overlap']:,} of them are judged: *overlapping validation* declares that, *disjoint validation* removes every soft-labelled example from the validation set.")
table("lrr", ["Temperature", "Value", "Brier score against the votes"],
      [["none", "1", f"{scores[0]:.4f}"], ["from hard labels", f"{hard.temperature:.3f}", f"{scores[1]:.4f}"], ["oracle", f"{oracle.temperature:.3f}", f"{scores[2]:.4f}"]])

# %% tags=["hide-input"]
Markdown(f"The gap is {told['gap']:.4f}. Accuracy and ECE use the hard label of the evaluated example. {sure}")

# %% [markdown]
# ## The picture

# %% tags=["hide-input"]
grid = np.geomspace(0.5, 8, 80)
curve = [brier(softmax(judged, T), votes) for T in grid]
fig, ax = plt.subplots(figsize=(7.2, 3.6))
ax.plot(grid, curve, color=COLOURS["neutral"])
marks = [("T = 1", 1.0, "brier_uncal", "t1"), ("hard labels", told["T_hard"], "brier_hard", "fitted"),
         ("oracle", told["T_oracle"], "brier_oracle", "oracle")]
for (text, T, name, colour), place in zip(marks, ((6, 6), (-6, -6), (0, -8))):
    ax.plot(T, told[name], "o", color=COLOURS[colour], markersize=7)
    label(ax, f"{text}\nT = {T:.2f}" if T != 1 else text, (T, told[name]), place, COLOURS[colour])
ax.margins(y=0.3)
log_axis(ax.xaxis, [0.5, 1, 2, 4, 8])
ax.set(xlabel="temperature T (log scale)", ylabel="Brier score against the votes")
show(
    fig,
    name="fig-one-gap-brier",
    caption=f"Brier score against the votes over the temperature. {where}, overlapping validation, evaluation half, n = {len(judged):,}.",
    alt=f"The Brier score is {told['brier_uncal']:.3f} at T = 1, {told['brier_hard']:.3f} at the temperature from hard labels, "
    f"{told['T_hard']:.2f}, and {told['brier_oracle']:.3f} at the oracle's, {told['T_oracle']:.2f}.",
)

# %% tags=["hide-input"]
fig, axes = plt.subplots(3, 1, figsize=(7.2, 8), sharex=True)
for ax, (text, T, _, colour) in zip(axes, marks):
    binned = reliability_table(*top_label(softmax(judged, T), study.second.labels), bins=N_BINS)
    reliability_diagram(ax, binned, COLOURS[colour], start=1 / study.soft.n_classes)
    ax.set(title=f"{text}, ECE {binned.ece:.3f}", yticks=[0, 0.25, 0.5, 0.75, 1])
    ax.label_outer()
show(
    fig,
    name="fig-one-gap-reliability",
    caption=f"Top-label reliability against the hard labels, {N_BINS} equal-width bins, counts on top, 95% Wilson intervals. {where}, "
    f"overlapping validation, evaluation half, n = {len(judged):,}.",
    alt=f"Three reliability diagrams: ECE {told['ece_uncal']:.3f} at T = 1, {told['ece_hard']:.3f} at the temperature from "
    f"hard labels, {told['ece_oracle']:.3f} at the oracle's.",
)

# %% [markdown]
# Calibration against one hard label and calibration against the votes are two targets. Which of the two temperatures has the lower ECE against the hard label differs between data
# sets: the oracle was fitted to votes, and where votes and given labels disagree much, the temperature from given labels can fit the majority badly too.
#
# ## All runs

# %% tags=["hide-input"]
shown = {key: found for key, found in results.items() if key[3] == "paper"}
rows = list(range(len(shown)))
fig, axes = plt.subplots(1, 2, figsize=(7.2, max(2.6, 0.5 + 0.27 * len(shown))), sharey=True, width_ratios=[3, 2])
for y, (key, found) in zip(rows, shown.items()):
    bold = key[:3] == tuple(story)
    axes[0].plot([found["T_hard"], found["T_oracle"]], [y, y], color=COLOURS["neutral"], linewidth=2.5 if bold else 1)
    for state, colour in (("hard", "fitted"), ("oracle", "oracle")):
        axes[0].plot(found[f"T_{state}"], y, "o", color=COLOURS[colour], markersize=7 if bold else 5, label={"hard": "hard labels", "oracle": "oracle"}[state] if y == 0 else None)
    axes[1].plot([0, found["gap"]], [y, y], color=COLOURS["other"], linewidth=6, alpha=0.5, solid_capstyle="butt")
    label(axes[1], f"{found['gap']:.4f}", (found["gap"], y), (4, 0))
axes[0].set_yticks(rows, [f"{DATASETS[d]}, {model_title(m)}, {s}" for d, m, s, _ in shown])
axes[0].invert_yaxis()
log_axis(axes[0].xaxis, [1, 1.5, 2, 3, 4, 5])
axes[0].set_xlabel("temperature (log scale)")
axes[1].set(xlabel="gap in Brier score", xlim=(0, 1.5 * max(found["gap"] for found in shown.values())))
for ax in axes:
    ax.grid(axis="y", visible=False)
fig.legend(loc="outside upper center", ncols=2)
show(
    fig,
    name="fig-all-gaps",
    caption="Both temperatures and the gap of every run, overlapping validation; data set, model and training seed. The run told above has the thicker line. "
    "ResNet-8, 20 and 32 were trained for this book on JPEG copies of the images.",
    alt="; ".join(f"{DATASETS[d]}, {model_title(m)}, seed {s}: hard labels {found['T_hard']:.2f}, oracle {found['T_oracle']:.2f}, gap {found['gap']:.4f}" for (d, m, s, _), found in shown.items()) + ".",
)

# %% tags=["hide-input"]
columns = {"gap": (".4f", "Gap"), "iso_gap": (".4f", "Isotonic gap"), "T_hard": (".3f", "$T_\\mathrm{hard}$"), "T_oracle": (".3f", "$T_\\mathrm{oracle}$"),
           "brier_hard": (".4f", "Brier, hard"), "brier_oracle": (".4f", "Brier, oracle"), "accuracy": (".3f", "Accuracy"), "n_overlap": (",d", "Overlap")}
rows = [[DATASETS[d], model_title(m), s, VALIDATION[p], *(format(found[name], form) for name, (form, _) in columns.items())] for (d, m, s, p), found in results.items()]
table("llrl" + "r" * len(columns), ["Data", "Model", "Seed", "Validation", *(head for _, head in columns.values())], rows)

# %% [markdown]
# Overlap: validation examples that are judged too. To tell another run in full: `make run NB=soft-label-gap P="story=[chaosnli-m,roberta-base,1]"`.
#
# ## Take-aways

# %% tags=["hide-input"]
ratio = {d: [found["T_oracle"] / found["T_hard"] for (one, *_, protocol), found in results.items() if one == d and protocol == "paper"] for d in DATASETS}
ranges = {d: [found["gap"] for (one, *_, protocol), found in results.items() if one == d and protocol == "paper"] for d in DATASETS}
points = [
    "The gap, overlapping validation: " + "; ".join(f"{DATASETS[d]} {min(v):.4f} to {max(v):.4f} over {len(v)} runs" for d, v in ranges.items() if v) + ".",
    f"It is above zero in {sum(found['gap'] > 0 for found in results.values())} of {len(results)} runs, the isotonic gap in {sum(found['iso_gap'] > 0 for found in results.values())}.",
    "The oracle's temperature is a multiple of the one from hard labels: " + "; ".join(f"{DATASETS[d]} {min(v):.2f} to {max(v):.2f}" for d, v in ratio.items() if v) + ". A ratio above 1 means that the oracle is less confident.",
    "The two temperatures differ in three things at once: the population they were fitted on, the labels, and the objective. The gap alone does not say which of them matters.",
]
Markdown("\n".join(f"- {point}" for point in points))

# %% [markdown]
# ## Exercises
#
# The folded cell computes the answers, for the run that is told in full.

# %% tags=["hide-cell"]
first = study.first
by_nll = fit_temperature(first.logits, first.distributions).temperature
by_hard = fit_temperature(first.logits, first.labels).temperature
left = told["brier_hard"] - brier(softmax(judged, by_nll), votes)
kept = left / told["gap"]
nearer = abs(np.log(by_hard / told["T_hard"])) < abs(np.log(by_hard / told["T_oracle"]))
glue(
    kept=kept, objective="so the objective is not what makes it" if abs(kept - 1) < 0.2 else "so the objective has a part in it",
    moved="the examples move the temperature more than the labels do" if not nearer else "the labels move the temperature more than the examples do",
    by_nll=by_nll, by_hard=by_hard, gap_left=left, gap_shown=told["gap"], hard_shown=told["T_hard"], oracle_shown=told["T_oracle"], n_fit=len(first),
    nearer="$T_\\mathrm{hard}$" if nearer else "$T_\\mathrm{oracle}$",
)  # fmt: skip

# %% [markdown]
# 1. Fit the oracle by NLL instead of the Brier score, on the same votes. How much of the gap is left?
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

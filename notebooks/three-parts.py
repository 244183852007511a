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
# # Three parts of one gap
#
# The soft-label gap compares a temperature fitted to hard labels with one fitted to votes. But the two differ in three things
# at once: the *population* they were fitted on, the *labels*, and the *objective*. How much of the gap is due to hard
# labels at all?
#
# :::{admonition} Before you start
# - **You will** see the gap of every run as the sum of three parts, each with an interval, and what becomes of them when a choice is made
#   otherwise.
# - **You need** the definition and the protocols of [](../soft-label-gap.md).
# - **Time** about 10 minutes to read, half a minute to run.
# :::
#
# ## One change at a time
#
# | Temperature | Examples | Labels | Objective | What is new |
# |:---|:---|:---|:---|:---|
# | $T_\mathrm{hard}$ | validation set | one label | NLL | the usual temperature |
# | $T_\mathrm{population}$ | **first half** | one label | NLL | another population |
# | $T_\mathrm{soft\ NLL}$ | first half | **votes** | NLL | other labels |
# | $T_\mathrm{oracle}$ | first half | votes | **Brier** | another objective |
#
# All four are judged on the second half, by the Brier score against the votes. The part of a change is the Brier score before it less that
# after it; a positive part is what the change gains. The three parts add up to the gap by construction.
#
# :::{admonition} Primary analyses
# 1. The three parts of each run: halves in file order, the majority of the votes as the hard label of the first half (the
#    original label on CIFAR-10H), both protocols, 95% intervals by a paired bootstrap of the judged examples, fits held fixed.
# 2. The share of each part in the gap of each data set: mean part over mean gap, over models and training seeds.
#
# Everything else on this page is exploratory: intervals with the fits inside, other labels, other halves, the second vision predictor,
# isotonic regression.
# :::

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown

from calib.data import DATASETS, SETS, load_cross_validated
from calib.data.titles import model_title
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, label, log_axis
from calib.resampling import interval
from calib.softlabels.parts import (
    FITS,
    ISOTONIC_PARTS,
    PARTS,
    STEPS,
    crossfitted_parts,
    crossfitted_scores,
    gap_parts,
    ordered_parts,
    part_intervals,
    parts_of,
    resampled_scores,
    shuffled_scores,
    step_curves,
    study_parts,
    temperature_scores,
)
from calib.softlabels.study import VALIDATION, Study, load_study

plt.style.use("calib.paper")

# %% tags=["parameters"]
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
]  # data set, model, training seed: the independent sets
replicates = 2000  # of every bootstrap
draws = 200  # of random halves

# %% [markdown]
# SNLI pairs share an image, MNLI pairs a premise, and then an easy or an odd picture moves several of them at once. The uid
# says which: `2407214681.jpg#0r1n` and `50830c` begin with the image and the number of the premise. Whole clusters are drawn, not pairs.
# With the fits inside, the clusters of the validation set and of both halves are drawn together, so that an example that
# is in two of the sets is drawn for both, and all four temperatures are fitted in every replicate.

# %%
original = {
    dataset: SETS[dataset].original_labels() for dataset in ("chaosnli-s", "chaosnli-m")
}
runs, bootstrap, agreement, sizes = {}, {}, {}, {}
scores, crossed = (
    {},
    {},
)  # in both orders of the halves, by Brier score and NLL; and replicates of their mean
for dataset, model, seed in studies:
    for protocol in SETS[dataset].protocols:
        study = load_study(dataset, model, seed, protocol)
        found, *bootstrap[study.key], curves = study_parts(study, replicates, draws)
        scores[study.key] = crossfitted_scores(study)
        crossed[study.key] = crossfitted_parts(curves, study.clusters, replicates)
        labels = (
            [original[dataset][uid] for uid in study.soft.ids.tolist()]
            if dataset in original
            else study.soft.labels
        )
        if dataset in original:
            other = gap_parts(study.with_labels(labels))
            found |= {
                f"original_{name}": other[name]
                for name in ("T_population", "gap_population", "gap_label")
            }
        runs[study.key] = found
    fitted, judged = (
        set(SETS[dataset].clusters(half.ids)) for half in (study.first, study.second)
    )
    agreement[dataset] = np.mean(labels == study.soft.labels)
    sizes[dataset] = (
        len(study.second),
        len(judged),
        len(fitted & judged),
        len(study.soft),
    )

# %% tags=["remove-cell"]
HERE = "T_hard", "T_oracle", "brier_hard", "brier_oracle", "gap", "iso_gap"  # the pages of the runs have recorded these
for key, found in runs.items():
    record("gap/" + "/".join(map(str, key)), **{name: value for name, value in found.items() if name not in HERE})
paper = {key[:3]: found for key, found in runs.items() if key[3] == "paper"}
crossfitted = {key[:3]: dict(zip(PARTS, parts_of(by_brier.mean(axis=0)[[FITS.index(step) for step in STEPS]]))) for key, (by_brier, _) in scores.items() if key[3] == "paper"}
titles = {key: f"{model_title(key[1])}, seed {key[2]}" for key in paper}
groups = {(dataset, protocol): [key for key in runs if (key[0], key[3]) == (dataset, protocol)] for dataset, _, _, protocol in runs}

# %% tags=["remove-cell"]
def crossfitted_shares(scores, replicates):
    """Shares for one data set: halves swapped, cross-fitted, in every order of the changes, by Brier score and by NLL."""
    by_brier, by_nll = np.mean(scores, axis=0)
    of_brier, of_nll = (np.mean(each, axis=0) for each in zip(*replicates))
    parts = parts_of(by_brier[:, [FITS.index(step) for step in STEPS]])
    ways = ordered_parts(by_brier)  # order of the changes, order of the halves, part
    losses = parts_of(by_nll[:, [FITS.index(step) for step in STEPS[:3]]])
    found = {"gap_crossfit": parts[:, 3].mean()}
    for k, name in enumerate(("population", "label", "objective")):
        found |= {f"share_{name}_swapped": parts[1, k] / parts[1, 3], f"share_{name}_crossfit": parts[:, k].mean() / parts[:, 3].mean()}
        found |= ends(f"share_{name}_crossfit", of_brier[:, k] / of_brier[:, 3])
        found |= {f"{name}_crossfit": parts[:, k].mean(), **ends(f"{name}_crossfit", of_brier[:, k])}
        for halves_used, way in (("", ways[:, 0]), ("_crossfit", ways.mean(axis=1))):
            found[f"share_{name}_shapley{halves_used}"] = way[:, k].mean() / way[0, 3]
            found[f"share_{name}_objective_second{halves_used}"] = way[1, k] / way[1, 3]
            found[f"share_{name}_objective_first{halves_used}"] = way[2, k] / way[2, 3]
    found |= {"share_label_nll": losses[0, 1] / losses[0, 2], "share_label_nll_crossfit": losses[:, 1].mean() / losses[:, 2].mean()}
    found |= ends("share_label_nll_crossfit", of_nll[:, 1] / of_nll[:, 2])
    return found


def ends(name, values):
    """Ends of the 95% interval, by name."""
    return dict(zip((f"{name}_low", f"{name}_high"), interval(values)))


chosen = {}
for (dataset, protocol), keys in groups.items():
    fixed, refitted, random = (np.mean(arrays, axis=0) for arrays in zip(*(bootstrap[key] for key in keys)))
    parts = np.array([[runs[key][part] for part in PARTS] for key in keys])
    values = {}
    for k, part in enumerate(PARTS[:3]):
        name = part.removeprefix("gap_")
        each = parts[:, k] / parts[:, 3]
        values |= {name: parts[:, k].mean(), f"share_{name}": parts[:, k].mean() / parts[:, 3].mean()}
        values |= dict(zip((f"share_{name}_low", f"share_{name}_high"), interval(fixed[:, k] / fixed[:, 3])))
        values |= dict(zip((f"share_{name}_refit_low", f"share_{name}_refit_high"), interval(refitted[:, k] / refitted[:, 3])))
        values |= {f"share_{name}_least": each.min(), f"share_{name}_most": each.max()}
        values |= {f"random_share_{name}": random[:, k].mean() / random[:, 3].mean()}
        values |= dict(zip((f"random_share_{name}_low", f"random_share_{name}_high"), interval(random[:, k] / random[:, 3])))
    values |= crossfitted_shares([scores[key] for key in keys], [crossed[key] for key in keys])
    if dataset in original:
        means = {name: np.mean([runs[key][f"original_gap_{name}"] for key in keys]) for name in ("population", "label")}
        values |= {f"original_share_{name}": mean / parts[:, 3].mean() for name, mean in means.items()}
    judged, clusters, shared, _ = sizes[dataset]
    values |= {"gap": parts[:, 3].mean(), "sets": len(keys), "n_judged": judged, "clusters": clusters, "clusters_in_both_halves": shared}
    chosen[dataset, protocol] = record(f"three-parts/{dataset}/{protocol}", same_label=agreement[dataset], **values)
record(
    "three-parts",
    runs=len(runs),
    sets=len(paper),
    label_positive=sum(found["gap_label"] > 0 for found in paper.values()),
    label_clear=sum(found["gap_label_low"] > 0 for found in paper.values()),
    label_clear_refit=sum(found["gap_label_refit_low"] > 0 for found in paper.values()),
    objective_negative=sum(found["gap_objective"] < 0 for found in paper.values()),
    objective_clear=sum(found["gap_objective_low"] > 0 or found["gap_objective_high"] < 0 for found in paper.values()),
    objective_clear_refit=sum(found["gap_objective_refit_low"] > 0 or found["gap_objective_refit_high"] < 0 for found in paper.values()),
    random_label_larger=sum(found["random_gap_label"] > found["gap_label"] for found in paper.values()),
    random_objective_positive=sum(found["random_gap_objective"] > 0 for found in paper.values()),
    population_clear=sum(found["gap_population_refit_low"] > 0 for found in runs.values()),
);

# %% [markdown]
# Judged are {glue:text}`three-parts/chaosnli-s/paper/n_judged:d` pairs of {glue:text}`three-parts/chaosnli-s/paper/clusters:d` images on ChaosNLI-S,
# {glue:text}`three-parts/chaosnli-m/paper/n_judged:d` pairs of {glue:text}`three-parts/chaosnli-m/paper/clusters:d` premises on ChaosNLI-M, and
# {glue:text}`three-parts/cifar10h/paper/n_judged:,d` images on CIFAR-10H, each its own cluster.
# {glue:text}`three-parts/chaosnli-s/paper/clusters_in_both_halves:d` images and
# {glue:text}`three-parts/chaosnli-m/paper/clusters_in_both_halves:d` premises of these also have pairs in the first half.
#
# Each half can be fitted and the other judged. The primary analysis, like the paper, fits on the first half in the order of the file; the other order is as good. **Cross-fitted** means both orders, and the mean of their parts:
# every example is fitted once and judged once.
#
# ## The picture

# %% tags=["hide-input"]
COLOUR = {"population": COLOURS["neutral"], "labels": COLOURS["other"], "objective": "#e69f00"}
vision = [key for key in paper if key[0] == "cifar10h"]
language = [key for key in paper if key[0] != "cifar10h"]
fig, axes = plt.subplots(2, 1, figsize=(7.2, 5.2), height_ratios=[len(vision), len(language) + 1])
for ax, keys in zip(axes, (vision, language)):
    rows = [k + (key[0] == "chaosnli-m") for k, key in enumerate(keys)]
    for y, key in zip(rows, keys):
        right = left = 0.0
        for part, colour in zip(PARTS, COLOUR.values()):
            value = crossfitted[key][part]
            start = right if value > 0 else left
            ax.barh(y, value, left=start, color=colour, height=0.75)
            right, left = right + max(value, 0), left + min(value, 0)
        shares = [round(100 * crossfitted[key][part] / crossfitted[key]["gap"]) for part in PARTS[:3]]
        words = f" = {shares[0]}% {shares[1]:+d}% {shares[2]:+d}%".replace("-", "\N{MINUS SIGN}")
        label(ax, f"{crossfitted[key]['gap']:.4f}" + words * (key in language), (right, y))
    ax.set_yticks(rows, [f"{DATASETS[key[0]]}, {titles[key]}" for key in keys])
    ax.axvline(0, color=COLOURS["neutral"], linewidth=1)
    ax.set_xlim(right=1.55 * max(crossfitted[key]["gap"] for key in keys))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
axes[0].set_title("images, on a scale of their own")
axes[1].set_title("sentence pairs")
axes[1].set_xlabel("soft-label gap in Brier score (0 to 2), and its parts")
fig.legend([plt.Rectangle((0, 0), 1, 1, color=colour) for colour in COLOUR.values()], COLOUR, loc="outside upper center", ncols=3)
words = [f"{DATASETS[key[0]]}, {titles[key]}: gap {found['gap']:.4f}, population {found['gap_population']:+.4f}, labels {found['gap_label']:+.4f}, "
         f"objective {found['gap_objective']:+.4f}" for key, found in crossfitted.items()]
show(
    fig,
    name="fig-three-parts",
    caption=f"The soft-label gap of {len(paper)} sets of data, model and training seed, overlapping validation, cross-fitted, as the sum of what is gained by fitting "
    "on the population that is judged, by votes instead of one hard label, and by the Brier score instead of the NLL. Negative parts extend left of zero: that change made the score worse. "
    f"Judged on all examples with votes, half of them at a time: {', '.join(f'{DATASETS[dataset]} n = {sizes[dataset][3]:,}' for dataset in DATASETS)}.",
    alt="; ".join(words) + ".",
)

# %% [markdown]
# ## The ladder of temperatures

# %% tags=["hide-input"]
MARKS = {
    "hard, clean": {"color": COLOURS["fitted"], "marker": "o", "markerfacecolor": "none"},
    "hard, paper": {"color": COLOURS["fitted"], "marker": "o"},
    "population": {"color": COLOURS["fitted"], "marker": "D"},
    "soft NLL": {"color": COLOURS["oracle"], "marker": "D"},
    "oracle": {"color": COLOURS["oracle"], "marker": "o"},
}
fig, ax = plt.subplots(figsize=(7.2, 3.9))
rows = [k + 0.7 * (key[0] != "cifar10h") + 0.7 * (key[0] == "chaosnli-m") for k, key in enumerate(paper)]
for y, (key, found) in zip(rows, paper.items()):
    at = [runs[*key, "clean"]["T_hard"] if (*key, "clean") in runs else np.nan, *(found[f"T_{step}"] for step in STEPS)]
    ax.plot([at[1], at[-1]], [y, y], color=COLOURS["neutral"], linewidth=1)
    for T, (name, mark) in zip(at, MARKS.items()):
        ax.plot(T, y, linestyle="", label=name if y == rows[0] else None, **mark)
fig.legend(loc="outside upper center", ncols=5, columnspacing=1, handletextpad=0)
ax.set_yticks(rows, [f"{DATASETS[key[0]]}, {titles[key]}" for key in paper])
log_axis(ax.xaxis, [1, 1.5, 2, 3, 4, 5])
ax.invert_yaxis()
ax.grid(axis="y", visible=False)
ax.set_xlabel("temperature (log scale)")
mean_of = {d: [np.mean([found[f"T_{step}"] for key, found in paper.items() if key[0] == d]) for step in STEPS] for d in DATASETS}
way = {d: np.log(T[1] / T[0]) / np.log(T[-1] / T[0]) for d, T in mean_of.items()}
glue(way_s=way["chaosnli-s"], way_m=way["chaosnli-m"])
spans = [f"{DATASETS[d]} {', '.join(format(T, '.2f') for T in values)}" for d, values in mean_of.items()]
show(
    fig,
    name="fig-three-parts-temperatures",
    caption="The four temperatures of each set. Blue: fitted to hard labels; green: fitted to votes. Open circle: from hard labels with disjoint validation.",
    alt=f"Mean temperatures from hard labels, population, soft NLL to oracle: {'; '.join(spans)}.",
)

# %% [markdown]
# The long step is the first. On the scale of the picture a temperature fitted to hard labels of the ambiguous pairs is {glue:text}`way_s:.0%` of the way from the validation
# set's to the oracle's on ChaosNLI-S and {glue:text}`way_m:.0%` on ChaosNLI-M, by the mean temperatures of the sets, overlapping validation. In Brier score it is further, since the score is flat near its
# lowest point. With disjoint validation (open circles) the validation set has none of these pairs, and the first step is longer still.
#
# ## The parts, with intervals

# %% tags=["hide-input"]
rows = []
for (dataset, model, seed, protocol), found in runs.items():
    cells = [f"{found[part]:.4f} [{found[f'{part}_low']:.4f}, {found[f'{part}_high']:.4f}]" for part in ("gap", *PARTS[:3])]
    rows.append([DATASETS[dataset], model_title(model), seed, VALIDATION[protocol], *cells])
table("llrlrrrr", ["Data", "Model", "Seed", "Validation", "Gap", "Population", "Labels", "Objective"], rows)

# %% [markdown]
# 95% intervals by a paired bootstrap over clusters of judged examples, {glue:text}`replicates:,d` replicates, the fits held fixed. The two protocols
# differ in the population part alone: they share all that is fitted on the first half, so the {glue:text}`three-parts/runs:d` runs hold {glue:text}`three-parts/sets:d` label parts.
# The label part is above zero in {glue:text}`three-parts/label_positive:d` of the {glue:text}`three-parts/sets:d` sets, in
# {glue:text}`three-parts/label_clear:d` with an interval that excludes zero.
#
# Fixed fits leave out that another first half would give other temperatures. With all fits inside the resampling:

# %% tags=["hide-input"]
rows = []
for (dataset, model, seed, protocol), found in runs.items():
    cells = [f"[{found[f'{part}_refit_low']:.4f}, {found[f'{part}_refit_high']:.4f}]" for part in ("gap", *PARTS[:3])]
    rows.append([DATASETS[dataset], model_title(model), seed, VALIDATION[protocol], *cells])
table("llrlrrrr", ["Data", "Model", "Seed", "Validation", "Gap", "Population", "Labels", "Objective"], rows)

# %% [markdown]
# On sentence pairs the intervals of the label part grow most in proportion, since it is a difference of two fits to the same few hundred examples: now
# {glue:text}`three-parts/label_clear_refit:d` of {glue:text}`three-parts/sets:d` exclude zero. The population part
# excludes it in {glue:text}`three-parts/population_clear:d` of {glue:text}`three-parts/runs:d` runs.
#
# The objective part is **negative** in {glue:text}`three-parts/objective_negative:d` of {glue:text}`three-parts/sets:d` sets: there the temperature fitted by NLL
# is *better* in Brier score on the second half than the one fitted by the Brier score itself on the first. This is no contradiction: a fit is best on the
# half it was fitted to, and the two objectives differ by less than the two halves do. With all fits inside, the interval of the objective part includes zero in all but
# {glue:text}`three-parts/objective_clear_refit:d` of the {glue:text}`three-parts/sets:d` sets.
#
# ## Shares

# %% tags=["hide-input"]
rows = []
for (dataset, protocol), found in chosen.items():
    names = "population", "label", "objective"
    cells = [f"**{found[f'share_{name}_crossfit']:.1%}** [{found[f'share_{name}_crossfit_low']:.1%}, {found[f'share_{name}_crossfit_high']:.1%}]" for name in names]
    rows.append([DATASETS[dataset], VALIDATION[protocol], "cross-fitted", f"{found['gap_crossfit']:.4f}", *cells])
    cells = [f"{found[f'share_{name}']:.1%} [{found[f'share_{name}_low']:.1%}, {found[f'share_{name}_high']:.1%}]" for name in names]
    rows.append(["", "", "file order", f"{found['gap']:.4f}", *cells])
    rows.append(["", "", "swapped", f"{2 * found['gap_crossfit'] - found['gap']:.4f}", *(f"{found[f'share_{name}_swapped']:.1%}" for name in names)])
table("lllrrrr", ["Data", "Validation", "Halves", "Gap", "Population", "Labels", "Objective"], rows)

# %% [markdown]
# Mean part over mean gap, over models and training seeds. The interval of a cross-fitted share holds other examples, other halves and other fits. That in file order holds the fits fixed. With the
# fits inside, the interval of the label share on ChaosNLI-S ends at {glue:text}`three-parts/chaosnli-s/paper/share_label_refit_high:.1%` (overlapping validation): neither holds other halves, and the swapped share lies outside both. All models of a data set
# see the same resampled examples. Training seeds are few, and these intervals do not speak about models that were not
# trained: over the sets, the label share in file order with overlapping validation runs from {glue:text}`three-parts/chaosnli-s/paper/share_label_least:.1%` to
# {glue:text}`three-parts/chaosnli-s/paper/share_label_most:.1%` on ChaosNLI-S and from {glue:text}`three-parts/chaosnli-m/paper/share_label_least:.1%` to
# {glue:text}`three-parts/chaosnli-m/paper/share_label_most:.1%` on ChaosNLI-M. On CIFAR-10H the shares in the table show how much they depend on the halves; none of them should be quoted.
#
# **Is the objective part nothing?** Cross-fitted, it is {glue:text}`three-parts/chaosnli-s/paper/objective_crossfit:.5f` on ChaosNLI-S and {glue:text}`three-parts/chaosnli-m/paper/objective_crossfit:.5f` on ChaosNLI-M, overlapping validation, and its intervals end at
# {glue:text}`three-parts/chaosnli-s/paper/objective_crossfit_high:.5f` and {glue:text}`three-parts/chaosnli-m/paper/objective_crossfit_high:.5f`: the data exclude a part of more than {glue:text}`three-parts/chaosnli-s/paper/share_objective_crossfit_high:.1%` and
# {glue:text}`three-parts/chaosnli-m/paper/share_objective_crossfit_high:.1%` of the gap. On CIFAR-10H it is {glue:text}`three-parts/cifar10h/paper/objective_crossfit:.5f` ({glue:text}`three-parts/cifar10h/paper/objective_crossfit_low:.5f` to {glue:text}`three-parts/cifar10h/paper/objective_crossfit_high:.5f`).
#
# ## Choices made otherwise
#
# **Which hard label?** The label that SNLI and MNLI give is the majority of the new votes in
# {glue:text}`three-parts/chaosnli-s/paper/same_label:.1%` of the ChaosNLI-S and {glue:text}`three-parts/chaosnli-m/paper/same_label:.1%` of the ChaosNLI-M pairs.
# The step from the validation set to the majority therefore changes the population *and* who gave the label. With the original label in place of the
# majority it changes the population alone.
#
# **Which halves?** The file order and its reverse are two splits of many. {glue:text}`draws:d` random halves give a mean and a spread.

# %% tags=["hide-input"]
glue(draws=draws)
rows = []
for key, found in paper.items():
    cells = [f"{found['gap_label']:.4f}", f"{found['original_gap_label']:.4f}" if key[0] in original else "–"]
    cells += [f"{found[f'random_{part}']:.4f} ({found[f'random_{part}_sd']:.4f})" for part in ("gap_label", "gap_objective")]
    cells += [f"{found['T_population']:.3f}", f"{found['original_T_population']:.3f}" if key[0] in original else "–"]
    rows.append([DATASETS[key[0]], model_title(key[1]), key[2], *cells])
heads = ["Data", "Model", "Seed", "Labels", "Labels, original label", "Labels, random halves", "Objective, random halves", "$T_\\mathrm{population}$", "The same, original label"]
table("llrrrrrrr", heads, rows)

# %% [markdown]
# In parentheses: the standard deviation over random halves. Neither choice is innocent.
#
# - With the original label the share of the labels, overlapping validation, becomes {glue:text}`three-parts/chaosnli-s/paper/original_share_label:.1%` on ChaosNLI-S, where it was
#   {glue:text}`three-parts/chaosnli-s/paper/share_label:.1%`, and {glue:text}`three-parts/chaosnli-m/paper/original_share_label:.1%` on ChaosNLI-M, where it was
#   {glue:text}`three-parts/chaosnli-m/paper/share_label:.1%`: the majority of a hundred fresh votes is a better hard label than the one that comes with MNLI.
# - With random halves it is {glue:text}`three-parts/chaosnli-s/paper/random_share_label:.1%` on ChaosNLI-S and
#   {glue:text}`three-parts/chaosnli-m/paper/random_share_label:.1%` on ChaosNLI-M. In {glue:text}`three-parts/random_label_larger:d` of {glue:text}`three-parts/sets:d` sets the
#   label part is larger over random halves than in file order: the primary analysis has a split in which hard labels do less harm than usual. The sets of one data set share
#   their examples, so this is one accident for each data set and not one for each set.
# - The objective part has a mean above zero in {glue:text}`three-parts/random_objective_positive:d` of {glue:text}`three-parts/sets:d` sets over random halves, and is at most
#   {glue:text}`most_objective:.4f`. That it is negative in file order is an accident of the halves too.
#
# **Which order of the changes?** Parts depend on it. Only the judged data have votes in the files used here, so the population must change before the labels; that leaves three orders. Shares with overlapping validation:

# %% tags=["hide-input"]
names = {"": "population, labels, objective", "_objective_second": "population, objective, labels", "_objective_first": "objective, population, labels", "_shapley": "mean of the three (Shapley)"}
rows = []
for dataset in original:
    found = chosen[dataset, "paper"]
    for way, words in names.items():
        cells = [f"{found[f'share_{part}{way}_crossfit']:.1%}" for part in ("population", "label", "objective")]
        rows.append([DATASETS[dataset], words, *cells, f"{found[f'share_label{way}']:.1%}"])
table("llrrrr", ["Data", "Order", "Population", "Labels", "Objective", "Labels, file order"], rows)

# %% [markdown]
# Cross-fitted, but for the last column. With the objective changed before the labels, labels make {glue:text}`three-parts/chaosnli-s/paper/share_label_objective_second_crossfit:.1%` and
# {glue:text}`three-parts/chaosnli-m/paper/share_label_objective_second_crossfit:.1%` (in file order {glue:text}`three-parts/chaosnli-s/paper/share_label_objective_second:.1%` and {glue:text}`three-parts/chaosnli-m/paper/share_label_objective_second:.1%`): fitted by the Brier score, hard labels
# do less harm. The mean over the orders, a Shapley value {cite:p}`shapley1953`, is {glue:text}`three-parts/chaosnli-s/paper/share_label_shapley_crossfit:.1%` and {glue:text}`three-parts/chaosnli-m/paper/share_label_shapley_crossfit:.1%`. The population stays the largest part in every order.
#
# **Which score?** Judged by the NLL of the votes, with the soft-NLL fit as the best step, labels make {glue:text}`three-parts/chaosnli-s/paper/share_label_nll_crossfit:.1%` ({glue:text}`three-parts/chaosnli-s/paper/share_label_nll_crossfit_low:.1%` to
# {glue:text}`three-parts/chaosnli-s/paper/share_label_nll_crossfit_high:.1%`) on ChaosNLI-S and {glue:text}`three-parts/chaosnli-m/paper/share_label_nll_crossfit:.1%` ({glue:text}`three-parts/chaosnli-m/paper/share_label_nll_crossfit_low:.1%` to {glue:text}`three-parts/chaosnli-m/paper/share_label_nll_crossfit_high:.1%`)
# on ChaosNLI-M, cross-fitted; in file order {glue:text}`three-parts/chaosnli-s/paper/share_label_nll:.1%` and {glue:text}`three-parts/chaosnli-m/paper/share_label_nll:.1%`. The NLL punishes a temperature that is much too low more than the Brier score does, so it gives the first step even more.
#
# ## A second vision predictor
#
# The CIFAR-10H gap is small, and there is one ResNet-110. Cross-validated probabilities of another network for the same test images {cite:p}`northcutt2021`
# come without a validation set, so they have a label part and an objective part only.

# %% tags=["remove-cell"]
second = load_cross_validated()
study = Study(second.select(slice(0, len(second) // 2)), second)  # the first half is its own validation set: the population part is zero
found = gap_parts(study)
fixed = resampled_scores(temperature_scores(study, [found[f"T_{step}"] for step in STEPS]), replicates=replicates)
random = parts_of(shuffled_scores(step_curves(study), draws))
names = [name for name in (*PARTS[1:3], "T_population", "T_soft_nll", "T_oracle", "brier_population", "brier_soft_nll", "brier_oracle")]
values = {name: found[name] for name in names} | {name: value for name, value in part_intervals(fixed).items() if name.startswith(("gap_label", "gap_objective"))}
record("three-parts/cifar10h/cross-validated", random_gap_label=random[:, 1].mean(), random_gap_label_sd=random[:, 1].std(), **values)
glue(most_objective=max(found["random_gap_objective"] for found in paper.values()));

# %% [markdown]
# | Predictor | Labels | Objective | Labels, random halves |
# |:---|---:|---:|---:|
# | ResNet-110 | {glue:text}`gap/cifar10h/resnet110/0/paper/gap_label:.4f` [{glue:text}`gap/cifar10h/resnet110/0/paper/gap_label_low:.4f`, {glue:text}`gap/cifar10h/resnet110/0/paper/gap_label_high:.4f`] | {glue:text}`gap/cifar10h/resnet110/0/paper/gap_objective:.4f` [{glue:text}`gap/cifar10h/resnet110/0/paper/gap_objective_low:.4f`, {glue:text}`gap/cifar10h/resnet110/0/paper/gap_objective_high:.4f`] | {glue:text}`gap/cifar10h/resnet110/0/paper/random_gap_label:.4f` ({glue:text}`gap/cifar10h/resnet110/0/paper/random_gap_label_sd:.4f`) |
# | cross-validated | {glue:text}`three-parts/cifar10h/cross-validated/gap_label:.4f` [{glue:text}`three-parts/cifar10h/cross-validated/gap_label_low:.4f`, {glue:text}`three-parts/cifar10h/cross-validated/gap_label_high:.4f`] | {glue:text}`three-parts/cifar10h/cross-validated/gap_objective:.4f` [{glue:text}`three-parts/cifar10h/cross-validated/gap_objective_low:.4f`, {glue:text}`three-parts/cifar10h/cross-validated/gap_objective_high:.4f`] | {glue:text}`three-parts/cifar10h/cross-validated/random_gap_label:.4f` ({glue:text}`three-parts/cifar10h/cross-validated/random_gap_label_sd:.4f`) |
#
# On images the order depends on the split: of the ResNet's gap of {glue:text}`three-parts/cifar10h/paper/gap:.4f` hard labels make
# {glue:text}`three-parts/cifar10h/paper/share_label:.0%` in file order and {glue:text}`three-parts/cifar10h/paper/random_share_label:.0%` over random halves. With a gap this small
# no share of it should be quoted.
#
# ## Isotonic regression
#
# It has two parts. Of all monotone maps, the one that minimises the Brier score of a class also minimises its NLL {cite:p}`brummer2013`, so a change of the objective changes nothing.

# %% tags=["hide-input"]
rows = []
for (dataset, model, seed, protocol), found in runs.items():
    cells = [f"{found[part]:.4f} [{found[f'{part}_low']:.4f}, {found[f'{part}_high']:.4f}]" for part in ("iso_gap", *ISOTONIC_PARTS[:2])]
    rows.append([DATASETS[dataset], model_title(model), seed, VALIDATION[protocol], *cells])
shares = {d: [np.mean([paper[k][name] for k in paper if k[0] == d]) for name in ("iso_gap_label", "iso_gap")] for d in DATASETS}
iso_shares = {dataset: label / gap for dataset, (label, gap) in shares.items()}
glue(**{f"iso_{dataset.replace('-', '_')}": share for dataset, share in iso_shares.items()})
table("llrlrrr", ["Data", "Model", "Seed", "Validation", "Isotonic gap", "Population", "Labels"], rows)

# %% tags=["remove-cell"]
small = [chosen[dataset, protocol][name] for dataset, protocol in groups if dataset in original for name in ("share_label", "original_share_label", "random_share_label")]
glue(replicates=replicates, largest_share=max(*small, *(iso_shares[dataset] for dataset in original)),
     times_smaller=np.mean([paper[key]["gap"] for key in language]) / paper[vision[0]]["gap"])

# %% [markdown]
# Intervals with the fits held fixed. The share of the labels, overlapping validation, is {glue:text}`iso_chaosnli_s:.1%` on ChaosNLI-S,
# {glue:text}`iso_chaosnli_m:.1%` on ChaosNLI-M and {glue:text}`iso_cifar10h:.1%` on CIFAR-10H: on sentence pairs the population is the larger part here too, on images the
# labels are.
#
# ## What it says
#
# :::{important}
# On ChaosNLI, with overlapping validation and every example fitted once and judged once, fitting to hard labels in place of votes accounts for
# {glue:text}`three-parts/chaosnli-s/paper/share_label_crossfit:.0%` (ChaosNLI-S; 95% interval {glue:text}`three-parts/chaosnli-s/paper/share_label_crossfit_low:.0%` to {glue:text}`three-parts/chaosnli-s/paper/share_label_crossfit_high:.0%`) and
# {glue:text}`three-parts/chaosnli-m/paper/share_label_crossfit:.0%` (ChaosNLI-M; {glue:text}`three-parts/chaosnli-m/paper/share_label_crossfit_low:.0%` to {glue:text}`three-parts/chaosnli-m/paper/share_label_crossfit_high:.0%`) of the gap, and fitting on another population for
# {glue:text}`three-parts/chaosnli-s/paper/share_population_crossfit:.0%` ({glue:text}`three-parts/chaosnli-s/paper/share_population_crossfit_low:.0%` to {glue:text}`three-parts/chaosnli-s/paper/share_population_crossfit_high:.0%`) and {glue:text}`three-parts/chaosnli-m/paper/share_population_crossfit:.0%` ({glue:text}`three-parts/chaosnli-m/paper/share_population_crossfit_low:.0%` to {glue:text}`three-parts/chaosnli-m/paper/share_population_crossfit_high:.0%`).
# The intervals hold other examples, other halves and other fits.
# What {cite:t}`dogah2026` calls the soft-label calibration gap is, on sentence pairs and in these models, for the larger part a gap between populations: a temperature fitted to
# *hard* labels of the ambiguous pairs closes most of it.
# :::
#
# The limits of that sentence:
#
# - The order of the halves alone moves it: in file order, as the paper has it, the labels' shares are {glue:text}`three-parts/chaosnli-s/paper/share_label:.0%` and {glue:text}`three-parts/chaosnli-m/paper/share_label:.0%`, with the halves swapped {glue:text}`three-parts/chaosnli-s/paper/share_label_swapped:.0%` and {glue:text}`three-parts/chaosnli-m/paper/share_label_swapped:.0%`
#   (on CIFAR-10H {glue:text}`three-parts/cifar10h/paper/share_label:.0%` and {glue:text}`three-parts/cifar10h/paper/share_label_swapped:.0%`). One order is no result, and its interval for fixed halves does not hold the other.
# - Other choices move it too. In file order, with the original label the shares of the labels are {glue:text}`three-parts/chaosnli-s/paper/original_share_label:.0%` and
#   {glue:text}`three-parts/chaosnli-m/paper/original_share_label:.0%` (of the population {glue:text}`three-parts/chaosnli-s/paper/original_share_population:.0%` and
#   {glue:text}`three-parts/chaosnli-m/paper/original_share_population:.0%`), over random halves {glue:text}`three-parts/chaosnli-s/paper/random_share_label:.0%` and
#   {glue:text}`three-parts/chaosnli-m/paper/random_share_label:.0%`, with disjoint validation {glue:text}`three-parts/chaosnli-s/clean/share_label:.0%` and
#   {glue:text}`three-parts/chaosnli-m/clean/share_label:.0%`, for isotonic regression {glue:text}`iso_chaosnli_s:.0%` and {glue:text}`iso_chaosnli_m:.0%`. The largest of
#   them is {glue:text}`largest_share:.0%`.
# - The label part is small but not nothing: its interval excludes zero in {glue:text}`three-parts/label_clear:d` of {glue:text}`three-parts/sets:d` sets ({glue:text}`three-parts/label_clear_refit:d` with the fits inside), and votes are
#   better than hard labels in {glue:text}`three-parts/label_positive:d`.
# - The order of the changes moves it: {glue:text}`three-parts/chaosnli-s/paper/share_label_objective_second_crossfit:.0%` and {glue:text}`three-parts/chaosnli-m/paper/share_label_objective_second_crossfit:.0%`, cross-fitted, with the objective changed before the labels. So does the score:
#   {glue:text}`three-parts/chaosnli-s/paper/share_label_nll_crossfit:.0%` and {glue:text}`three-parts/chaosnli-m/paper/share_label_nll_crossfit:.0%` judged by the NLL of the votes. SNLI and MNLI have five votes on each validation pair, but the files of predictions used here carry one label, so the population
#   changes before the labels in every order.
# - ChaosNLI was chosen for pairs on which annotators had disagreed {cite:p}`nie2020`. The population part is the price of calibrating on all pairs and judging on those; a drift of
#   another kind has another price.
# - The models are not the paper's, whose logits are not published. A few training seeds of two architectures say little about others.
# - It says nothing about images. The gap on CIFAR-10H is {glue:text}`times_smaller:.0f` times smaller than the mean one on sentence pairs, and which of its parts is the largest depends on the split.
#
# ## Take-aways

# %% tags=["hide-input"]
S, M = ({name: np.mean([crossfitted[key][name] for key in crossfitted if key[0] == d]) for name in PARTS} for d in ("chaosnli-s", "chaosnli-m"))
largest = sum(crossfitted[key]["gap_population"] > max(crossfitted[key]["gap_label"], crossfitted[key]["gap_objective"]) for key in language)
points = [
    f"On ChaosNLI the population is the largest part of the gap in {largest} of {len(language)} sets: {S['gap_population']:.3f} of {S['gap']:.3f} on ChaosNLI-S and "
    f"{M['gap_population']:.3f} of {M['gap']:.3f} on ChaosNLI-M, cross-fitted, with overlapping validation. With disjoint validation it is larger still.",
    f"Votes instead of their majority gain {S['gap_label']:.4f} and {M['gap_label']:.4f}. The Brier score instead of the NLL gains {S['gap_objective']:.4f} and "
    f"{M['gap_objective']:.4f}.",
    "Before asking for votes, ask for labels from the population that the probabilities will be used on. Then ask for votes.",
    "On CIFAR-10H the gap is small, and which of its parts is the largest depends on the split.",
]
Markdown("\n".join(f"- {point}" for point in points))

# %% [markdown]
# ## Exercises
#
# All numbers of the answers are those of the tables above.
#
# 1. The objective part is negative in some sets. Can it be negative when it is judged on the *first* half?
#
#    :::{dropdown} Answer
#    No. $T_\mathrm{oracle}$ minimises the Brier score against the votes of the first half, so no other temperature is better there. On the second half it is an estimate
#    like any other.
#    :::
#
# 2. Change the objective before the labels: the share of the labels falls. Who gets what it loses, and is there a sum that the order leaves alone?
#
#    :::{dropdown} Answer
#    The objective gets it: cross-fitted, on ChaosNLI-S the labels go from {glue:text}`three-parts/chaosnli-s/paper/share_label_crossfit:.1%` to {glue:text}`three-parts/chaosnli-s/paper/share_label_objective_second_crossfit:.1%` and the objective from
#    {glue:text}`three-parts/chaosnli-s/paper/share_objective_crossfit:.1%` to {glue:text}`three-parts/chaosnli-s/paper/share_objective_objective_second_crossfit:.1%`. Their sum stays, as long as the population changes first: both orders begin and end with the same fits. So say which order a
#    part belongs to, or give the sum.
#    :::
#
# 3. Why is a temperature fitted to the majority of many votes below that fitted to the votes themselves, even on the same examples?
#
#    :::{dropdown} Answer
#    The majority turns a share of 60% into a label that is always the same. To such labels a classifier that gives the class 60% looks underconfident, so the fit sharpens it.
#    :::

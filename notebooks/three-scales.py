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
# # Three scales, trained here
#
# Does the soft-label gap grow with the scale of a network? {cite:t}`dogah2026` says so of three ResNets on CIFAR-10, whose logits are not
# published. So this book trains three smaller ones from images, three times each, and asks again.
#
# :::{admonition} Before you start
# - **You will** see what nine networks learned, what became of both hypotheses on them, and what their gaps are made of.
# - **You need** the protocol of [](../soft-label-gap.md) and the parts of [](three-parts.ipynb). How the networks were trained is on the page
#   [](../raw-data.md).
# - **Time** about 10 minutes to read, less than half a minute to run; the training, which took hours, is not run again.
# :::
#
# :::{admonition} Primary analyses
# Written down before any of these gaps was computed:
#
# 1. *H1, the gap is above zero.* The gap of each of the nine networks, with a 95% interval over images, all fits inside the resampling.
# 2. *H2, the gap grows with scale.* By the rule that [](paper-audited.ipynb) applies to the paper: at both steps up, every run of the larger network
#    has the larger gap. And by the difference of mean gaps of two scales: with a 95% interval over images, fits inside, all networks on the
#    same resampled images; and with a t interval over the three training seeds.
# 3. *What the gap is made of.* The parts of each scale, mean over its seeds, with the interval of 1.
#
# Everything else on this page is exploratory.
# :::

# %% tags=["hide-input"]
import json
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import ttest_1samp

from calib import brier, nll, softmax
from calib.claims.printed import half_up
from calib.claims.rules import rises_with_size
from calib.claims.seeds import configurations, ordered_pairs
from calib.data import load_dogah2026
from calib.data.examples import load_record
from calib.data.titles import model_title
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, DASHED, label, log_axis
from calib.resampling import interval
from calib.softlabels.gap import soft_label_gap
from calib.softlabels.parts import PARTS, gap_parts, resampled_scores, study_parts, temperature_scores
from calib.softlabels.study import load_study

plt.style.use("calib.paper")

# %% tags=["parameters"]
folder = "ladder/predictions"  # of our own training: <folder>/cifar10h/<model>-<seed>, and the same in <folder>/augmented
models = ["resnet8", "resnet20", "resnet32"]  # from small to large
seeds = [42, 123, 456]  # training seeds of each
measured_folder = "../book/measured"  # how fast training is
replicates = 2000  # of every bootstrap
draws = 200  # of random halves

# %% tags=["remove-cell"]
if len(models) != 3 or len(seeds) < 2:
    raise ValueError(f"models, seeds: expected three models, from small to large, and at least two seeds, got {models} and {seeds}")

# %% [markdown]
# ## What was trained

# %%
keys = list(product(models, seeds))
trained = {
    (model, seed): load_record(f"{folder}/cifar10h/{model}-{seed}.json")
    for model, seed in keys
}

# %% tags=["hide-input"]
LINE = dict(zip(models, (":", DASHED, "-")))
BESIDE = dict(zip(models, ((6, 0), (6, 4), (6, -4))))  # where the name of a curve stands
fig, ax = plt.subplots(figsize=(7.2, 3.4))
for (model, seed), run in trained.items():
    losses = [epoch["loss"] for epoch in run["epochs"]]
    ax.plot(range(1, len(losses) + 1), losses, color=COLOURS["other"], linestyle=LINE[model], linewidth=1.3)
    if seed == seeds[0]:
        label(ax, model_title(model), (len(losses), losses[-1]), BESIDE[model], COLOURS["other"])
ax.set(xlabel="epoch", ylabel="training loss (NLL)", xlim=(1, 1.18 * len(losses)), ylim=(0.2, None), xticks=range(1, len(losses) + 1, 2))
rows, said = [], []
for model in models:
    runs = [trained[model, seed] for seed in seeds]
    last = [run["epochs"][-1] for run in runs]
    mean = {"loss": np.mean([epoch["loss"] for epoch in last]), "train": np.mean([epoch["accuracy"] for epoch in last])}
    mean |= {name: np.mean([run[name]["accuracy"] for run in runs]) for name in ("validation", "test")}
    minutes = [run["seconds"] / 60 for run in runs]
    rows.append([model_title(model), f"{mean['loss']:.3f}", *(f"{mean[name]:.1%}" for name in ("train", "validation", "test")), f"{min(minutes):.0f} to {max(minutes):.0f}"])
    said.append(f"{model_title(model)} {mean['loss']:.2f}")
first = trained[keys[0]]
pixels = "JPEG copies" if first["images"] == "jpeg" else "original images"
speed = json.loads((Path(measured_folder) / "training.json").read_text(encoding="utf-8"))
glue(training_rate=speed["images_per_second"], training_ratio=speed["times_as_long"]["channels first"], training_last=speed["times_as_long"]["channels last"],
     training_loading=speed["times_as_long"]["preparation"], training_predicted=speed["predicted"], training_predicting=speed["predicting_seconds"], training_threads=speed["threads"])
glue(epochs=first["recipe"]["epochs"], n_val=first["validation"]["n"], n_test=first["test"]["n"], processor=first["hardware"]["processor"], hours=sum(run["seconds"] for run in trained.values()) / 3600)
show(
    fig,
    name="fig-three-scales-training",
    caption=f"Training loss by epoch of {len(keys)} networks, with augmentation. CIFAR-10, {pixels}, {len(seeds)} seeds each.",
    alt=f"The loss falls in every run. Mean loss of the last epoch: {', '.join(said)}.",
)

# %% tags=["hide-input"]
table("lrrrrr", ["Network", "Training loss", "Training accuracy", "Validation accuracy", "Test accuracy", "Minutes"], rows)

# %% [markdown]
# Mean over {glue:text}`n_seeds:d` seeds; training loss and accuracy of the last epoch, on augmented images. The images are the **JPEG copies** of CIFAR-10, since
# the original archive could not be had where this was run, and training took **{glue:text}`epochs:d` epochs** in place of the paper's 30; all else is its recipe. The
# {glue:text}`n_val:,d` validation images are held-out training images, the {glue:text}`n_test:,d` test images are those of CIFAR-10H. Minutes on one thread of
# a processor called {glue:text}`processor:s`, {glue:text}`hours:.1f` hours in all.
#
# ## Beside the paper

# %%
results, parts, bootstrap = dict.fromkeys(keys), {}, {}
# networks of one seed have the same validation images, and share their replicates
for seed, model in product(seeds, models):
    study = load_study("cifar10h", model, seed, folder=folder)
    found = soft_label_gap(study)
    parts[study.name], *bootstrap[model, seed] = study_parts(study, replicates, draws)
    results[model, seed] = parts[study.name] | found

# %% tags=["remove-cell"]
for name, values in parts.items():  # the page of all runs has recorded the rest
    record(name, **{key: value for key, value in values.items() if key not in found})

# %% tags=["remove-cell"]
over_seeds = {model: {name: np.array([results[model, seed][name] for seed in seeds]) for name in results[keys[0]]} for model in models}
paper = {model: values for (dataset, model), values in configurations(load_dogah2026()).items() if dataset == "cifar10h"}
moved = {model: np.mean([bootstrap[model, seed][1] for seed in seeds], axis=0) for model in models}  # parts in each replicate, fits inside
at_random = {model: np.mean([bootstrap[model, seed][2] for seed in seeds], axis=0) for model in models}
for model in models:
    values = {}
    for name in ("accuracy", "T_hard", "T_oracle", "ece_uncal", "ece_hard", "ece_oracle", "brier_uncal", "brier_hard", "brier_oracle", "gap", "iso_gap"):
        values |= {f"{name}_mean": over_seeds[model][name].mean(), f"{name}_std": over_seeds[model][name].std()}
    for k, part in enumerate(PARTS):
        values |= {part: over_seeds[model][part].mean(), f"random_{part}": at_random[model][:, k].mean()}
        values |= dict(zip((f"{part}_refit_low", f"{part}_refit_high"), interval(moved[model][:, k])))
        values |= dict(zip((f"random_{part}_low", f"random_{part}_high"), interval(at_random[model][:, k])))
    record(f"three-scales/{model}", **values)

# %% tags=["hide-input"]
def mean_std(values, digits=3):
    return f"{half_up(values.mean(), digits)} ({half_up(values.std(), digits)})"


shown = {"accuracy": "Accuracy", "ece_uncal": "ECE, T = 1", "ece_hard": "ECE, hard", "ece_oracle": "ECE, oracle", "brier_hard": "Brier, hard",
         "brier_oracle": "Brier, oracle", "gap": "Gap", "iso_gap": "Isotonic gap", "T_hard": "$T_\\mathrm{hard}$", "T_oracle": "$T_\\mathrm{oracle}$"}
rows = []
for whose, of_model in (("ours", over_seeds), ("Dogah", paper)):
    for model, values in of_model.items():
        rows.append([model_title(model), whose, *(mean_std(values[name], 4 if "gap" in name else 3) for name in shown)])
table("ll" + "r" * len(shown), ["Network", "Trained by", *shown.values()], rows)

# %% [markdown]
# Mean and standard deviation over three seeds, with n in the denominator as in the paper; judged on the second half of CIFAR-10H, n = {glue:text}`n_judged:,d`; ECE with 15
# equal-width bins against the original labels, Brier scores against the votes. The rows of {cite:t}`dogah2026` are aggregated again from its files. They are other networks, trained
# for 30 epochs on the original pixels: what can be compared is the direction, not a digit.
#
# ## H1: is the gap above zero?

# %% tags=["hide-input"]
rows = []
for (model, seed), found in results.items():
    gap, random = (f"{found[name]:.5f}" for name in ("gap", "random_gap"))
    rows.append([model_title(model), seed, gap, f"[{found['gap_refit_low']:.5f}, {found['gap_refit_high']:.5f}]", f"{random} ({found['random_gap_sd']:.5f})",
                 f"{found['iso_gap']:.5f}", f"[{found['iso_gap_low']:.5f}, {found['iso_gap_high']:.5f}]"])
table("lrrrrrr", ["Network", "Seed", "Gap", "95% interval", "Gap over random halves", "Isotonic gap", "95% interval, fits fixed"], rows)

# %% tags=["remove-cell"]
groups = {("cifar10h", model): {"gap": over_seeds[model]["gap"]} for model in models}
h2 = rises_with_size(groups, "", "cifar10h")
pairs, steps = {"first_step": models[:2], "second_step": models[1:], "ends": [models[0], models[-1]]}, {}
for name, (smaller, larger) in pairs.items():
    each = over_seeds[larger]["gap"] - over_seeds[smaller]["gap"]
    t_low, t_high = ttest_1samp(each, 0).confidence_interval()
    image_low, image_high = interval(moved[larger][:, 3] - moved[smaller][:, 3])
    steps[name] = {"difference": each.mean(), "low": image_low, "high": image_high, "seeds_low": t_low, "seeds_high": t_high}
    steps[name] |= {"not_excluded": max(abs(image_low), abs(image_high)), "seeds_not_excluded": max(abs(t_low), abs(t_high))}
record(
    "three-scales",
    runs=len(results),
    gap_positive=sum(found["gap"] > 0 for found in results.values()),
    gap_clear=sum(found["gap_refit_low"] > 0 for found in results.values()),
    gap_clear_fixed=sum(found["gap_low"] > 0 for found in results.values()),
    label_clear=sum(found["gap_label_refit_low"] > 0 or found["gap_label_refit_high"] < 0 for found in results.values()),
    objective_clear=sum(found["gap_objective_refit_low"] > 0 or found["gap_objective_refit_high"] < 0 for found in results.values()),
    iso_label_clear=sum(found["iso_gap_label_low"] > 0 for found in results.values()),
    iso_label_low=min(found["iso_gap_label"] for found in results.values()),
    iso_label_high=max(found["iso_gap_label"] for found in results.values()),
    iso_gap_positive=sum(found["iso_gap"] > 0 for found in results.values()),
    gap_low=min(found["gap"] for found in results.values()),
    gap_high=max(found["gap"] for found in results.values()),
    random_gap_positive=sum(found["random_gap"] > 0 for found in results.values()),
    oracle_larger=sum(found["T_oracle"] > found["T_hard"] for found in results.values()),
    h2_verdict=h2.verdict,
    **{f"h2_{name}": value for name, value in h2.figures.items()},
    **{f"{name}_{key}": value for name, values in steps.items() for key, value in values.items()},
)
glue(width=np.mean([found["gap_refit_high"] - found["gap_refit_low"] for found in results.values()]) / 2)
glue(n_seeds=len(seeds), n_first=len(study.first), n_judged=len(study.second), replicates=replicates, draws=draws)

# %% [markdown]
# Intervals over images, {glue:text}`replicates:,d` replicates: for the gap, validation images and both halves are drawn anew and all temperatures fitted anew each time. In parentheses the standard deviation
# over {glue:text}`draws:d` random halves. The gap is above zero in
# {glue:text}`three-scales/gap_positive:d` of {glue:text}`three-scales/runs:d` networks, with an interval that excludes zero in
# {glue:text}`three-scales/gap_clear:d`; the isotonic gap is above zero in {glue:text}`three-scales/iso_gap_positive:d`. Over random halves in place of those in file order, the mean gap is above zero in
# {glue:text}`three-scales/random_gap_positive:d`.
#
# ## H2: does it grow with scale?

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
for ax, of_model, title in zip(axes, (over_seeds, paper), ("trained here", "Dogah (2026)")):
    for k, (model, values) in enumerate(of_model.items()):
        ax.plot(np.full(len(values["gap"]), k), values["gap"], "o", color=COLOURS["other"], markersize=6, alpha=0.7)
        ax.plot([k - 0.2, k + 0.2], [values["gap"].mean()] * 2, color=COLOURS["other"], linewidth=2)
        if model in moved:
            ax.plot([k + 0.3] * 2, interval(moved[model][:, 3]), color=COLOURS["neutral"], linewidth=1.5)
    ax.set_xticks(range(len(of_model)), [model_title(model) for model in of_model])
    ax.axhline(0, color=COLOURS["neutral"], linewidth=1)
    ax.set(title=title, xlim=(-0.5, len(of_model) - 0.4))
    ax.grid(axis="x", visible=False)
axes[0].set_ylabel("soft-label gap in Brier score (0 to 2)")
words = [f"{model_title(model)} {values['gap'].mean():.4f}" for of_model in (over_seeds, paper) for model, values in of_model.items()]
show(
    fig,
    name="fig-three-scales-gap",
    caption=f"The soft-label gap by scale: a dot per training seed, a bar at their mean. Grey: 95% interval of the mean over images, fits inside. CIFAR-10H, ours on {pixels}; judged on "
    f"n = {len(study.second):,}.",
    alt=f"Mean gaps: {', '.join(words)}.",
)

# %% tags=["hide-input"]
rows = []  # the last column: pairs of runs
for name, (smaller, larger) in pairs.items():
    step, ordered = steps[name], h2.figures[name]
    rows.append([f"{model_title(larger)} minus {model_title(smaller)}", f"{step['difference']:+.5f}", f"[{step['low']:+.5f}, {step['high']:+.5f}]",
                 f"[{step['seeds_low']:+.5f}, {step['seeds_high']:+.5f}]", f"{ordered} of {len(seeds) ** 2}"])
table("lrrrr", ["Difference of mean gaps", "Value", "Interval over images", "Interval over seeds", "Larger network, larger gap"], rows)

# %% [markdown]
# ## What makes a network overconfident?
#
# {cite:t}`guo2017` varied one thing at a time: deeper and wider networks, batch normalisation and less weight decay each came with more overconfidence, while the accuracy rose or stayed. A network that goes on lowering its
# training NLL after its errors are gone makes its logits larger, and nothing in the training data contradicts it. Later networks are not all so {cite:p}`minderer2021`. Of these causes only depth varies here; width, batch
# normalisation and weight decay are the same in all nine.

# %% tags=["hide-input"]
rows = [[model_title(model), f"{over_seeds[model]['accuracy'].mean():.1%}", f"{over_seeds[model]['ece_uncal'].mean():.4f}",
         f"{over_seeds[model]['T_hard'].mean():.3f} ({over_seeds[model]['T_hard'].min():.3f} to {over_seeds[model]['T_hard'].max():.3f})"] for model in models]
hotter = {name: ordered_pairs(over_seeds[smaller]["T_hard"], over_seeds[larger]["T_hard"]) for name, (smaller, larger) in pairs.items()}
record("three-scales", **{f"hotter_{name}": value for name, value in hotter.items()})
table("lrrr", ["Network", "Accuracy", "ECE at T = 1", "$T_\\mathrm{hard}$ (lowest to highest of the seeds)"], rows)

# %% [markdown]
# The deeper network needs the higher temperature in {glue:text}`three-scales/hotter_first_step:d` of 9 pairs of runs from ResNet-8 to ResNet-20 and in {glue:text}`three-scales/hotter_second_step:d` of 9 from ResNet-20 to ResNet-32. That agrees with depth as a cause. It does not
# isolate it: the deeper networks also fit their training images better in the same number of epochs.
#
# ## Do NLL and Brier score rank alike?
#
# Both are proper scores: on enough data each is best at the true probabilities. Away from these they punish differently, the NLL without limit, the Brier score by at most 2. Here are all nine networks at three temperatures
# on the same images, compared pair by pair.

# %%
scored = []
for model, seed in keys:
    second = load_study("cifar10h", model, seed, folder=folder).second
    for T in (1.0, results[model, seed]["T_hard"], results[model, seed]["T_oracle"]):
        p = softmax(second.logits, T)
        scored.append(
            [
                nll(second.logits, second.labels, T),
                brier(p, second.labels),
                nll(second.logits, second.distributions, T),
                brier(p, second.distributions),
            ]
        )
differences = [np.sign(np.subtract(a, b)) for a, b in combinations(scored, 2)]

# %% tags=["remove-cell"]
order = np.array(differences)
record("three-scales", ranked_pairs=len(order), ranked_alike_labels=int((order[:, 0] == order[:, 1]).sum()), ranked_alike_votes=int((order[:, 2] == order[:, 3]).sum()))

# %% [markdown]
# Judged against labels, NLL and Brier score agree on which of two is better in {glue:text}`three-scales/ranked_alike_labels:d` of {glue:text}`three-scales/ranked_pairs:d` pairs; against votes in {glue:text}`three-scales/ranked_alike_votes:d`. Mostly, then, but not always: report both, and
# fit by the one that your use pays for. The [six examples](six-examples.ipynb) are a case where they disagree.
#
# ## If the validation images are augmented
#
# In the code that {cite:t}`dogah2026` released, the validation images keep the crops and flips of training ([](paper-audited.ipynb)). The temperature then belongs to another population than the judged images, which
# are as they are. Its networks are not published; ours can be asked what that does.

# %%
augmented, change = {}, []
for model, seed in keys:
    study = load_study("cifar10h", model, seed, folder=f"{folder}/augmented")
    augmented[model, seed] = soft_label_gap(study) | gap_parts(study)
    both = temperature_scores(
        study, [augmented[model, seed]["T_hard"], results[model, seed]["T_hard"]]
    )
    change.append(
        -np.diff(resampled_scores(both, study.judged_clusters, replicates))[:, 0]
    )

# %% tags=["hide-input"]
names = ("accuracy", "T_hard", "T_oracle", "gap", "gap_population", "iso_gap")
of_augmented = {model: {name: np.array([augmented[model, seed][name] for seed in seeds]) for name in names} for model in models}
accuracies = {key: load_record(f"{folder}/augmented/cifar10h/{key[0]}-{key[1]}.json")["validation"]["accuracy"] for key in keys}
rows = []
for model in models:
    plain, other = over_seeds[model], of_augmented[model]
    correct = [np.mean([values[model, seed] for seed in seeds]) for values in ({key: run["validation"]["accuracy"] for key, run in trained.items()}, accuracies)]
    shown = (("T_hard", ".3f"), ("gap", ".5f"), ("gap_population", ".5f"), ("iso_gap", ".5f"))
    rows.append([model_title(model), *(f"{value:.1%}" for value in correct), *(f"{of[name].mean():{spec}}" for name, spec in shown for of in (plain, other))])
heads = ["Validation accuracy", "$T_\\mathrm{hard}$", "Gap", "Population part", "Isotonic gap"]
table("l" + "rr" * len(heads), ["Network", *(word for head in heads for word in (head, "augmented"))], rows)

# %% tags=["remove-cell"]
gaps = {name: np.concatenate([values["gap"] for values in of.values()]) for name, of in (("plain", over_seeds), ("augmented", of_augmented), ("paper", paper))}
cooler = np.concatenate([1 - of_augmented[model]["T_hard"] / over_seeds[model]["T_hard"] for model in models])
record(
    "three-scales",
    gap=gaps["plain"].mean(),
    augmented_larger=int((gaps["augmented"] > gaps["plain"]).sum()),
    augmented_gap=gaps["augmented"].mean(),
    augmented_gap_low=gaps["augmented"].min(),
    augmented_gap_high=gaps["augmented"].max(),
    augmented_change=(gaps["augmented"] - gaps["plain"]).mean(),
    **dict(zip(("augmented_change_low", "augmented_change_high"), interval(np.mean(change, axis=0)))),
    augmented_cooler_least=cooler.min(),
    augmented_cooler_most=cooler.max(),
    augmented_rising=sum(a < b < c for a, b, c in product(*(values["gap"] for values in of_augmented.values()))),
    paper_gap=gaps["paper"].mean(),
    paper_gap_low=gaps["paper"].min(),
    paper_gap_high=gaps["paper"].max(),
);

# %% [markdown]
# Mean over three seeds. Test images, oracle and accuracy on the judged images are the same in both. The networks are nearly as often right about augmented images, and yet $T_\mathrm{hard}$ falls, by
# {glue:text}`three-scales/augmented_cooler_least:.0%` to {glue:text}`three-scales/augmented_cooler_most:.0%`. The gap rises in {glue:text}`three-scales/augmented_larger:d` of {glue:text}`three-scales/runs:d` networks, from {glue:text}`three-scales/gap:.4f` to {glue:text}`three-scales/augmented_gap:.4f` on average: by
# {glue:text}`three-scales/augmented_change:.4f` (95% interval over judged images, fits fixed, {glue:text}`three-scales/augmented_change_low:.4f` to {glue:text}`three-scales/augmented_change_high:.4f`). That is the size of the gaps
# that the paper reports for its nine vision runs, {glue:text}`three-scales/paper_gap_low:.4f` to {glue:text}`three-scales/paper_gap_high:.4f`.
#
# ## Why the gap is what it is

# %% tags=["hide-input"]
grid = np.geomspace(0.9, 1.7, 60)
fig, ax = plt.subplots(figsize=(7.2, 3.8))
said = []
for model in models:
    second, found = load_study("cifar10h", model, seeds[0], folder=folder).second, results[model, seeds[0]]
    curve = np.array([brier(softmax(second.logits, T), second.distributions) for T in grid])
    ax.plot(grid, curve - curve.min(), color=COLOURS["other"], linestyle=LINE[model], zorder=1)
    label(ax, model_title(model), (grid[-1], curve[-1] - curve.min()), BESIDE[model], COLOURS["other"])
    for state, T, colour in (("uncal", 1.0, "t1"), ("hard", found["T_hard"], "fitted"), ("oracle", found["T_oracle"], "oracle")):
        ax.plot(T, found[f"brier_{state}"] - curve.min(), "o", color=COLOURS[colour], markersize=6)
    said.append(f"{model_title(model)}: hard labels T = {found['T_hard']:.2f}, oracle T = {found['T_oracle']:.2f}")
log_axis(ax.xaxis, [0.9, 1, 1.2, 1.4, 1.6])
ax.set(xlabel="temperature (log scale)", ylabel="Brier score above its lowest", xlim=(0.9, 1.92))
show(
    fig,
    name="fig-three-scales-brier",
    caption=f"Brier score against the votes over the temperature, less the lowest of each curve. Dots: T = 1 (orange-red), hard labels (blue), oracle (green). Seed {seeds[0]}, evaluation half, n = {len(second):,}.",
    alt=f"Three curves with a flat bottom. {'; '.join(said)}.",
)

# %% [markdown]
# Around its lowest point a curve is flat, so a gap grows with the square of the distance between the two temperatures on this axis,
# $\log^2(T_\mathrm{oracle} / T_\mathrm{hard})$. Multiplying all logits by a constant multiplies both temperatures and leaves that ratio, and the gap, as they are: a network that
# is merely too sure of everything has no gap. There is one only where no single divisor serves labels and votes alike. Here is every network for which this book has a gap on
# CIFAR-10H, by that ratio.

# %% tags=["hide-input"]
published = soft_label_gap(load_study("cifar10h", "resnet110", 0))
families = {
    "trained here": ({name: np.concatenate([v[name] for v in over_seeds.values()]) for name in ("T_hard", "T_oracle", "gap")}, "other", "o"),
    "trained here, augmented validation": ({name: np.concatenate([v[name] for v in of_augmented.values()]) for name in ("T_hard", "T_oracle", "gap")}, "other", "s"),
    "Dogah (2026)": ({name: np.concatenate([v[name] for v in paper.values()]) for name in ("T_hard", "T_oracle", "gap")}, "neutral", "o"),
    "ResNet-110, public logits": ({name: np.array([published[name]]) for name in ("T_hard", "T_oracle", "gap")}, "neutral", "D"),
}
hollow = "trained here, augmented validation", "Dogah (2026)"
fig, ax = plt.subplots(figsize=(7.2, 4.2))
factor = {}
for name, (values, colour, marker) in families.items():
    ratio = values["T_oracle"] / values["T_hard"]
    factor[name] = (values["gap"] * np.log(ratio) ** 2).sum() / (np.log(ratio) ** 4).sum()
    ax.plot(ratio, values["gap"], marker, color=COLOURS[colour], markerfacecolor="none" if name in hollow else None, label=name)
across = np.geomspace(0.97, 1.36, 50)  # of the axis
ax.plot(across, factor["trained here"] * np.log(across) ** 2, color=COLOURS["other"], linestyle=DASHED, linewidth=1, zorder=0)
ax.axhline(0, color=COLOURS["neutral"], linewidth=1)
log_axis(ax.xaxis, [1, 1.1, 1.2, 1.3])
ax.set(xlabel="$T_\\mathrm{oracle} / T_\\mathrm{hard}$ (log scale)", ylabel="soft-label gap in Brier score (0 to 2)")
ax.legend(loc="upper left")
glue(factor_ours=factor["trained here"], factor_augmented=factor["trained here, augmented validation"], factor_paper=factor["Dogah (2026)"])
ends = [f"{name}: ratio {min(v['T_oracle'] / v['T_hard']):.2f} to {max(v['T_oracle'] / v['T_hard']):.2f}, gap {min(v['gap']):.4f} to {max(v['gap']):.4f}" for name, (v, *_) in families.items()]
show(
    fig,
    name="fig-three-scales-ratio",
    caption="The gap over the ratio of the two temperatures, a dot per network; dashed: a multiple of the squared logarithm of the ratio, fitted to the networks trained here. CIFAR-10H; ours on "
    f"{pixels}; n = {len(study.second):,} judged.",
    alt="; ".join(ends) + ".",
)

# %% [markdown]
# The dashed line is {glue:text}`factor_ours:.3f` $\log^2(T_\mathrm{oracle} / T_\mathrm{hard})$, by least squares over the networks trained here, with validation images as they are. The factor is {glue:text}`factor_augmented:.3f` for
# augmented ones, and {glue:text}`factor_paper:.3f` over the networks of {cite:t}`dogah2026`. ResNet-110, whose validation images are as they are in the code of {cite:t}`kull2019`, has a gap of that size too: augmented validation images make such a gap, they are not
# the only way to one.
#
# ## What the gap is made of

# %% tags=["hide-input"]
rows = []
for model in models:
    found = over_seeds[model]
    cells = []
    for k in (3, 0, 1, 2):
        low, high = interval(moved[model][:, k])
        cells.append(f"{found[PARTS[k]].mean():.5f} [{low:.5f}, {high:.5f}]")
    rows.append([model_title(model), "file order", *cells])
    cells = [f"{at_random[model][:, k].mean():.5f} ({at_random[model][:, k].std():.5f})" for k in (3, 0, 1, 2)]
    rows.append([model_title(model), "random", *cells])
table("llrrrr", ["Network", "Halves", "Gap", "Population", "Labels", "Objective"], rows)

# %% [markdown]
# Mean over three seeds. In file order with 95% intervals over images, fits inside, all networks on the same resampled images; over {glue:text}`draws:d` random halves with their standard
# deviation in parentheses. Validation and test images are drawn alike, so the population part is sampling noise of two validation sets, of {glue:text}`n_val:,d` and
# {glue:text}`n_first:,d` images.
#
# ## Isotonic regression

# %% tags=["hide-input"]
rows = []
for model in models:
    found = over_seeds[model]
    rows.append([model_title(model), *(f"{found[name].mean():.5f} ({found[name].min():.5f} to {found[name].max():.5f})" for name in ("iso_gap", "iso_gap_population", "iso_gap_label"))])
table("lrrr", ["Network", "Isotonic gap", "Population", "Labels"], rows)

# %% [markdown]
# Mean over three seeds, in parentheses the lowest and the highest.
#
# ## What it says
#
# :::{important}
# **H1.** A temperature from hard labels costs these networks {glue:text}`three-scales/gap_low:.5f` to {glue:text}`three-scales/gap_high:.5f` in Brier score against votes. That is above zero in
# {glue:text}`three-scales/gap_positive:d` of {glue:text}`three-scales/runs:d`. With the fits inside the resampling, the interval over images excludes
# zero in {glue:text}`three-scales/gap_clear:d`; with the fits held fixed, in {glue:text}`three-scales/gap_clear_fixed:d`.
#
# **H2.** The mean gap is {glue:text}`three-scales/resnet8/gap_mean:.5f`, {glue:text}`three-scales/resnet20/gap_mean:.5f` and {glue:text}`three-scales/resnet32/gap_mean:.5f` from the smallest to the largest. The larger network has the larger gap in {glue:text}`three-scales/h2_first_step:d` and {glue:text}`three-scales/h2_second_step:d` of 9
# pairs of runs: by the rule that was applied to the paper, "the gap grows with scale" is {glue:text}`three-scales/h2_verdict:s`. From ResNet-8 to ResNet-32 it rises by {glue:text}`three-scales/ends_difference:.5f` (95% interval over images
# {glue:text}`three-scales/ends_low:.5f` to {glue:text}`three-scales/ends_high:.5f`, over seeds {glue:text}`three-scales/ends_seeds_low:.5f` to {glue:text}`three-scales/ends_seeds_high:.5f`). Between ResNet-20 and ResNet-32 no difference
# is shown. That is not the same as none: the intervals exclude a difference of more than {glue:text}`three-scales/second_step_not_excluded:.5f` over images and of {glue:text}`three-scales/second_step_seeds_not_excluded:.5f` over seeds, and the gap of ResNet-20 is only {glue:text}`three-scales/resnet20/gap_mean:.5f`.
#
# **Augmented validation images** alone, not a primary analysis, raise the gap by {glue:text}`three-scales/augmented_change:.4f` to {glue:text}`three-scales/augmented_gap:.4f` on average, by construction all of it in the population part, and the order of the scales is gone: the gap rises at both steps in
# {glue:text}`three-scales/augmented_rising:d` of {glue:text}`combinations:d` ways to take a run of each. The validation images of the paper's code are augmented, and its gaps are {glue:text}`three-scales/paper_gap:.4f` on average. Whether its networks react as ours cannot be said without
# them; until then its vision gap should not be ascribed to hard labels.
#
# **The parts** of such a small gap are as large as it is and partly cancel: with the fits inside, the label part is told from zero in {glue:text}`three-scales/label_clear:d` of {glue:text}`three-scales/runs:d` networks, the objective part in
# {glue:text}`three-scales/objective_clear:d`. Isotonic regression is clearer: votes in place of labels gain it {glue:text}`three-scales/iso_label_low:.4f` to {glue:text}`three-scales/iso_label_high:.4f`, with an interval above zero (fits fixed)
# in {glue:text}`three-scales/iso_label_clear:d` of {glue:text}`three-scales/runs:d`.
# :::
#
# The limits of these sentences:
#
# - The networks are small and were trained for half as many epochs as the paper's, on copies of the images. ResNet-32 is then hardly more accurate than ResNet-20 ({glue:text}`three-scales/resnet32/accuracy_mean:.1%` and
#   {glue:text}`three-scales/resnet20/accuracy_mean:.1%` on the judged images; ResNet-8 {glue:text}`three-scales/resnet8/accuracy_mean:.1%`).
# - {glue:text}`n_judged:,d` judged images leave the gap of one network uncertain by about {glue:text}`width:.4f` either way, more than most of these gaps.
# - The two intervals answer two questions. That over seeds asks what other trainings would give on these images, that over images what these networks would give on others.
# - A training seed varies the split, the first weights and the order of the images together. The votes were given on the original images, not on copies.
# - All networks see the same test images. Nine networks are not nine samples.
#
# ## Take-aways
#
# - On CIFAR-10H nine networks trained here have gaps of {glue:text}`three-scales/gap_low:.5f` to {glue:text}`three-scales/gap_high:.5f`, n = {glue:text}`n_judged:,d` judged; fitted on augmented validation images, of {glue:text}`three-scales/augmented_gap_low:.4f` to {glue:text}`three-scales/augmented_gap_high:.4f`.
# - A gap follows the ratio of the two temperatures: about {glue:text}`factor_ours:.2f` $\log^2(T_\mathrm{oracle} / T_\mathrm{hard})$ here and {glue:text}`factor_paper:.2f` times the same over the networks of the paper.
# - Being too sure of everything makes no gap: multiplying all logits by a constant leaves it as it is.
# - Before a temperature is fitted, look at what the validation images went through. Fit on images as they will come.
#
# ## Exercises
#
# The folded cell computes the answers.

# %% tags=["hide-cell"]
study = load_study("cifar10h", models[1], seeds[0], folder=folder)
louder = {name: replace(part, logits=3 * part.logits) for name, part in (("validation", study.validation), ("soft", study.soft))}
loud, plain = soft_label_gap(replace(study, **louder)), results[models[1], seeds[0]]
triples = list(product(*(over_seeds[model]["gap"] for model in models)))
rising = sum(a < b < c for a, b, c in triples)
middle = over_seeds[models[1]]
constant = middle["gap"].mean() / np.mean(np.log(middle["T_oracle"] / middle["T_hard"]) ** 2)
predicted = [constant * np.mean(np.log(over_seeds[model]["T_oracle"] / over_seeds[model]["T_hard"]) ** 2) for model in (models[0], models[2])]
glue(loud_hard=loud["T_hard"], plain_hard=plain["T_hard"], loud_oracle=loud["T_oracle"], plain_oracle=plain["T_oracle"], loud_gap=loud["gap"], plain_gap=plain["gap"],
     rising=rising, combinations=len(triples), constant=constant, small_predicted=predicted[0], large_predicted=predicted[1],
     small_off=predicted[0] / over_seeds[models[0]]["gap"].mean() - 1, large_off=predicted[1] / over_seeds[models[2]]["gap"].mean() - 1)

# %% [markdown]
# 1. Multiply all logits of a network by 3. What becomes of $T_\mathrm{hard}$, $T_\mathrm{oracle}$ and the gap?
#
#    :::{dropdown} Answer
#    Of ResNet-20, first seed: $T_\mathrm{hard}$ goes from {glue:text}`plain_hard:.3f` to {glue:text}`loud_hard:.3f`, $T_\mathrm{oracle}$ from {glue:text}`plain_oracle:.3f` to
#    {glue:text}`loud_oracle:.3f`, both three times as large, and the gap stays at {glue:text}`loud_gap:.5f`: after the division the probabilities are the same.
#    :::
#
# 2. Had there been one seed per scale, how often would the three gaps have risen with the scale?
#
#    :::{dropdown} Answer
#    In {glue:text}`rising:d` of the {glue:text}`combinations:d` ways to take one run of each scale. Three numbers without any order rise in one case of six.
#    :::
#
# 3. Take the factor of $\log^2(T_\mathrm{oracle} / T_\mathrm{hard})$ from ResNet-20 alone and predict the mean gaps of the other two scales from their temperatures.
#
#    :::{dropdown} Answer
#    The factor is {glue:text}`constant:.3f`. It predicts {glue:text}`small_predicted:.5f` for ResNet-8, measured {glue:text}`three-scales/resnet8/gap_mean:.5f`, and {glue:text}`large_predicted:.5f` for
#    ResNet-32, measured {glue:text}`three-scales/resnet32/gap_mean:.5f`: off by {glue:text}`small_off:+.0%` and {glue:text}`large_off:+.0%`. The formula says how much a distance of the two temperatures costs. Where they nearly agree, as on ResNet-8, most of the
#    small gap is something else: $T_\mathrm{oracle}$ comes from the first half, and is not quite the best on the second.
#    :::

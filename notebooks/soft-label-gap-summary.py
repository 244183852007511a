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
# # All runs beside the paper
#
# Where do the runs of this book fall beside those of {cite:t}`dogah2026`? The paper's Tables 1 to 3 are aggregated
# again from its per-seed files, and every run of this book is set next to them.
#
# :::{admonition} Before you start
# - **You will** see where our runs, on public logits and on logits of our own training, fall among the paper's own models, and how much seeds matter.
# - **You need** the protocol of [](../soft-label-gap.md).
# - **Time** about five minutes to read, a few seconds to run.
# :::

# %% tags=["hide-input"]
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from calib.claims.printed import as_printed, half_up, printed
from calib.data import DATASETS, load_dogah2026
from calib.data.titles import model_title
from calib.pages import record as results
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, label
from calib.softlabels.study import VALIDATION, key_of

plt.style.use("calib.paper")

# %% tags=["parameters"]
results_folder = "../_build/results"  # where the runs put their numbers
gap_runs = ["soft-label-gap"]  # the runs to show

# %% [markdown]
# ## Our runs
#
# Mean and standard deviation over the training seeds, with n in the denominator as in the paper. Evaluated on the second half of
# the soft-labelled examples. The two protocols differ only in the validation set, so they share their oracle.

# %%
runs = {}
for name, values in results.load_runs(results_folder, gap_runs).items():
    dataset, model, seed, protocol = key_of(name)
    runs.setdefault((dataset, model, protocol), []).append(values)
needed = {
    ("cifar10h", "resnet110", "paper"),
    ("cifar10h", "resnet8", "paper"),
    ("chaosnli-s", "roberta-base", "clean"),
    ("chaosnli-m", "roberta-base", "clean"),
}
if not needed <= runs.keys():
    raise ValueError(
        "gap_runs: expected ResNet-110 and ResNet-8 on CIFAR-10H and RoBERTa-base on "
        f"both parts of ChaosNLI, got {gap_runs}"
    )

# %% tags=["hide-input"]
ORDER = list(DATASETS)


def mean_std(rows, name):
    values, digits = np.array([row[name] for row in rows]), 4 if "gap" in name else 3
    return f"{half_up(values.mean(), digits)} ({half_up(values.std(), digits)})"


shown = ["gap", "iso_gap", "T_hard", "T_oracle", "brier_hard", "brier_oracle", "accuracy"]
heads = ["Gap", "Isotonic gap", "$T_\\mathrm{hard}$", "$T_\\mathrm{oracle}$", "Brier, hard", "Brier, oracle", "Accuracy"]
lines = []
for (dataset, model, protocol), rows in sorted(runs.items(), key=lambda item: (ORDER.index(item[0][0]), item[0])):
    cells = [mean_std(rows, name) for name in shown]
    copies = ", JPEG copies" if rows[0].get("images") == "jpeg" else ""
    lines.append([DATASETS[dataset] + copies, model_title(model), VALIDATION[protocol], f"{rows[0]['n'] - rows[0]['n'] // 2:,}", len(rows), *cells])
table("lllrr" + "r" * len(heads), ["Data", "Model", "Validation", "n judged", "Seeds", *heads], lines)

# %% [markdown]
# One seed has no spread: a standard
# deviation of zero there is no statement about precision. ResNet-8, 20 and 32 were trained for this book, on JPEG copies of the images; [](three-scales.ipynb) has intervals for
# them.
#
# ## The paper's tables, aggregated again
#
# Its {glue:text}`soft-label-gap-summary/paper_files:d` per-seed files give every number of its Tables 1, 2 and 3. A number in the table below is ours; a cell is marked with
# ✗ where it does not come out as printed. The paper does not print the ECE at T = 1 for language.

# %%
paper = {}
for row in load_dogah2026():
    paper.setdefault((row["dataset"], row["model"]), []).append(row)

quantities = [
    "accuracy",
    "ece_uncal",
    "ece_hard",
    "ece_oracle",
    "brier_hard",
    "brier_oracle",
    "gap",
    "iso_gap",
]
means = {
    key: {name: np.mean([row[name] for row in rows]) for name in quantities}
    for key, rows in paper.items()
}
stds = {
    key: {name: np.std([row[name] for row in rows]) for name in quantities}
    for key, rows in paper.items()
}

# %% tags=["hide-input"]
TABLE = {"cifar10h": "Table 1", "chaosnli-s": "Table 2", "chaosnli-m": "Table 2"}
SOURCE = "soft-label gap paper"
checked = wrong = 0


def cell(dataset, model, name, table, spread=True):
    global checked, wrong
    key, expected = (dataset, model), printed(SOURCE, f"{table} {model_title(model)} {DATASETS[dataset]}", name)
    text = as_printed(expected, [means[key][name], stds[key][name]] if spread else [means[key][name]])
    agrees = text == expected
    checked, wrong = checked + 1, wrong + (not agrees)
    return text if agrees else text + " ✗"


names = quantities[:-1]
heads = ["Accuracy", "ECE, T = 1", "ECE, hard", "ECE, oracle", "Brier, hard", "Brier, oracle", "Gap"]
lines = []
scale = ["resnet18", "resnet50", "resnet101", "distilbert-base-uncased", "bert-base-uncased", "bert-large-uncased"]
for dataset, model in sorted(paper, key=lambda key: (ORDER.index(key[0]), scale.index(key[1]))):
    in_table = names if dataset == "cifar10h" else names[:1] + names[2:]
    cells = [cell(dataset, model, name, TABLE[dataset]) if name in in_table else "–" for name in names]
    cells += [cell(dataset, model, name, "Table 3", spread=False) for name in ("gap", "iso_gap")]
    lines.append([DATASETS[dataset], model_title(model), *cells])
table("ll" + "r" * 9, ["Data", "Model", *heads, "Gap (Table 3)", "Isotonic gap (Table 3)"], lines)

# %% tags=["remove-cell"]
for dataset, model in paper:
    for end, values in (("mean", means), ("std", stds)):
        record(f"dogah2026/{dataset}/{model}", **{f"{name}_{end}": value for name, value in values[dataset, model].items()})

gaps = {key: np.array([row["gap"] for row in rows]) for key, rows in paper.items()}
language = [values.mean() for (dataset, _), values in gaps.items() if dataset != "cifar10h"]
vision = [values.mean() for (dataset, _), values in gaps.items() if dataset == "cifar10h"]
ours = {key: np.array([row["gap"] for row in rows]) for key, rows in runs.items()}
chaos = np.concatenate([values for (dataset, _, protocol), values in ours.items() if dataset != "cifar10h" and protocol == "paper"])
clean = np.concatenate([values for (_, _, protocol), values in ours.items() if protocol == "clean"])
everything = [values for rows in runs.values() for values in rows]
trained = [values["gap"] for values in everything if "images" in values]  # by ourselves, from images
record(
    "soft-label-gap-summary",
    published_cells=checked,
    published_cells_wrong=wrong,
    paper_files=sum(map(len, gaps.values())),
    paper_language_gap=np.mean(language),
    paper_vision_gap=np.mean(vision),
    language_gap_low=chaos.min(),
    language_gap_high=chaos.max(),
    clean_gap_low=clean.min(),
    clean_gap_high=clean.max(),
    pairs=sum(len(values) for (_, _, protocol), values in ours.items() if protocol == "clean"),
    clean_larger=sum(int((values > ours[dataset, model, "paper"]).sum()) for (dataset, model, protocol), values in ours.items() if protocol == "clean"),
    vision_gap=ours["cifar10h", "resnet110", "paper"].mean(),
    trained=len(trained),
    trained_gap_low=min(trained),
    trained_gap_high=max(trained),
    runs=len(everything),
    positive=sum(values["gap"] > 0 for values in everything),
    iso_positive=sum(values["iso_gap"] > 0 for values in everything),
    independent=len({(values["T_oracle"], values["brier_oracle"]) for values in everything}),
);

# %% [markdown]
# Of {glue:text}`soft-label-gap-summary/published_cells:d` cells, {glue:text}`soft-label-gap-summary/published_cells_wrong:d` do not
# come out to every printed digit.
#
# ## One picture

# %% tags=["hide-input"]
PAPER, OURS = COLOURS["neutral"], COLOURS["other"]
rows = [(dataset, f"{model_title(model)}, Dogah", values, PAPER, PAPER) for (dataset, model), values in gaps.items()]
rows += [(dataset, f"{model_title(model)}, ours, {VALIDATION[protocol]}", values, OURS, OURS if protocol == "paper" else "white") for (dataset, model, protocol), values in ours.items()]
fig, axes = plt.subplots(3, 1, figsize=(7.2, 7.4), sharex=True, height_ratios=[sum(row[0] == d for row in rows) for d in ORDER])
for ax, dataset in zip(axes, ORDER):
    chosen = sorted((row for row in rows if row[0] == dataset), key=lambda row: -row[2].mean())
    for y, (_, _, values, colour, face) in enumerate(chosen):
        ax.plot([0, values.mean()], [y, y], color=colour, linewidth=6, alpha=0.3, solid_capstyle="butt")
        ax.plot(values, np.full(len(values), y), "o", color=colour, markerfacecolor=face, markersize=5)
    ax.set_yticks(range(len(chosen)), [name for _, name, *_ in chosen])
    ax.set(title=DATASETS[dataset], ylim=(-0.6, len(chosen) - 0.4))
    ax.grid(axis="y", visible=False)
for words, colour, y in (("● models of Dogah (2026)", PAPER, 0.97), ("● ours, overlapping validation", OURS, 0.84), ("○ ours, disjoint validation", OURS, 0.71)):
    label(axes[1], words, (1, y), (-2, 0), colour, xycoords="axes fraction")
axes[-1].set_xlabel("soft-label gap in Brier score (0 to 2)")
n_judged = {dataset: values[0]["n"] - values[0]["n"] // 2 for (dataset, *_), values in runs.items()}
ranges = []
for dataset in ORDER:
    values = np.concatenate([row[2] for row in rows if row[0] == dataset])
    ranges.append(f"{DATASETS[dataset]} from {values.min():.3f} to {values.max():.3f}")
sizes = ", ".join(f"{DATASETS[dataset]} n = {n_judged[dataset]:,}" for dataset in ORDER)
show(
    fig,
    name="fig-gap",
    caption="The soft-label calibration gap: Brier score against human votes of the temperature from hard labels, less that of the "
    f"temperature fitted to votes. A dot is a training seed, a bar the mean of the seeds. Judged on, in our runs: {sizes}.",
    alt=f"A bar per model and a dot per seed for the soft-label calibration gap: {'; '.join(ranges)}.",
)

# %% [markdown]
# ## Take-aways
#
# - The paper's {glue:text}`soft-label-gap-summary/paper_files:d` per-seed files reproduce its Tables 1 to 3:
#   {glue:text}`soft-label-gap-summary/published_cells:d` cells, {glue:text}`soft-label-gap-summary/published_cells_wrong:d` of
#   them differ from print. Its mean gap is {glue:text}`soft-label-gap-summary/paper_language_gap:.3f` over its {glue:text}`n_language:d` language
#   configurations and {glue:text}`soft-label-gap-summary/paper_vision_gap:.3f` over its {glue:text}`n_vision:d` vision configurations.
# - On public logits of other models, with the paper's protocol, the gap on ChaosNLI is
#   {glue:text}`soft-label-gap-summary/language_gap_low:.3f` to {glue:text}`soft-label-gap-summary/language_gap_high:.3f` over
#   models and seeds, and {glue:text}`soft-label-gap-summary/vision_gap:.4f` on CIFAR-10H for one ResNet-110. For the {glue:text}`soft-label-gap-summary/trained:d` smaller networks trained here it
#   is {glue:text}`soft-label-gap-summary/trained_gap_low:.5f` to {glue:text}`soft-label-gap-summary/trained_gap_high:.5f`.
# - With the soft-labelled examples taken out of the validation set it is {glue:text}`soft-label-gap-summary/clean_gap_low:.3f` to
#   {glue:text}`soft-label-gap-summary/clean_gap_high:.3f` on ChaosNLI, and larger than with the protocol of the paper in
#   {glue:text}`soft-label-gap-summary/clean_larger:d` of {glue:text}`soft-label-gap-summary/pairs:d` pairs of model and seed.
# - The gap is positive in {glue:text}`soft-label-gap-summary/positive:d` of {glue:text}`soft-label-gap-summary/runs:d` runs, the
#   isotonic gap in {glue:text}`soft-label-gap-summary/iso_positive:d`. These runs hold only
#   {glue:text}`soft-label-gap-summary/independent:d` different oracles, since the two protocols share theirs.
# - A temperature fitted to another population, to other labels and by another objective is expected to lose. What each of
#   the three contributes is not in these numbers; [](three-parts.ipynb) measures it.
#
# ## Exercises
#
# The folded cell computes the answer to the first.

# %% tags=["hide-cell"]
answers, survives = [], {}
for dataset in ORDER:
    models = [model for model in scale if (dataset, model) in gaps]
    pairs = [(gaps[dataset, a], gaps[dataset, b]) for a, b in pairwise(models)]
    apart = sum(bool(a.max() < b.min() or b.max() < a.min()) for a, b in pairs)
    ranges = ", ".join(f"{model_title(model)} {gaps[dataset, model].min():.4f} to {gaps[dataset, model].max():.4f}" for model in models)
    answers.append(f"{DATASETS[dataset]}: {ranges}; {apart} of {len(pairs)} neighbours in size are apart")
    if dataset != "chaosnli-m":  # the two of the sentence
        survives[DATASETS[dataset]] = all(a.max() < b.min() for a, b in pairs)
glue(scale_answer=". ".join(answers), scale_survives=", ".join(f"{name}: {'yes' if good else 'no'}" for name, good in survives.items()), n_language=len(language), n_vision=len(vision))

# %% [markdown]
# 1. The paper says that the gap grows with the size of the model on CIFAR-10H and on ChaosNLI-S. Does that survive if a bar is replaced by its dots?
#
#    :::{dropdown} Answer
#    The smallest and the largest gap over the seeds, models in order of size. {glue:text}`scale_answer:s`. Where the seeds of neighbours overlap, three seeds do not settle an order. Does every run of the larger model lie above every run of the next smaller? {glue:text}`scale_survives:s`.
#    :::
#
# 2. In the table of all runs, which columns differ between overlapping and disjoint validation, and why not all?
#
#    :::{dropdown} Answer
#    Those that depend on the validation set: $T_\mathrm{hard}$, the Brier score with it, both gaps, the validation n and how many of its examples are judged. The scores at $T = 1$, the
#    oracle and the accuracy do not: they use the soft-labelled examples only. So the protocol changes one side of the comparison, and the whole change of the gap is a change of $T_\mathrm{hard}$.
#    :::

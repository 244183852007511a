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
# # How many annotations?
#
# The oracle of the [soft-label gap](../soft-label-gap.md) is fitted to dozens of votes on each item, which hardly anybody has. How many votes does a
# temperature need: many on few items, or few on many? And what is lost when several people are asked and only their majority is kept?
#
# :::{admonition} Before you start
# - **You will** prove that one random vote per item gives an unbiased objective and that a majority of three or more does not; see how
#   much of the gap each closes; compare designs that cost the same number of votes; and fit a temperature to raw votes, with an interval.
# - **You need** temperature scaling, the NLL, the Brier score, and the protocol of [](../soft-label-gap.md).
# - **Time** about 15 minutes to read, less than half a minute to run.
# :::
#
# ## What is asked, and how it is answered
#
# The **primary analyses**:
#
# 1. On all items of the first half: the temperature fitted by NLL to the distribution of $m$ drawn votes, and to their majority, for every $m$.
# 2. The soft Brier score of each on the second half, the share of the gap that it closes, and what the majority of the most votes costs
#    beside one vote.
# 3. With a fixed number of votes: the share closed by few votes on many items and by many votes on few.
#
# Everything else is exploratory and is called so.

# %% tags=["hide-input"]
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from calib import fit_temperature
from calib.curves import TEMPERATURES, bootstrap_weights, lowest, score_curves, values_at, weighted_means
from calib.data import DATASETS, SETS
from calib.data.titles import model_title
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS
from calib.resampling import interval
from calib.softlabels.annotation import draw_votes, fit_temperature_to_votes, simulate_annotation, vote_variance
from calib.softlabels.study import load_study

plt.style.use("calib.paper")
RUN = "how-many-annotations"

# %% tags=["parameters"]
runs = [
    ["cifar10h", "resnet110", [0]],
    ["chaosnli-s", "bert-base-uncased", [0, 1]],
    ["chaosnli-s", "roberta-base", [0, 1, 2]],
    ["chaosnli-m", "roberta-base", [0, 1, 2]],
]  # data set, model and its training seeds
votes_per_item = [1, 2, 3, 5, 10, 20, 50, 100]  # drawn with replacement
sizes = [50, 100, 200, 400]  # items of the first half, beside all of them
budgets = [400, 800, 2000]  # votes in all
draws = 200  # of items and votes, for every design
seed = 113

# %% [markdown]
# ## One vote is enough: a proof in three lines
#
# Let $q$ be the distribution of the votes on an item with logits $z$ and probabilities $p_T$, and $y$ one vote drawn from $q$ and written as a vector
# with a single 1. For the NLL and the Brier score,
#
# $$
# \begin{aligned}
# L(T; q) &= a(T) - q \cdot b(T) + c &&\text{linear in } q \text{, up to a constant without } T\\
# \mathbb{E}\,L(T; y) &= L(T; q) + c' &&\text{for one vote } y \text{, since } \mathbb{E}[y] = q\\
# \mathbb{E}\,L(T; y^{(m)}) &= L(T; q^{(m)}) + c'' &&\text{for the majority } y^{(m)} \text{ of } m \text{ votes}
# \end{aligned}
# $$
#
# where $q^{(m)} = \mathbb{E}[y^{(m)}]$ holds the probability of each class to be the majority. For the NLL, $a(T) = \log \sum_k e^{z_k / T}$ and $b(T) = z / T$. For the Brier score, $a(T) = \lVert p_T \rVert^2$ and $b(T) = 2 p_T$; its
# constant is $\lVert q \rVert^2$, that of the NLL is 0. No constant moves the minimum. The second line holds for the mean of any number of votes. In the third, $q^{(1)} = q$, and $q^{(2)} = q$ too when ties are broken at random: of two votes that differ, each wins
# half the time. From $m = 3$ on, where people disagree and one class leads, $q^{(m)}$ has more weight at that class than $q$, and tends to all of it. The objective is another one, and its minimum is at a
# lower temperature where that class is the one with large logits.
#
# The objective is unbiased; its minimum nearly is. The fit is nearly linear in $1/T$, so the mean of $T$ lies above by about $T$ times the squared relative spread of $1/T$.
#
# So the NLL sees the labels through one number only, the mean logit of the labels. A fit to other labels on the same items costs a sum
# and no new softmax, which is how the {glue:text}`how-many-annotations/fits:,d` fits of this page take seconds (`calib.curves`).
#
# ## The experiment
#
# A draw puts the items of the first half in random order and gives each of them votes at random, one after the other. A design takes the first $N$ items and the first $m$ votes on
# each. All designs see the same draws, {glue:text}`how-many-annotations/draws:d` of them. Every temperature is judged on the second half by the Brier score against
# all of its votes.

# %%
def designs_for(n):
    """Votes per item, and items: the grid, and what each budget buys."""
    grid = [(m, size) for size in [*sizes, n] for m in votes_per_item]
    bought = [(m, budget // m) for budget in budgets for m in votes_per_item]
    return list(dict.fromkeys(grid + [d for d in bought if 40 <= d[1] <= n]))


studies = {}
for dataset, model, training_seeds in runs:
    for training_seed in training_seeds:
        study = load_study(dataset, model, training_seed)
        validation, first, second = study.validation, study.first, study.second
        designs, q = designs_for(len(first)), first.distributions
        fits = simulate_annotation(first.logits, q, designs, draws, seed)
        studies[dataset, model, training_seed] = {
            "first": first,
            "second": second,
            "clusters": study.judged_clusters,
            "n": len(first),
            "T_hard": fit_temperature(validation.logits, validation.labels).temperature,
            "T_oracle": fit_temperature(first.logits, q, objective="brier").temperature,
            "T_soft_nll": fit_temperature(first.logits, q).temperature,
            "T": {
                "distribution": dict(zip(designs, fits[0])),
                "majority": dict(zip(designs, fits[1])),
            },
        }

# %% tags=["hide-input"]
few, many = votes_per_item[0], votes_per_item[-1]
EXTREMES = (("distribution", few), ("majority", many))  # compared with each other
for study in studies.values():
    curves = score_curves(study["second"].logits, study["second"].distributions, "brier")
    curve = curves.mean(axis=0)
    study["brier_hard"], study["brier_oracle"] = values_at(curve, np.array([study["T_hard"], study["T_oracle"]]))
    study["gap"] = study["brier_hard"] - study["brier_oracle"]
    study["T_best"] = lowest(curve)[0]
    study["brier"] = {kind: {d: values_at(curve, T) for d, T in fits.items()} for kind, fits in study["T"].items()}
    study["share"] = {
        kind: {d: (study["brier_hard"] - scores) / study["gap"] for d, scores in fits.items()} for kind, fits in study["brier"].items()
    }
    resampled = weighted_means(bootstrap_weights(len(curves), study["clusters"]), curves)  # other evaluation items
    replicate = np.arange(len(resampled))
    ends = {name: values_at(resampled, np.full(len(resampled), study[f"T_{name}"])) for name in ("hard", "oracle")}
    one, most = (values_at(resampled, study["T"][kind][m, study["n"]][replicate % draws]) for kind, m in EXTREMES)
    scores = [study["brier"][kind][m, study["n"]].mean() for kind, m in EXTREMES]
    study["cost"] = scores[1] - scores[0], *interval(most - one)
    study["share_one"], study["share_most"] = (interval((ends["hard"] - x) / (ends["hard"] - ends["oracle"])) for x in (one, most))

# %% tags=["hide-input", "remove-output"]
for (dataset, model, training_seed), study in studies.items():
    numbers = {}
    for kind in ("distribution", "majority"):
        for m in votes_per_item:
            for name, values in (("T", study["T"]), ("brier", study["brier"]), ("share", study["share"])):
                found = values[kind][m, study["n"]]
                numbers |= {f"{name}_{kind}_{m}": found.mean(), f"{name}_{kind}_{m}_sd": found.std()}
    for name, (low, high) in ((f"share_distribution_{few}", study["share_one"]), (f"share_majority_{many}", study["share_most"])):
        numbers |= {f"{name}_low": low, f"{name}_high": high}
    numbers |= dict(zip(("majority_cost", "majority_cost_low", "majority_cost_high"), study["cost"]))
    record(f"budget/{dataset}/{model}/{training_seed}", n=study["n"], T_soft_nll=study["T_soft_nll"], **numbers)

# %% tags=["hide-input"]
present = list(dict.fromkeys(dataset for dataset, *_ in runs))
titles = {key: f"{DATASETS[key[0]]}, {model_title(key[1])}, seed {key[2]}" for key in studies}


rows = []
for key, s in studies.items():
    one, most = (s["T"][kind][m, s["n"]] for kind, m in EXTREMES)
    rows.append([titles[key], *(f"{s[name]:.2f}" for name in ("T_hard", "T_oracle", "T_soft_nll")),
                 f"{one.mean():.2f} ({one.std():.2f})", f"{most.mean():.2f} ({most.std():.2f})"])
table("lrrrrr", ["temperature", "$T_\\mathrm{hard}$", "$T_\\mathrm{oracle}$", "all votes", "one vote", f"majority of {many}"], rows)

# %% tags=["hide-input", "remove-output"]
members = {name: [s for (dataset, *_), s in studies.items() if dataset == name] for name in present}
language = [s for name in present if name != "cifar10h" for s in members[name]]
vision = members["cifar10h"][0]


def ends_of(values, name):
    return {f"{name}_low": min(values), f"{name}_high": max(values)}


def mean_of(s, what, kind, m, size=None):
    """Mean over the draws of one set of logits, with all items of the first half unless a number is given."""
    return s[what][kind][m, size or s["n"]].mean()


def average(dataset, *design):
    """Mean over the models and seeds of a data set."""
    return np.mean([mean_of(s, *design) for s in members[dataset]])


error = [abs(mean_of(s, "T", "distribution", few) - s["T_soft_nll"]) / (s["T"]["distribution"][few, s["n"]].std() / np.sqrt(draws)) for s in studies.values()]
falls = [all(mean_of(s, "T", "majority", b) < mean_of(s, "T", "majority", a) for a, b in pairwise(votes_per_item[1:])) for s in studies.values()]
worse = [all(mean_of(s, "share", "majority", b) < mean_of(s, "share", "majority", a) for a, b in pairwise(votes_per_item[1:])) for s in language]
record(
    RUN, draws=draws, few=few, many=many, sets=len(studies), sets_language=len(language), fits=2 * draws * sum(len(s["T"]["majority"]) for s in studies.values()),
    error_max=max(error), falls=sum(falls), language_worse=sum(worse), cost_above_zero=sum(s["cost"][1] > 0 for s in language),
    **ends_of([mean_of(s, "share", "distribution", few) for s in language], "language_one"),
    **ends_of([mean_of(s, "share", "majority", many) for s in language], "language_majority"),
    **ends_of([mean_of(s, "share", "distribution", many) for s in language], "language_all"),
    **ends_of([mean_of(s, "T", "majority", many) / s["T_soft_nll"] for s in studies.values()], "ratio_majority"),
    **ends_of([s["cost"][0] for s in language], "language_cost"),
    vision_one=mean_of(vision, "share", "distribution", few), vision_majority=mean_of(vision, "share", "majority", many), vision_majority_3=mean_of(vision, "share", "majority", 3),
    vision_all=mean_of(vision, "share", "distribution", many), vision_T_all=vision["T_soft_nll"], vision_T_best=vision["T_best"], vision_T_majority_3=mean_of(vision, "T", "majority", 3),
    vision_cost=vision["cost"][0], vision_cost_low=vision["cost"][1], vision_cost_high=vision["cost"][2], vision_gap=vision["gap"],
)  # fmt: skip

# %% [markdown]
# Validation is overlapping, as in the paper. From "all votes" on, the fits are by NLL to all items of the first half; in brackets the standard deviation over {glue:text}`how-many-annotations/draws:d` draws of votes.
# All models of a data set see the same votes, so its rows are not independent of each other.
#
# **Primary analysis 1.** The mean temperature from one vote per item differs from that of all votes by at most
# {glue:text}`how-many-annotations/error_max:.1f` Monte Carlo standard errors, over {glue:text}`how-many-annotations/sets:d` sets of logits: so many draws do not show the small bias of $T$ itself. The temperature of the majority falls with every
# further step of $m$ above 2 in {glue:text}`how-many-annotations/falls:d` of {glue:text}`how-many-annotations/sets:d` sets, to
# {glue:text}`how-many-annotations/ratio_majority_low:.2f` to {glue:text}`how-many-annotations/ratio_majority_high:.2f` of the temperature of the votes.

# %% tags=["hide-input"]
COLOUR = {"distribution": COLOURS["oracle"], "majority": COLOURS["fitted"]}


def panels(quantity, ylabel):
    """A panel per data set: the mean over draws of each set, and the middle 95% of the draws of its first set."""
    fig, axes = plt.subplots(1, len(present), figsize=(7.2, 3.3), sharey=quantity == "relative", layout="constrained")
    for ax, dataset in zip(axes, present):
        for kind, colour in COLOUR.items():
            for i, s in enumerate(members[dataset]):
                values = [s[quantity][kind][m, s["n"]] for m in votes_per_item]
                ax.plot(votes_per_item, [v.mean() for v in values], color=colour, linewidth=1.4, marker="o", markersize=2.5)
                if i == 0:
                    ax.fill_between(votes_per_item, *np.quantile(values, [0.025, 0.975], axis=1), color=colour, alpha=0.18, linewidth=0)
        ax.set_xscale("log")
        ax.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
        ax.minorticks_off()
        ax.set(title=DATASETS[dataset], xlabel="votes per item")
    axes[0].set_ylabel(ylabel)
    return fig, axes


for s in studies.values():
    s["relative"] = {kind: {design: T / s["T_soft_nll"] for design, T in fits.items()} for kind, fits in s["T"].items()}
fig, axes = panels("relative", "T, relative to that of all votes")
axes[0].annotate("distribution", (100, 1), xytext=(0, 6), textcoords="offset points", ha="right", color=COLOUR["distribution"])
axes[0].annotate("majority", (100, mean_of(vision, "relative", "majority", many)), xytext=(0, -16), textcoords="offset points", ha="right", color=COLOUR["majority"])
words = [f"{DATASETS[d]}: majority {average(d, 'relative', 'majority', 3):.2f} at 3 votes and {average(d, 'relative', 'majority', many):.2f} at {many}" for d in present]
counts = ", ".join(f"{members[d][0]['n']:,}" for d in present)
show(
    fig,
    name="fig-votes-temperature",
    caption=f"Temperature fitted by NLL to the distribution (green) and to the majority (blue) of m votes on each item of the first half, relative to the fit to all votes. A line is "
    f"one model and training seed, its mean over {draws} draws; bands hold the middle 95% of the draws, for the first line of a panel. n = {counts} items.",
    alt="Three panels. The distribution stays at 1 from 1 vote on, with a spread that narrows. The majority falls away from 3 votes on. " + "; ".join(words) + ".",
)

# %% tags=["hide-input"]
fig, axes = panels("share", "share of the gap closed")
for ax in axes:
    ax.axhline(1, color=COLOURS["neutral"], linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    ax.yaxis.set_major_formatter("{x:.0%}")
axes[-1].annotate("oracle", (100, 1), xytext=(0, 4), textcoords="offset points", ha="right", color=COLOURS["neutral"])
words = [f"{DATASETS[d]}: one vote {average(d, 'share', 'distribution', few):.0%}, majority of {many} {average(d, 'share', 'majority', many):.0%}" for d in present]
show(
    fig,
    name="fig-votes-share",
    caption="Share of the soft-label gap that is closed on the second half by the temperatures of {numref}`fig-votes-temperature`: 0 is the temperature from the hard labels of the validation set, "
    "100% the oracle. Green: distribution of the votes; blue: their majority. Each panel has its own scale.",
    alt="Three panels of the share of the gap closed over the votes per item, mean over models. " + "; ".join(words) + ".",
)

# %% tags=["hide-input"]
rows = []
for key, s in studies.items():
    shares = [f"{mean_of(s, 'share', kind, m):.0%} [{low:.0%}, {high:.0%}]"
              for (kind, m), (low, high) in zip(EXTREMES, (s["share_one"], s["share_most"]))]
    rows.append([titles[key], *shares, "{:.1f} [{:.1f}, {:.1f}]".format(*(1000 * x for x in s["cost"]))])
table("lrrr", ["share of the gap closed", "one vote", f"majority of {many}", "difference of Brier × 1,000"], rows)

# %% [markdown]
# In square brackets: the 2.5 and 97.5 percentiles over draws of votes and, at the same time, resampled evaluation items, whole images (SNLI) and premises (MNLI) together. The items of the fit are held fixed. The
# last column is the Brier score of the majority less that of one vote: above zero, the majority is worse.
#
# **Primary analysis 2.** On ChaosNLI one vote per item closes {glue:text}`how-many-annotations/language_one_low:.1%` to
# {glue:text}`how-many-annotations/language_one_high:.1%` of the gap, and {glue:text}`how-many-annotations/many:d` votes {glue:text}`how-many-annotations/language_all_low:.1%` to
# {glue:text}`how-many-annotations/language_all_high:.1%` ({glue:text}`how-many-annotations/sets_language:d` sets of logits). The majority of {glue:text}`how-many-annotations/many:d` closes
# {glue:text}`how-many-annotations/language_majority_low:.1%` to {glue:text}`how-many-annotations/language_majority_high:.1%`: its Brier score is higher by {glue:text}`how-many-annotations/language_cost_low:.4f` to
# {glue:text}`how-many-annotations/language_cost_high:.4f`. The 95% interval of that cost lies above zero in {glue:text}`how-many-annotations/cost_above_zero:d` of all
# {glue:text}`how-many-annotations/sets:d` sets. Asking more people and keeping only the majority makes the share smaller with every step of $m$ above 2 in
# {glue:text}`how-many-annotations/language_worse:d` of the {glue:text}`how-many-annotations/sets_language:d` language sets.
#
# Two things temper this. A majority still closes most of the language gap, since it comes from the right items: most of what the general validation set lacks on these data is not the votes but the population.
# And on CIFAR-10H, where the whole gap is {glue:text}`how-many-annotations/vision_gap:.4f`, the order is not so clear: one vote closes {glue:text}`how-many-annotations/vision_one:.1%`, the majority of three
# {glue:text}`how-many-annotations/vision_majority_3:.1%`, the majority of {glue:text}`how-many-annotations/many:d` {glue:text}`how-many-annotations/vision_majority:.1%`; the interval of the cost of the last
# beside the first, {glue:text}`how-many-annotations/vision_cost_low:.4f` to {glue:text}`how-many-annotations/vision_cost_high:.4f`, contains zero. All votes of the first half ask for
# $T =$ {glue:text}`how-many-annotations/vision_T_all:.2f`, while the Brier score of the second half is lowest at {glue:text}`how-many-annotations/vision_T_best:.2f`; a majority of three, at
# {glue:text}`how-many-annotations/vision_T_majority_3:.2f`, errs in that direction.
#
# ## Votes that chose the items
#
# So far the votes that fit the temperature are drawn from the hundred that judge it. In practice they are other votes. The files hold such: the original five on every pair. But
# ChaosNLI was made of pairs on which exactly three of these five agree {cite:p}`nie2020`. So these votes are also the ones that *chose* the pairs, and they split on every one of them. Exploratory:

# %%
own = {}
for key, s in studies.items():
    if key[0] == "cifar10h":
        continue
    first, second = s["first"], s["second"]
    votes = SETS[key[0]].original_votes()
    five = np.array([votes[uid] for uid in first.ids.tolist()])
    shares = five / five.sum(axis=1, keepdims=True)
    one, _ = simulate_annotation(first.logits, shares, [(1, len(first))], draws, seed)
    by_majority = fit_temperature(first.logits, five.argmax(axis=1))
    own[key] = {
        "one": one[0],
        "five": np.array([fit_temperature(first.logits, shares).temperature]),
        "majority": np.array([by_majority.temperature]),
    }

# %% tags=["hide-input", "remove-output"]
def closed_by(s, fits):
    """Share of the gap that each fit closes, with intervals over draws and evaluation items."""
    second, found = s["second"], {}
    curves = score_curves(second.logits, second.distributions, "brier")
    resampled = weighted_means(bootstrap_weights(len(curves), s["clusters"]), curves)
    ends = [values_at(resampled, np.full(len(resampled), s[f"T_{name}"])) for name in ("hard", "oracle")]
    for name, T in fits.items():
        closed = (s["brier_hard"] - values_at(curves.mean(axis=0), T)) / s["gap"]
        again = values_at(resampled, np.resize(T, len(resampled)))
        found[f"closed_{name}"] = closed.mean()
        found |= dict(zip((f"closed_{name}_low", f"closed_{name}_high"), interval((ends[0] - again) / (ends[0] - ends[1]))))
    return found


for key, fits in own.items():
    first, votes = studies[key]["first"], SETS[key[0]].original_votes()
    five = np.array([votes[uid] for uid in first.ids.tolist()])
    shares = five / five.sum(axis=1, keepdims=True)
    top = np.arange(len(first)), first.logits.argmax(axis=1)
    found = {"T_one": fits["one"].mean(), "T_five": fits["five"][0], "T_majority": fits["majority"][0]} | closed_by(studies[key], fits)
    found |= {"agree_original": shares[top].mean(), "agree_new": first.distributions[top].mean()}
    found |= {"majority_original": shares.max(axis=1).mean(), "majority_new": first.distributions.max(axis=1).mean()}
    own[key] = record("own-votes/" + "/".join(map(str, key)), **found)

# %% tags=["hide-input"]
rows = []
for key, found in own.items():
    cells = [f"{found[f'closed_{name}']:.0%} [{found[f'closed_{name}_low']:.0%}, {found[f'closed_{name}_high']:.0%}]" for name in ("one", "five", "majority")]
    rows.append([titles[key], *cells, f"{found['T_one']:.2f}", f"{studies[key]['T_oracle']:.2f}"])
for dataset in ("chaosnli-s", "chaosnli-m"):
    of_set = [found for key, found in own.items() if key[0] == dataset]
    for name in ("closed_one", "closed_five", "closed_majority"):
        record("own-votes", **ends_of([found[name] for found in of_set], f"{dataset}_{name}"))
    record("own-votes", **{f"{dataset}_{name}": np.mean([found[name] for found in of_set]) for name in ("agree_original", "agree_new", "majority_original", "majority_new")})
record("own-votes", sets=len(own), s_sets=sum(key[0] == "chaosnli-s" for key in own), s_majority_better=sum(found["closed_majority"] > found["closed_one"] for key, found in own.items() if key[0] == "chaosnli-s"))
table("lrrrrr", ["share of the gap closed", "one original vote", "all five", "their majority", "T of one", "$T_\\mathrm{oracle}$"], rows)

# %% [markdown]
# In square brackets: 2.5 and 97.5 percentiles over draws and resampled evaluation items, the items of the fit held fixed.
#
# On ChaosNLI-S the order **turns round**: one original vote closes {glue:text}`own-votes/chaosnli-s_closed_one_low:.0%` to {glue:text}`own-votes/chaosnli-s_closed_one_high:.0%` of the gap, the majority of the five
# {glue:text}`own-votes/chaosnli-s_closed_majority_low:.0%` to {glue:text}`own-votes/chaosnli-s_closed_majority_high:.0%`, more than one vote in {glue:text}`own-votes/s_majority_better:d` of {glue:text}`own-votes/s_sets:d` sets. One vote gives too high a
# temperature. The pairs were chosen because these votes split, so the votes say more disagreement than new ones do: the winning class has {glue:text}`own-votes/chaosnli-s_majority_original:.0%` of the original votes on average and
# {glue:text}`own-votes/chaosnli-s_majority_new:.0%` of the hundred new ones. It is regression to the mean. On ChaosNLI-M one original vote closes {glue:text}`own-votes/chaosnli-m_closed_one_low:.0%` to {glue:text}`own-votes/chaosnli-m_closed_one_high:.0%`:
# there the new votes split nearly as much as the original ones, {glue:text}`own-votes/chaosnli-m_majority_new:.0%` against {glue:text}`own-votes/chaosnli-m_majority_original:.0%`. Why the crowd disagrees more about those pairs is not known.
#
# **Do not fit to the votes that chose the examples.** One vote is enough where it is drawn, after the choice, from the people whose votes count.
#
# ## A fixed number of votes: more items, or more votes on each?

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, len(present), figsize=(7.2, 3.4), layout="constrained")
words, bought = [], {}
for ax, dataset in zip(axes, present):
    for budget, shade in zip(budgets, (0.35, 0.65, 1.0)):
        pairs = [(m, budget // m) for m in votes_per_item if 40 <= budget // m <= members[dataset][0]["n"]]
        for kind, style in (("distribution", "-"), ("majority", ":")):
            found = [average(dataset, "share", kind, *pair) for pair in pairs]
            bought |= {(dataset, budget, kind, pair): value for pair, value in zip(pairs, found)}
            ax.plot([m for m, _ in pairs], found, style, color=COLOUR[kind], alpha=shade, marker="o", markersize=3, linewidth=1.5)
        first_pair, last_pair = pairs[0], pairs[-1]
        words.append(f"{DATASETS[dataset]}, {budget:,} votes: {bought[dataset, budget, 'distribution', first_pair]:.0%} with {first_pair[0]} on {first_pair[1]:,} items, "
                     f"{bought[dataset, budget, 'distribution', last_pair]:.0%} with {last_pair[0]} on {last_pair[1]}")
    ax.axhline(1, color=COLOURS["neutral"], linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, -1), high)
    ax.set_xscale("log")
    ax.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(title=DATASETS[dataset], xlabel="votes per item")
axes[0].set_ylabel("share of the gap closed, mean")
show(
    fig,
    name="fig-votes-budget",
    caption=f"Share of the gap closed on the second half, mean over {draws} draws and over the models and seeds of a data set, when {', '.join(f'{b:,}' for b in budgets[:-1])} (pale) or {budgets[-1]:,} votes (full "
    "colour) are spread over fewer and fewer items, not below 40. Solid green: distribution of the votes; dotted blue: their majority. Values below −100% are cut.",
    alt="Three panels. " + "; ".join(words) + ".",
)

# %% tags=["hide-input", "remove-output"]
def worst(dataset, m, size):
    """Lowest, over the sets of a data set, of the 5th percentile over draws."""
    return min(np.quantile(s["share"]["distribution"][m, size], 0.05) for s in members[dataset])


for budget in budgets:
    for dataset in present:
        pairs = [(m, budget // m) for m in votes_per_item if 40 <= budget // m <= members[dataset][0]["n"]]
        for name, pair in (("fewest", pairs[0]), ("most", pairs[-1])):
            key = f"{dataset}_{budget}_{name}"
            record(RUN, **{key: average(dataset, "share", "distribution", *pair), f"{key}_worst": worst(dataset, *pair), f"{key}_votes": pair[0], f"{key}_items": pair[1]})
lost = [np.mean([s["share"]["distribution"][a] - s["share"]["distribution"][b] for s in members[d]], axis=0) for d, a, b in (
    (d, (m, budget // m), (k, budget // k)) for d in present for budget in budgets for m, k in pairwise(votes_per_item)
    if budget // m <= members[d][0]["n"] and budget // k >= 40)]  # fmt: skip
record(RUN, steps=len(lost), steps_down=sum(step.mean() > 0 for step in lost), steps_clear=sum(step.mean() > 2 * step.std() / np.sqrt(draws) for step in lost))

# %% [markdown]
# **Primary analysis 3.** Of the {glue:text}`how-many-annotations/steps:d` steps in the figure from a design to the next one with more votes on fewer items,
# {glue:text}`how-many-annotations/steps_down:d` lower the mean share of the distribution, {glue:text}`how-many-annotations/steps_clear:d` of them by more than two Monte Carlo standard errors; the
# smallest steps depend on the draws. A budget of 400 votes closes
#
# - on ChaosNLI-S {glue:text}`how-many-annotations/chaosnli-s_400_fewest:.1%` with {glue:text}`how-many-annotations/chaosnli-s_400_fewest_votes:d` vote on {glue:text}`how-many-annotations/chaosnli-s_400_fewest_items:d` items, and
#   {glue:text}`how-many-annotations/chaosnli-s_400_most:.1%` with {glue:text}`how-many-annotations/chaosnli-s_400_most_votes:d` on {glue:text}`how-many-annotations/chaosnli-s_400_most_items:d`; in an unlucky draw (5th percentile, lowest
#   over the models) {glue:text}`how-many-annotations/chaosnli-s_400_fewest_worst:.1%` and {glue:text}`how-many-annotations/chaosnli-s_400_most_worst:.1%`;
# - on ChaosNLI-M {glue:text}`how-many-annotations/chaosnli-m_400_fewest:.1%` and {glue:text}`how-many-annotations/chaosnli-m_400_most:.1%`; unlucky
#   {glue:text}`how-many-annotations/chaosnli-m_400_fewest_worst:.1%` and {glue:text}`how-many-annotations/chaosnli-m_400_most_worst:.1%`;
# - on CIFAR-10H {glue:text}`how-many-annotations/cifar10h_400_fewest:.1%` and {glue:text}`how-many-annotations/cifar10h_400_most:.1%`; unlucky
#   {glue:text}`how-many-annotations/cifar10h_400_fewest_worst:.1%` and {glue:text}`how-many-annotations/cifar10h_400_most_worst:.1%`. A negative share is worse than the temperature from the validation set.
#
# ### Few items (exploratory)

# %% tags=["hide-input"]
rows = []
for size in [*sizes, None]:
    rows.append([size or "all", *(f"{average(d, 'share', 'distribution', few, size):.0%} ({worst(d, few, size or members[d][0]['n']):.0%})" for d in present)])
at_end = [np.mean([s["T"]["distribution"][few, sizes[0]] <= TEMPERATURES[0] * 1.001 for s in members[d]]) for d in present]
record(RUN, smallest=sizes[0], largest=sizes[-1], vision_at_end=at_end[present.index("cifar10h")], **{f"{d}_{size}_one": average(d, "share", "distribution", few, size) for d in present for size in sizes},
       **{f"{d}_{size}_one_worst": worst(d, few, size) for d in present for size in sizes})
table("l" + "r" * len(present), ["items, one vote on each", *(DATASETS[d] for d in present)], rows)

# %% [markdown]
# Share of the gap closed by one vote on each of a few items: mean over draws, models and seeds, and in brackets the 5th percentile over draws, lowest over models and seeds. On CIFAR-10H, where few votes disagree with the
# classifier, {glue:text}`how-many-annotations/vision_at_end:.1%` of the draws of {glue:text}`how-many-annotations/smallest:d` votes hold none that does; then $T$ goes to the lower end of the grid, and
# such a fit is to be refused, as `fit_temperature_to_votes` does.
#
# ### What an item costs (exploratory)
#
# With $N$ items and $m$ votes on each, the variance of the fitted $1/T$ is proportional to $(\sigma_\text{between}^2 + \sigma_\text{within}^2 / m) / N$: how much items differ, and how much the votes on an item do. With $mN$ fixed this grows
# with $m$, whatever the two variances are, so one vote on each of as many items as possible is best. More votes on an item can pay only where the item itself costs something: if it costs as much as $c$
# votes before its first vote, the best $m$ is near $\sqrt{c}\,\sigma_\text{within} / \sigma_\text{between}$ {cite:p}`cochran1977`.

# %% tags=["hide-input"]
costs, rows = [1, 5, 25], []
for dataset in present:
    pairs = [vote_variance(s["first"].logits, s["first"].votes, s["T_soft_nll"]) for s in members[dataset]]
    ratio = np.mean([within / between for between, within in pairs])
    record(RUN, **{f"{dataset}_within_between": ratio}, **{f"{dataset}_best_votes_{c}": max(1.0, np.sqrt(c * ratio)) for c in costs})
    rows.append([DATASETS[dataset], f"{ratio:.1f}", *(f"{max(1.0, np.sqrt(c * ratio)):.1f}" for c in costs)])
table("lr" + "r" * len(costs), ["data", "within / between", *(f"best m, c = {c}" for c in costs)], rows)

# %% [markdown]
# The two variances at the temperature of all votes (`calib.softlabels.annotation.vote_variance`), their ratio averaged over the models and seeds of a data set.
#
# ## One vote per item of real data
#
# What a practitioner has is a long table: which item, which label, perhaps which annotator. Here one vote is drawn for each item of the first half of ChaosNLI-S, and RoBERTa-base is calibrated to it. Items that
# share an image are one cluster.

# %%
first = load_study("chaosnli-s", "roberta-base", seed=0).first
_, drawn = next(draw_votes(first.distributions, [1], draws=1, seed=seed))
table = {"item": first.ids, "label": np.array(first.class_names)[drawn[0]]}
images = SETS["chaosnli-s"].clusters(first.ids)
fit = fit_temperature_to_votes(
    first.logits, table, first.ids, first.class_names, clusters=images
)
full = fit_temperature_to_votes(first.logits, first.votes, clusters=images)
print(
    f"{fit.n_votes:>6,} votes on {fit.n_items} items: T = {fit.temperature:.2f},",
    f"95% interval {fit.low:.2f} to {fit.high:.2f}",
)
print(
    f"{full.n_votes:>6,} votes on {full.n_items} items: T = {full.temperature:.2f},",
    f"95% interval {full.low:.2f} to {full.high:.2f}",
)

# %% tags=["hide-input", "remove-output"]
record(RUN, example_items=fit.n_items, example_T=fit.temperature, example_low=fit.low, example_high=fit.high, example_clusters=len(set(images)),
       example_votes_all=full.n_votes, example_T_all=full.temperature, example_low_all=full.low, example_high_all=full.high,
       example_width=(1 / fit.low - 1 / fit.high) / (1 / full.low - 1 / full.high))

# %% [markdown]
# One vote on each of {glue:text}`how-many-annotations/example_items:d` items ({glue:text}`how-many-annotations/example_clusters:d` images) gives $T =$ {glue:text}`how-many-annotations/example_T:.2f`, interval
# {glue:text}`how-many-annotations/example_low:.2f` to {glue:text}`how-many-annotations/example_high:.2f`. All {glue:text}`how-many-annotations/example_votes_all:,d` votes on the same items give
# {glue:text}`how-many-annotations/example_T_all:.2f`, {glue:text}`how-many-annotations/example_low_all:.2f` to {glue:text}`how-many-annotations/example_high_all:.2f`: in $1/T$ the first interval is
# {glue:text}`how-many-annotations/example_width:.1f` times as wide. More votes do not make more items. The intervals are for the temperature of the population of such items, and every item weighs the same in them.
#
# ## A recipe
#
# 1. Take items from the population on which the classifier will be used. On the language data that alone, with a majority for a label, closed {glue:text}`how-many-annotations/language_majority_low:.0%` to
#    {glue:text}`how-many-annotations/language_majority_high:.0%` of the gap.
# 2. Ask **one person about each item**, on as many items as the budget allows, someone drawn at random from the crowd, after the items were chosen: votes that chose them say too much disagreement. A second vote pays only where items are dear.
# 3. **Keep every vote.** Where there are several on an item, and their number did not depend on what they said, fit to their distribution rather than to their majority, and do not drop items without agreement.
# 4. Fit with `calib.softlabels.annotation.fit_temperature_to_votes`, with clusters where items share something, and report the interval. If it is too wide, or the fit is refused, get more items.
#
# ## Take-aways
#
# - One random vote per item gives an unbiased NLL and Brier objective. The majority of one or two does too; of three or more it does not. Measured: the mean $T$ of one-vote fits is that of all votes within
#   {glue:text}`how-many-annotations/error_max:.1f` Monte Carlo standard errors in all {glue:text}`how-many-annotations/sets:d` sets; the majority of {glue:text}`how-many-annotations/many:d` has
#   {glue:text}`how-many-annotations/ratio_majority_low:.2f` to {glue:text}`how-many-annotations/ratio_majority_high:.2f` of it.
# - On ChaosNLI one vote per item, drawn from those that judge, closes {glue:text}`how-many-annotations/language_one_low:.1%` to {glue:text}`how-many-annotations/language_one_high:.1%` of the gap, the majority of {glue:text}`how-many-annotations/many:d`
#   {glue:text}`how-many-annotations/language_majority_low:.1%` to {glue:text}`how-many-annotations/language_majority_high:.1%`. Asking more people and keeping the majority makes it worse.
# - One of the original votes, which chose the pairs, closes only {glue:text}`own-votes/chaosnli-s_closed_one_low:.0%` to {glue:text}`own-votes/chaosnli-s_closed_one_high:.0%` on ChaosNLI-S: there their majority does better.
# - On CIFAR-10H the cost of the majority, {glue:text}`how-many-annotations/vision_cost:.4f`, cannot be told from zero (95% interval {glue:text}`how-many-annotations/vision_cost_low:.4f` to {glue:text}`how-many-annotations/vision_cost_high:.4f`).
# - With a fixed number of votes, more items are better than more votes on each: always for the variance of the fit, and for the mean share closed in {glue:text}`how-many-annotations/steps_down:d` of {glue:text}`how-many-annotations/steps:d` comparisons of neighbouring designs ({glue:text}`how-many-annotations/steps_clear:d` beyond two Monte Carlo standard errors).
# - Not covered: annotators who differ in skill or answer in bad faith, votes that are not a random sample of the crowd, other calibrators than one temperature. The drawn votes come from the items' own votes, with replacement.
#
# ## Exercises
#
# The folded cell computes the answer to the second.

# %% tags=["hide-cell"]
key, some = next((key, s) for key, s in studies.items() if key[0] != "cifar10h")
z, q = some["first"].logits, some["first"].distributions


def ties_to_first(q):
    """Law of the majority of two votes where a tie goes to the class that comes first."""
    after = q.sum(axis=1, keepdims=True) - np.cumsum(q, axis=1)
    return q * (q + 2 * after)


glue(tie_set=titles[key], tie_random=fit_temperature(z, q).temperature, tie_first=fit_temperature(z, ties_to_first(q)).temperature,
     tie_last=fit_temperature(z[:, ::-1], ties_to_first(q[:, ::-1])).temperature)

# %% [markdown]
# 1. Show that the majority of two votes, ties at random, has the law of one vote, for any number of classes.
#
#    :::{dropdown} Answer
#    Class $k$ wins with two equal votes, probability $q_k^2$, or in half of the cases with one vote: $\tfrac12 \cdot 2 q_k (1 - q_k)$. The sum is $q_k$.
#    :::
#
# 2. Where ties go to the *first* class in place of a random one, what is the law of the majority of two? Which temperature do you expect?
#
#    :::{dropdown} Answer
#    For classes in the order of the tie, $q_k^2 + 2 q_k \sum_{j > k} q_j$. The first class gains, so the fit sharpens where the model favours that class and flattens where it does not. On {glue:text}`tie_set:s` such labels give
#    $T =$ {glue:text}`tie_first:.3f` with the classes in their order and {glue:text}`tie_last:.3f` in the reverse order, where ties at random give {glue:text}`tie_random:.3f`. The bias depends on the names of the classes: break ties at random.
#    :::
#
# 3. Set `votes_per_item` to the odd numbers up to 9. Which steps of the majority's fall are large, and why is the one from 1 to 3 as large as the one from 2 to 3 was?
#
#    :::{dropdown} Answer
#    The first: a third vote can outvote the first, and each further pair of votes turns fewer majorities. One and two votes have the same law, so the steps from them to three are the same.
#    :::
#
# 4. Why does one vote per item not suffice to *evaluate* the soft Brier score of two models on different items, while it suffices to compare two temperatures on the same ones?
#
#    :::{dropdown} Answer
#    The expected score of one vote is the soft score plus $1 - \lVert q \rVert^2$, the disagreement of the item. On the same items it cancels from a difference; between different items it does not.
#    :::

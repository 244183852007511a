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
# # Can you trust the numbers?
#
# Are the numbers of this book right? Every one of them comes out of the package `calib`. This page says how the package was checked: by a second
# computation, by simulation with known truth, by inputs at the edge, by breaking it on purpose, and against the programs that
# one would use in its place.
#
# :::{admonition} Before you start
# - **You will** see the largest difference between two computations of each section, how often intervals contain the truth, what
#   other programs answer to awkward input, and how fast each is.
# - **You need** the sections before; this page is for those who want to build on the package.
# - **Time** about ten minutes to read, seconds to run.
# :::

# %% tags=["hide-input"]
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from calib import audit
from calib.data import load_soft_labels, load_sst2
from calib.pages import record as results
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.pages.verify import TOLERANCES
from calib.plots import COLOURS, DASHED, label, log_axis
from calib.softlabels.study import key_of

plt.style.use("calib.paper")
RUN = "can-you-trust-the-numbers"

# %% tags=["parameters"]
results_folder = "../_build/results"  # where the runs put their numbers
measured_folder = "../book/measured"  # what `make measure` wrote
predictions_folder = "ladder/predictions"  # logits of our own training
own_seeds = [42]  # which of these to compute again; the tests do all
runs = [
    "six-examples",
    "sst2-isolated-fit",
    "binning-sensitivity",
    "soft-label-gap",
    "three-parts",
    "three-scales",
]  # the runs to compute again

# %% tags=["hide-input"]
measured = {name: json.loads(Path(f"{measured_folder}/{name}.json").read_text(encoding="utf-8")) for name in ("edges", "mutants", "simulations", "speed", "variation")}
if not {"six-examples", "sst2-isolated-fit", "binning-sensitivity"} <= set(runs):
    raise ValueError(f"runs: expected six-examples, sst2-isolated-fit and binning-sensitivity among them, got {runs}")
recorded = results.load_runs(results_folder, runs)

# %% [markdown]
# ## A second computation
#
# `calib.audit` computes the numbers of the sections again, by other means and without any other module of the package: differences of
# logits in place of a softmax, golden section in place of Newton, sorting in place of binning, loops over votes, an own
# isotonic regression. Here it is compared with what the sections recorded in this build. Scores are computed at the recorded
# temperatures, so that an error of a temperature is not counted twice.

# %% tags=["hide-input"]
LOGITS = [[3, 1, 0], [2.5, 1, 0], [3, 0.5, 0], [1.5, 2, 0], [0.5, 0, 1.5], [2, 2.2, 0]]
CLUSTERS = {"cifar10h": str, "chaosnli-s": audit.image_of, "chaosnli-m": audit.premise_of}
lesson = recorded["six-examples"]
sst2 = load_sst2()
plain = sst2.ids.tolist(), sst2.logits.astype(float), sst2.labels.tolist()
audited = {
    "six examples": [(lesson, audit.audit_six_examples(LOGITS, [0, 0, 1, 1, 2, 0], at=lesson))],
    "SST-2, isolated fit": [(recorded["sst2-isolated-fit"], audit.audit_sst2(*plain, at=recorded["sst2-isolated-fit"]))],
    "binning sensitivity": [(recorded["binning-sensitivity"], audit.audit_binning(*plain))],
}
pool, again = ProcessPoolExecutor(mp_context=get_context("spawn")), []
for name, values in recorded.items():
    if not name.startswith("gap/"):
        continue
    dataset, model, seed, protocol = key_of(name)
    own = Path(f"{predictions_folder}/{dataset}/{model}-{seed}.npz").exists()
    if own and seed not in own_seeds:
        continue
    validation, soft, n_missing = load_soft_labels(dataset, model, seed, predictions_folder if own else None)
    arrays = {
        "validation": (validation.ids.tolist(), validation.logits.astype(float), validation.labels.tolist()),
        "predicted": (soft.ids.tolist(), soft.logits.astype(float)),
        "voted": (soft.ids.tolist(), soft.votes.tolist()),
        "labels": soft.labels.tolist() if dataset == "cifar10h" else None,
        "clean": protocol == "clean",
        "at": values,
    }
    values = {**values, "n_missing": values["n_missing"] - n_missing}  # the loader has left them out already
    again.append((f"gap, {dataset}", values, pool.submit(audit.audit_gap, **arrays)))
    if "T_population" in values:
        again.append((f"parts of the gap, {dataset}", values, pool.submit(audit.audit_parts, **arrays, cluster=CLUSTERS[dataset])))
for name, values, found in again:
    audited.setdefault(name, []).append((values, found.result()))
pool.shutdown()

# %% tags=["hide-input"]
rows, worst_temperature, worst_score = [], 0.0, 0.0
for chapter, pairs in audited.items():
    found = [audit.largest(values, again) for values, again in pairs]
    temperature, score = (max(column) for column in zip(*found))
    rows.append([chapter, len(pairs), sum(len(again) for _, again in pairs), f"{temperature:.0e}" if temperature else "–", f"{score:.0e}"])
    worst_temperature, worst_score = max(worst_temperature, temperature), max(worst_score, score)
record(RUN, numbers_audited=sum(row[2] for row in rows), worst_temperature=worst_temperature, worst_score=worst_score)
table("lrrrr", ["Section", "Runs", "Numbers", "Largest relative difference of a temperature", "Largest difference of any other number"], rows)

# %% [markdown]
# {glue:text}`can-you-trust-the-numbers/numbers_audited:d` numbers were computed twice. The temperatures agree to
# {glue:text}`can-you-trust-the-numbers/worst_temperature:.0e`, which is as near as golden section comes, and all other numbers to
# {glue:text}`can-you-trust-the-numbers/worst_score:.0e`. Of the networks trained for this book one seed of each scale is computed again here, and all of them by the tests. Not audited: the section on what temperature does, whose numbers come from
# simulated data and small trained networks.
#
# ## Known truth
#
# A second computation does not say whether an interval means what it says. For that, data are drawn from a known law, many times, and one
# counts. All entries below come from `make measure`.

# %% tags=["hide-input"]
truth = measured["simulations"]
rows = []
for entry in truth["temperature"]:
    law = "no temperature fits" if entry["misspecified"] else f"T = {entry['truth']:g}"
    error, cover = entry["mean_error_in_se"], entry["coverage"]
    rows.append([entry["classes"], f"{entry['n']:,}", law, f"{error['value']:+.2f} ± {error['mc_se']:.2f}",
                 f"{entry['within_1_se']['value']:.1%}", f"{cover['value']:.1%} ± {cover['mc_se']:.1%}"])
covers = [entry["coverage"]["value"] for entry in truth["temperature"]]
record(RUN, draws=truth["temperature"][0]["draws"], coverage_low=min(covers), coverage_high=max(covers))
table("rrlrrr", ["Classes", "n", "Labels drawn with", "Mean error, in standard errors", "Within one", "95% interval contains the truth"], rows)

# %% [markdown]
# The fitted temperature and its interval (`calib.intervals.temperature_interval`), in {glue:text}`can-you-trust-the-numbers/draws:,d` draws
# each, ± Monte Carlo standard error. Coverage runs from {glue:text}`can-you-trust-the-numbers/coverage_low:.1%` to
# {glue:text}`can-you-trust-the-numbers/coverage_high:.1%`; it is lowest where few predictions are wrong.

# %% tags=["hide-input"]
rows = []
for entry in truth["differences"]:
    rows.append([entry["score"].replace("nll", "NLL").replace("brier", "Brier"), entry["classes"], f"{entry['n']:,}",
                 f"{entry['coverage']['value']:.1%}", f"{entry['coverage_bootstrap']['value']:.1%}"])
smallest = min(entry["n"] for entry in truth["differences"])
differences = [entry for entry in truth["differences"] if entry["n"] > smallest]
outside = [entry for entry in truth["differences"] if not 0.93 <= entry["coverage"]["value"] <= 0.97]
record(RUN, larger_n=min(e["n"] for e in differences), fitted_on=truth["differences"][0]["n_fit"], difference_low=min(e["coverage"]["value"] for e in differences),
       difference_high=max(e["coverage"]["value"] for e in differences), differences_outside=len(outside), differences_all=len(truth["differences"]),
       largest_n_outside=max((e["n"] for e in outside), default=0))
exact = [entry["exact"]["value"] for entry in truth["wilson"]]
apart = max(abs(entry["difference_in_se"]) for entry in truth["wilson"])
record(RUN, wilson_low=min(exact), wilson_high=max(exact), wilson_mean=np.mean(exact), wilson_apart=apart, wilson_cells=len(exact))
table("lrrrr", ["Difference of", "Classes", "n judged", "t interval", "Percentile bootstrap"], rows)

# %% [markdown]
# How often a 95% interval of the difference fitted less T = 1, on rows that the fit has not seen, contains the truth; the fit has
# {glue:text}`can-you-trust-the-numbers/fitted_on:d` rows. From n = {glue:text}`can-you-trust-the-numbers/larger_n:d` on, coverage is {glue:text}`can-you-trust-the-numbers/difference_low:.1%` to
# {glue:text}`can-you-trust-the-numbers/difference_high:.1%`. It lies outside 93% to 97% in {glue:text}`can-you-trust-the-numbers/differences_outside:d` of
# {glue:text}`can-you-trust-the-numbers/differences_all:d` cases, none of them above n = {glue:text}`can-you-trust-the-numbers/largest_n_outside:d`:
# losses are skewed, and few rows hold few of the large ones.
#
# The Wilson interval covers as theory says: exact coverage over {glue:text}`can-you-trust-the-numbers/wilson_cells:d` pairs of n and share is
# {glue:text}`can-you-trust-the-numbers/wilson_low:.1%` to {glue:text}`can-you-trust-the-numbers/wilson_high:.1%`, on average
# {glue:text}`can-you-trust-the-numbers/wilson_mean:.1%`, and simulation lies at most {glue:text}`can-you-trust-the-numbers/wilson_apart:.1f` standard errors
# from it.
#
# ### The ECE at small n

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
words = []
for ax, calibrated in zip(axes, (True, False)):
    entries = [entry for entry in truth["ece_bias"] if entry["calibrated"] == calibrated]
    n = [entry["n"] for entry in entries]
    for key, name, colour, offset in (("plain", "ECE", COLOURS["neutral"], 5), ("debiased", "debiased", COLOURS["other"], -6)):
        bias = [entry[f"bias_{key}"]["value"] for entry in entries]
        ax.plot(n, bias, "o-", color=colour)
        label(ax, name, (n[1], bias[1]), (4, offset), colour)
        words.append(f"{'calibrated' if calibrated else 'overconfident'}, {name}: {bias[0]:+.3f} at n = {n[0]} and {bias[-1]:+.3f} at n = {n[-1]:,}")
    ax.axhline(0, color=COLOURS["neutral"], linewidth=1, linestyle=DASHED)
    log_axis(ax.xaxis, n)
    ax.set(xlabel="rows (log scale)", title=f"{'Calibrated' if calibrated else 'Overconfident'}, true ECE {entries[0]['truth']:.3f}")
axes[0].set_ylabel("bias of the estimate")
show(
    fig,
    name="fig-ece-bias",
    caption=f"Bias of the ECE with {truth['ece_bias'][0]['bins']} equal-width bins and of its cross-fitted estimate, over the number of rows. Simulated "
    f"forecasters; {min(e['draws'] for e in truth['ece_bias']):,} to {max(e['draws'] for e in truth['ece_bias']):,} draws each.",
    alt="Bias over the number of rows. " + "; ".join(words) + ".",
)

# %% [markdown]
# The ECE adds up absolute values, so noise only adds: it is too high, and most of all for a calibrated forecaster. The cross-fitted estimate
# (`calib.intervals.debiased_ece`) takes the sign of a bin's gap from one part of its rows and the size from the rest. Its mean is zero for a
# calibrated forecaster and never above the truth, so that the two enclose the truth on average. It is not simply better: for a
# miscalibrated forecaster it is too low.

# %% tags=["hide-input"]
names = {f"ece_{m}": f"ECE, {m} bins" for m in (5, 10, 15, 20)} | {"ece_20_minus_5": "20 less 5 bins"}
found = {(e["quantity"], e["calibrated"]): e for e in truth["ece_bootstrap"]}
quantities = list(dict.fromkeys(entry["quantity"] for entry in truth["ece_bootstrap"]))
rows = [[names.get(q, q), *(f"{found[q, c]['truth']:.4f}" for c in (True,)), f"{found[q, True]['coverage']['value']:.1%}",
         f"{found[q, False]['truth']:.4f}", f"{found[q, False]['coverage']['value']:.1%}"] for q in quantities]
record(RUN, bootstrap_n=truth["ece_bootstrap"][0]["n"], bootstrap_draws=truth["ece_bootstrap"][0]["draws"])
table("lrrrr", ["95% percentile interval of", "Calibrated: truth", "Contains it", "Overconfident: truth", "Contains it"], rows)

# %% [markdown]
# The percentile bootstrap of an ECE does **not** contain the truth as often as it says (n = {glue:text}`can-you-trust-the-numbers/bootstrap_n:d`,
# {glue:text}`can-you-trust-the-numbers/bootstrap_draws:,d` draws). Resampling adds the noise once more, and a difference of nested ECEs cannot be
# negative. The intervals of [](binning-sensitivity.ipynb) are to be read as the spread of the estimate.
#
# ## Other processors
#
# A number may depend on the machine: another processor has other instructions, another number of threads adds in another order. `make verify`
# compares a fresh build with the published record, each number to the tolerance of its kind. Here is what the kinds are, and how far their
# numbers moved when all sections ran again as if on other processors. The derivation of each tolerance is in `calib.pages.verify`.

# %% tags=["hide-input"]
KINDS = {"exact": "counts, words, decisions", "double": "computed from given logits", "single": "from logits drawn in float32"}
variation = measured["variation"]
moved = {kind: [sizes[kind] for sizes in variation["largest"].values()] for kind in KINDS}
record(RUN, n_compared=sum(variation["numbers"].values()), n_settings=len(moved["exact"]), largest_double=max(moved["double"]),
       tolerance_double=TOLERANCES["double"], moved_exact="none" if not max(moved["exact"]) else "some");
rows = [[meaning, variation["numbers"][kind], f"{TOLERANCES[kind]:g}", *(f"{size:.0e}" if size else "0" for size in moved[kind])] for kind, meaning in KINDS.items()]
table("lrr" + "r" * len(variation["largest"]), ["Kind", "Numbers", "Tolerance", *variation["largest"]], rows)

# %% [markdown]
# Differences are relative where the number is above 1. Of the {glue:text}`can-you-trust-the-numbers/n_compared:,d` numbers that all
# sections had when this was measured, {glue:text}`can-you-trust-the-numbers/moved_exact:s` of the exact ones moved, and those computed from given logits by at most
# {glue:text}`can-you-trust-the-numbers/largest_double:.0e`. Training amplifies the last bits: networks trained on a page in single precision gave other counts
# on another processor. So they are trained in double precision, and what depends on the start of a training is shown over several. "AVX-512 off" to "baseline" are the libraries' own switches to
# the instructions of older processors; "MKL of another maker" makes that library take the code path that it keeps for processors of the maker it comes from. ARM processors could not be tried.
#
# ## Inputs at the edge

# %% tags=["hide-input"]
edges = measured["edges"]


def short(answer):
    return answer.split(":")[0] if "Error" in answer.split(":")[0] else answer


peers = ["calib", "scikit-learn", "netcal", "probmetrics"]
rows = [[e["input"], e["right"], *(short(e["answers"].get(p, "–")) for p in peers)] for e in edges["fit"]]
table("lrrrrr", ["Fit of a temperature to", "Right", *peers], rows)

# %% tags=["hide-input"]
peers = ["calib", "torchmetrics", "netcal", "probmetrics"]
rows = [[e["input"], e["right"], *(short(e["answers"].get(p, "–")) for p in peers)] for e in edges["ece"]]
table("lrrrrr", ["ECE, ten bins, of", "Right", *peers], rows)

# %% [markdown]
# The answers of the installed versions to the same input, run by `make bench`. An error is shown by its type; those of `calib` are `ValueError`s that
# name the argument, what was expected and what came. A number where an error is right is a wrong number.
#
# ## Broken on purpose

# %% tags=["hide-input"]
mutants = measured["mutants"]
rows = [[f"`{name}`", m["mutants"], m["killed"], m["mutants"] - m["killed"], f"{m['killed'] / m['mutants']:.1%}"] for name, m in mutants["modules"].items()]
total, killed = (sum(m[key] for m in mutants["modules"].values()) for key in ("mutants", "killed"))
record(RUN, mutants=total, killed=killed, mutation_score=killed / total)
table("lrrrr", ["Module", "Mutants", "Noticed", "Not noticed", "Share"], [*rows, ["all", total, killed, total - killed, f"{killed / total:.1%}"]])

# %% [markdown]
# Mutation testing changes the code of the numeric modules in small ways, one at a time, and runs the tests. Of
# {glue:text}`can-you-trust-the-numbers/mutants:,d` such mutants the tests notice {glue:text}`can-you-trust-the-numbers/mutation_score:.1%`. What they do not notice
# was read through. Nearly all of it changes no result: whether an array is copied, a type that is float64 anyway, the finer steps of a search that ends at the
# same optimum, the number of rows in a block or of threads, a bin found by search or by multiplication, a step limit that no test reaches. Some of it changes
# the wording of an error beyond the part that the tests read. The list is in `book/measured/mutants.json`. It was made before the moments of the softmax had
# one kernel, so that the lines of some modules have changed since; `make measure` makes it anew.
#
# ## Speed

# %% tags=["hide-input"]
speed = measured["speed"]
SIZES = {"W1": "872 × 2", "W2": "10,000 × 10", "W3": "50,000 × 1,000", "W4": "1,000,000 × 10"}


def milliseconds(value):
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


rows = []
for name, size in SIZES.items():
    programs = speed["fit"][name]["programs"]
    peers = [p for p in ("scikit-learn", "netcal", "probmetrics") if p in programs]
    ratios = {p: f"{programs[p]['ratio']:,.1f}" for p in peers}
    rows.append([size, milliseconds(programs["calib"]["median"]), f"{programs['calib']['error']:.0e}",
                 *(ratios.get(p, "–") for p in ("scikit-learn", "netcal", "probmetrics")), f"{programs['scikit-learn']['error']:.0e}"])
record(RUN, ratio_low=min(speed["fit"][n]["programs"]["scikit-learn"]["ratio"] for n in SIZES),
       ratio_high=max(speed["fit"][n]["programs"]["scikit-learn"]["ratio"] for n in SIZES),
       targets=len(speed["targets"]), targets_met=sum(t["met"] for t in speed["targets"]),
       growth=max(v for n in ("W3", "W4") for k, v in speed["memory"][n].items() if k.startswith("calib")),
       passes=speed["fit"]["W3"]["passes"]["calib"])
table("lrrrrrr", ["Logits", "calib, ms", "Error of T", "scikit-learn takes × as long", "netcal ×", "probmetrics ×", "Error of scikit-learn's T"], rows)

# %% tags=["hide-input"]
missed = [t for t in speed["targets"] if not t["met"]]
rows = [[t["what"], f"{t['value']:.3g}", f"{t['limit']:.3g}", "yes" if t["met"] else "**no**"] for t in speed["targets"]]
record(RUN, missed="; ".join(t["what"] for t in missed) or "none")
table("lrrl", ["Measured", "Value", "Limit set before", "Met"], rows)

# %% tags=["hide-input"]
sizes = [float(k) for k in speed["linearity"]]
times = [v["median"] for v in speed["linearity"].values()]
fig, ax = plt.subplots(figsize=(7.2, 3.6))
ax.loglog(sizes, times, "o-", color=COLOURS["other"])
ax.loglog(sizes, [times[-1] * s / sizes[-1] for s in sizes], color=COLOURS["neutral"], linestyle=DASHED, linewidth=1)
label(ax, "measured", (sizes[2], times[2]), (-8, 6), COLOURS["other"])
label(ax, "proportional to the number of logits", (sizes[2], times[-1] * sizes[2] / sizes[-1]), (8, -6))
ax.set(xlabel="number of logits (log scale)", ylabel="time of a fit, ms (log scale)")
show(
    fig,
    name="fig-linearity",
    caption=f"Time of a fit over the number of float32 logits, ten classes, up to {sizes[-1]:.0e} in a memory-mapped file. {speed['machine']['cores']} cores.",
    alt=f"On logarithmic axes the time of a fit rises from {times[0]:.2f} ms at {sizes[0]:.0e} logits to {times[-1]:,.0f} ms at {sizes[-1]:.0e}.",
)

# %% tags=["remove-cell"]
machine = speed["machine"]
record(RUN, cpu=machine["cpu"], cores=machine["cores"], versions=", ".join(f"{k} {v}" for k, v in machine["versions"].items() if k != "calib"));

# %% [markdown]
# Medians of alternating runs in one process, ratios of medians, float32 logits (`make bench`; {glue:text}`can-you-trust-the-numbers/cpu:s`,
# {glue:text}`can-you-trust-the-numbers/cores:d` cores; {glue:text}`can-you-trust-the-numbers/versions:s`). Timings vary from machine to machine and by load; ratios vary less.
# Of {glue:text}`can-you-trust-the-numbers/targets:d` limits set before, {glue:text}`can-you-trust-the-numbers/targets_met:d` were met in this run. Not met:
# {glue:text}`can-you-trust-the-numbers/missed:s`. A fit adds at most {glue:text}`can-you-trust-the-numbers/growth:.0f` MiB of memory on the two large cases, for every floating type and both orders.
#
# ## What is not covered
#
# - Intervals assume independent rows. Near-duplicates and several items of one premise make them too short.
# - The interval of a score difference takes the temperature as given; the uncertainty of the fit is not in it.
# - The public logits are taken as they are. Whether a model run gives them again was not tested where its hub cannot be reached.
# - The simulations use a few simple laws. Real logits are none of them.
# - Timings are those of one machine with {glue:text}`can-you-trust-the-numbers/cores:d` cores.
#
# ## Take-aways
#
# - {glue:text}`can-you-trust-the-numbers/numbers_audited:d` recorded numbers have a second computation that shares no module with the first; other numbers than temperatures agree
#   to {glue:text}`can-you-trust-the-numbers/worst_score:.0e`.
# - The 95% interval of T contains the truth in {glue:text}`can-you-trust-the-numbers/coverage_low:.1%` to {glue:text}`can-you-trust-the-numbers/coverage_high:.1%` of simulated
#   samples; the bootstrap of an ECE does not, and is not offered as one.
# - Tests notice {glue:text}`can-you-trust-the-numbers/mutation_score:.1%` of {glue:text}`can-you-trust-the-numbers/mutants:,d` deliberate faults.
# - A fit is {glue:text}`can-you-trust-the-numbers/ratio_low:.1f` to {glue:text}`can-you-trust-the-numbers/ratio_high:.1f` times as fast as scikit-learn's on the four workloads.
#
# ## Exercises

# %% tags=["remove-cell"]
draws = truth["temperature"][0]["draws"]
glue(coverage_se=np.sqrt(0.95 * 0.05 / draws), coverage_cells=len(truth["temperature"]), coverage_by_chance=0.0455 * len(truth["temperature"]))

# %% [markdown]
# 1. The temperatures of two computations agree less closely than the scores. Golden section compares values of the NLL. Why can it not find the minimum to the last digit?
#
#    :::{dropdown} Answer
#    Near a minimum a function changes with the square of the distance. A float64 value has a relative error of about $10^{-16}$, so two temperatures whose relative distance is below about
#    $10^{-8}$ have NLLs that cannot be told apart. Newton's method and bisection look for the zero of the derivative, which changes in proportion to the distance.
#    :::
#
# 2. A 95% interval contains the truth in 94% of the simulated samples. When is that a fault?
#
#    :::{dropdown} Answer
#    The share itself has a standard error. For {glue:text}`can-you-trust-the-numbers/draws:,d` draws it is {glue:text}`coverage_se:.2%`, and 94% is one point off: more than two of these standard errors are a reason to look, less are none.
#    One case in twenty-two lies that far off by chance, of the {glue:text}`coverage_cells:d` in the table of temperatures about {glue:text}`coverage_by_chance:.1f`. It is a fault if more do, or if those that do have something in common, such as a small n.
#    :::
#
# 3. In `assign_bins` of `calib/reliability.py`, let a confidence on an edge fall into the bin below. Which kind of test notices, and why would random confidences not do?
#
#    :::{dropdown} Answer
#    Tests whose confidences are multiples of the bin width notice, and those with the few probabilities that votes or trees give. A random float64 is on an edge with a probability of about $10^{-16}$, so no number of random draws would ever
#    show the change. A test must aim at the places where a definition decides.
#    :::

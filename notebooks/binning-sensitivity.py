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
# # The same predictions under four binnings
#
# How far does an expected calibration error (ECE) move when only the number of its bins changes, and why? This section keeps every
# prediction of a sentiment classifier as it is, computes the ECE with four numbers of bins, and asks how much of the result is
# an effect of the sample size.
#
# :::{admonition} Before you start
# **You will**
#
# - compute one ECE with 5, 10, 15 and 20 equal-width bins, with a paired bootstrap for the values and their difference;
# - prove that refining bins never lowers the ECE, and see which pairs of bin counts are refinements;
# - find the rows behind a change by taking a bin apart;
# - measure how large an ECE a perfectly calibrated classifier would show at this sample size.
#
# **You need** the definition of the ECE, means and percentiles; NumPy for the code.
#
# **Time** about 20 minutes to read, seconds to run.
# :::

# %% tags=["hide-input"]
import hashlib
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from calib import reliability_table, softmax, top_label
from calib.claims.printed import printed
from calib.data import load_sst2
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, label, reliability_diagram
from calib.reliability import EqualMass, assign_bins, bin_edges, wilson_interval
from calib.resampling import bootstrap_ece, bootstrap_indices, bootstrap_mean, interval

plt.style.use("calib.paper")

# %% [markdown]
# ## Data and protocol
#
# The logits are those of a DistilBERT {cite:p}`sanh2019` fine-tuned for sentiment, at temperature $T = 1$, on the validation set of SST-2
# {cite:p}`socher2013`. The set is put in the order of a hash of key and sentence number and cut into three pools. Only the first, the
# *exploration pool*, is analysed here. Nothing is fitted, and all four bin counts are reported.

# %% tags=["parameters"]
split_key = "calib-sst2-v1"  # orders the sentences by the SHA-256 of "<key>:<idx>"
sizes = [256, 256, 360]  # exploration, calibration and audit pool
replicates = 2000  # bootstrap samples, simulated label sets and random splits, each
seed = 113  # of the bootstrap
keep = ""  # where to keep drawn rows and replicates, as .npz; nowhere by default

# %% tags=["hide-input"]
bin_counts = [5, 10, 15, 20]  # numbers of equal-width bins on [0, 1]; the text is written for these four

# %%
everything = load_sst2()
exploration, *_ = everything.split(*sizes, key=split_key)
confidence, correct = top_label(softmax(exploration.logits), exploration.labels)
tables = {m: reliability_table(confidence, correct, m) for m in bin_counts}
n = len(exploration)

# %% tags=["hide-input"]
run = "binning-sensitivity"
coarse, fine = min(bin_counts), max(bin_counts)
tolerance = 1e-12  # smaller differences are rounding
record(run, n=n, n_all=len(everything), replicates=replicates, seed=seed, coarse=coarse, fine=fine, tolerance=tolerance)

inner = np.unique(np.concatenate([bin_edges(confidence, m)[1:-1] for m in bin_counts]))
record(run, on_edge=int(np.isin(confidence, inner).sum()), edge_distance=np.abs(confidence[:, None] - inner).min())
record(run, correct=int(correct.sum()), accuracy=correct.mean(), mean_confidence=confidence.mean())
record(run, ece_1=abs(confidence.mean() - correct.mean()))
for m, t in tables.items():
    record(run, **{f"ece_{m}": t.ece, f"nonempty_{m}": int(t.filled.sum())})
    record(run, **{f"rightmost_{m}": int(t.counts[-1]), f"rightmost_accuracy_{m}": t.accuracy[-1]});

# %% [markdown]
# The pool holds {glue:text}`binning-sensitivity/n:d` of {glue:text}`binning-sensitivity/n_all:d` sentences. The classifier is right on
# {glue:text}`binning-sensitivity/correct:d` of them, an accuracy of {glue:text}`binning-sensitivity/accuracy:.4f`, with a mean confidence of
# {glue:text}`binning-sensitivity/mean_confidence:.4f`.
#
# Two limits of what follows come with the data. The makers of the checkpoint report a result on this validation set, so it is no unseen
# test set. And SST-2 gives no guarantee that its sentences are independent; every interval on this page treats them as if they were,
# and may be too short where near-duplicates occur.
#
# ## One sample, four numbers
#
# Let $p_i$ be the confidence in the predicted class and $a_i$ the outcome, 1 if the prediction is right and 0 if not. With
# $d_i = p_i - a_i$ and bins $B_1, \dots, B_M$, the counts cancel from the weighted mean of distances {cite:p}`guo2017`, and
#
# $$\mathrm{ECE}_M = \sum_{b=1}^{M} \frac{n_b}{n}\,\bigl|\bar p_b - \bar a_b\bigr| = \frac1n \sum_{b=1}^{M} \Bigl|\sum_{i \in B_b} d_i\Bigr|.$$
#
# A bin contains its left edge and not its right one; the last contains both. The reference code of {cite:t}`guo2017` closes its bins on
# the right instead. Here {glue:text}`binning-sensitivity/on_edge:d` rows lie on an inner edge of any of the four binnings (the
# nearest is {glue:text}`binning-sensitivity/edge_distance:.1e` away); where that count is 0, the two conventions
# agree. An empty bin has no accuracy and adds nothing. It must not be shown as an accuracy of 0, and the other bins must not be re-weighted for it.

# %% tags=["hide-input"]
lines = []
for m, t in tables.items():
    possible = m - m // 2  # two classes: the confidence is at least 1/2
    lines.append([m, f"{t.ece:.6f}", t.filled.sum(), possible, f"{t.edges[-2]:.3f}", t.counts[-1], f"{t.accuracy[-1]:.3f}"])
table("rrrrrrr", ["Bins", "ECE", "Non-empty", "Could be filled", "Last bin from", "Its count", "Its accuracy"], lines)

# %% [markdown]
# With two classes the larger probability is at least one half, so bins that end at or below it are empty by construction, not for lack of data. The
# column "could be filled" counts the others.
#
# {numref}`fig-bins-reliability` shows every bin. The counts are the first thing to read: the last bin holds
# {glue:text}`binning-sensitivity/rightmost_5:d` of {glue:text}`binning-sensitivity/n:d` rows with {glue:text}`binning-sensitivity/coarse:d` bins and
# {glue:text}`binning-sensitivity/rightmost_20:d` with {glue:text}`binning-sensitivity/fine:d`, and the other bins share the rest.

# %% tags=["hide-input"]
fig, axes = plt.subplots(2, 2, figsize=(7.2, 7), sharex=True, sharey=True)
for ax, (m, binned) in zip(axes.flat, tables.items()):
    reliability_diagram(ax, binned, COLOURS["t1"], start=0.5)
    ax.set(yticks=[0, 0.25, 0.5, 0.75, 1], title=f"{m} bins, ECE {binned.ece:.4f}")
    ax.label_outer()
parts = ["; ".join(f"{c} at {x:.2f}, accuracy {y:.2f}" for c, x, y in zip(t.counts[t.filled], t.confidence[t.filled], t.accuracy[t.filled])) for t in tables.values()]
show(
    fig,
    name="fig-bins-reliability",
    caption=f"Reliability diagrams of the same {n} sentences (SST-2 exploration pool, T = 1) under {', '.join(map(str, bin_counts[:-1]))} and {bin_counts[-1]} equal-width bins. Numbers on top are counts; bars are 95% Wilson intervals, each for its own bin; grey lines are bin edges. Confidences start at one half.",
    alt="Four reliability diagrams; count, mean confidence and accuracy of each non-empty bin. " + " ".join(f"{m} bins: {part}." for m, part in zip(bin_counts, parts)),
)

# %% tags=["hide-input"]
counts = np.concatenate([t.counts[t.filled] for t in tables.values()])
outside = [((t.confidence < t.low) | (t.confidence > t.high)).sum() for t in tables.values()]
record(run, n_bins_filled=len(counts), n_bins_small=int((counts < 10).sum()), n_bins_single=int((counts == 1).sum()), n_bins_outside=int(sum(outside)));

# %% [markdown]
# Of the {glue:text}`binning-sensitivity/n_bins_filled:d` non-empty bins in the four pictures, {glue:text}`binning-sensitivity/n_bins_small:d` hold fewer than ten rows and
# {glue:text}`binning-sensitivity/n_bins_single:d` hold a single row, whose accuracy can only be 0 or 1. In
# {glue:text}`binning-sensitivity/n_bins_outside:d` the mean confidence lies outside the 95% Wilson interval {cite:p}`wilson1927` of the accuracy. Each interval speaks for one
# bin; together they are no simultaneous band, and none of them is an interval for the mean confidence. The table below lists them all.
#
# The accuracy of the last bin goes from {glue:text}`binning-sensitivity/rightmost_accuracy_5:.3f` with
# {glue:text}`binning-sensitivity/coarse:d` bins to {glue:text}`binning-sensitivity/rightmost_accuracy_20:.3f` with
# {glue:text}`binning-sensitivity/fine:d`. No prediction has changed. The last bin starts higher and keeps
# {glue:text}`binning-sensitivity/rightmost_20:d` of {glue:text}`binning-sensitivity/rightmost_5:d` rows: it has other members, and its
# accuracies at different bin counts are not comparable.

# %% tags=["hide-cell"]
def name_of(binned, b):
    """The bin as an interval."""
    return f"[{binned.edges[b]:.3g}, {binned.edges[b + 1]:.3g}{']' if b == len(binned.counts) - 1 else ')'}"


lines = []
for m, t in tables.items():
    for b in np.flatnonzero(t.filled):
        means = [f"{t.confidence[b]:.4f}", f"{t.accuracy[b]:.4f}"]
        lines.append([m, name_of(t, b), t.counts[b], *means, f"{t.low[b]:.3f} to {t.high[b]:.3f}", f"{t.contributions[b]:.5f}"])
table("rlrrrrr", ["Bins", "Bin", "Count", "Mean confidence", "Accuracy", "95% Wilson interval", "Adds to ECE"], lines)

# %% [markdown]
# ## A paired bootstrap
#
# How much of the movement between the bin counts would survive another sample? The bootstrap {cite:p}`efron1979` draws
# {glue:text}`binning-sensitivity/n:d` rows with replacement from the {glue:text}`binning-sensitivity/n:d` that there are, and does so
# {glue:text}`binning-sensitivity/replicates:,d` times. A row drawn three times counts three times. This makes no new sentences and
# cannot show what the pool lacks. The bins keep their edges. All bin counts see the *same* drawn rows, so that their difference is free of the noise they share. Intervals
# run from the 2.5th to the 97.5th percentile of the replicates, with linear interpolation.

# %%
indices = bootstrap_indices(n, replicates, seed)
ece = bootstrap_ece(
    confidence, correct, bin_counts, indices
)  # one column per bin count

if keep:
    Path(keep).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        keep + ".part.npz", indices=indices, ece=ece, bin_counts=bin_counts
    )
    Path(keep + ".part.npz").replace(keep)  # whole or not at all
fingerprint = hashlib.sha256(indices.astype("<i8").tobytes()).hexdigest()

at = {m: column for column, m in enumerate(bin_counts)}
difference = ece[:, at[fine]] - ece[:, at[coarse]]
smallest_raw = difference.min()
difference[np.abs(difference) < tolerance] = 0  # rounding

# %% tags=["hide-input"]
low, high = interval(ece)
difference_low, difference_high = interval(difference)
observed = tables[fine].ece - tables[coarse].ece
name = f"difference_{fine}_{coarse}"
record(run, **{name: observed, f"{name}_low": difference_low, f"{name}_high": difference_high})
record(run, indices_sha256=fingerprint, difference_zero=(difference == 0).mean(), difference_smallest_raw=smallest_raw)
for m, a, b in zip(bin_counts, low, high):
    record(run, **{f"ece_{m}_low": a, f"ece_{m}_high": b, f"shift_{m}": ece[:, at[m]].mean() - tables[m].ece})
record(run, common="some values lie in all four intervals" if low.max() < high.min() else "no value lies in all four intervals")

lines = [[m, f"{tables[m].ece:.6f}", f"{low[at[m]]:.6f} to {high[at[m]]:.6f}", f"{ece[:, at[m]].mean():.6f}"] for m in bin_counts]
lines.append([f"{fine} minus {coarse}", f"{observed:.6f}", f"{difference_low:.6f} to {difference_high:.6f}", f"{difference.mean():.6f}"])
table("rrrr", ["Bins", "ECE", "95% interval", "Mean of replicates"], lines)

# %% [markdown]
# A build keeps all drawn rows and all replicates in `_build/bootstrap/binning-sensitivity.npz`: `indices` (replicates by rows), `ece` (replicates by bin
# counts) and `bin_counts`. Whoever mistrusts the random generator can recompute each value from the file. A second
# computation on this page, which sums differences row by row, gives the same {glue:text}`binning-sensitivity/n_replicate_values:,d` values to within
# {glue:text}`binning-sensitivity/recomputed_difference:.0e`. The SHA-256 of the
# indices as little-endian 64-bit integers begins with
# {glue:text}`binning-sensitivity/indices_sha256:.16s`; the whole of it is in `results.json` as `indices_sha256`.

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3.6))
places, points = np.arange(len(bin_counts)), np.array([tables[m].ece for m in bin_counts])
for body in ax.violinplot(ece, places, widths=0.7, showextrema=False)["bodies"]:
    body.set(facecolor=COLOURS["t1"], alpha=0.25)
ax.errorbar(places, points, yerr=[points - low, high - points], fmt="o", color=COLOURS["t1"], capsize=4, linewidth=1.5)
for x, y in zip(places, points):
    label(ax, f"{y:.4f}", (x, y), (7, 0), COLOURS["t1"])
ax.set(xlabel="number of equal-width bins", ylabel="ECE", ylim=(0, None))
ax.set_xticks(places, bin_counts)
show(
    fig,
    name="fig-bins-replicates",
    caption=f"ECE of the {n} rows (SST-2 exploration pool, T = 1): observed value (dot and number), 95% percentile interval (bar) and density of {replicates:,} bootstrap replicates.",
    alt="Observed ECE and 95% interval. " + "; ".join(f"{m} bins: {tables[m].ece:.4f}, {low[at[m]]:.4f} to {high[at[m]]:.4f}" for m in bin_counts) + ".",
)

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3.6))
edges, zero = np.linspace(0, difference.max() * 1.0001, 31), int((difference == 0).sum())
ax.hist(difference[difference > 0], edges, color=COLOURS["t1"], alpha=0.4)
ax.bar(-edges[1], zero, edges[1], color=COLOURS["neutral"])
inside = zero > np.histogram(difference[difference > 0], edges)[0].max()  # then the label has room in the bar only
label(ax, f"exactly 0: {zero}", (-edges[1], zero), (0, -4 if inside else 4), "white" if inside else COLOURS["neutral"], rotation=90)
across = ax.get_xaxis_transform()
ax.plot([difference_low, difference_high], [0.95, 0.95], "|-", color=COLOURS["t1"], markersize=8, transform=across)
ax.plot(observed, 0.95, "o", color=COLOURS["t1"], transform=across)
label(ax, f"observed {observed:.4f}", (observed, 0.95), (0, -7), COLOURS["t1"], xycoords=across)
ax.margins(y=0.3)
ax.set(xlabel=f"ECE with {fine} bins less ECE with {coarse}", ylabel="replicates")
show(
    fig,
    name="fig-bins-difference",
    caption=f"ECE with {fine} bins less ECE with {coarse} on the same drawn rows, {replicates:,} replicates of {n} rows. On top, the observed difference and its 95% interval; the grey bar counts the replicates where the difference is 0.",
    alt=f"Histogram of the paired difference, from 0 to {difference.max():.4f}: observed at {observed:.4f}, exactly 0 on {zero} replicates, 95% interval {difference_low:.4f} to {difference_high:.4f}.",
)

# %% [markdown]
# The difference between {glue:text}`binning-sensitivity/fine:d` and {glue:text}`binning-sensitivity/coarse:d` bins is
# {glue:text}`binning-sensitivity/difference_20_5:.6f`, with a 95% interval of {glue:text}`binning-sensitivity/difference_20_5_low:.6f` to
# {glue:text}`binning-sensitivity/difference_20_5_high:.6f` ({numref}`fig-bins-difference`). Comparing the four intervals of {numref}`fig-bins-replicates` would be no
# test of it: {glue:text}`binning-sensitivity/common:s`, but they describe one and the same sample, and only the paired difference takes that into account.
#
# ## Refining bins never lowers the ECE
#
# If the bins $C$ of a finer binning split a bin $B$ completely, the triangle inequality gives
#
# $$\Bigl|\sum_{i \in B} d_i\Bigr| = \Bigl|\sum_{C \subseteq B} \sum_{i \in C} d_i\Bigr| \le \sum_{C \subseteq B} \Bigl|\sum_{i \in C} d_i\Bigr|,$$
#
# and the sum over all $B$ gives $\mathrm{ECE}_M \le \mathrm{ECE}_{M'}$. Equality holds where the sub-bins of each bin all have sums of one sign (or 0). $M'$ equal-width bins refine $M$ of
# them where $M'$ is a multiple of $M$. So the ECE cannot fall from 5 to 10 to 20 bins, nor from 5 to 15, on any data. The step from 10 to
# 15 is no refinement: $7/10$, for one, is an edge of the 10 bins and none of the 15. There, more bins can give the smaller ECE.
#
# Rounding can make an equality look like a tiny fall, so differences up to {glue:text}`binning-sensitivity/tolerance:.0e` count as 0. The
# table tests every pair of bin counts on every replicate.

# %%
pairs = list(combinations(sorted(bin_counts), 2))
steps = {(a, b): ece[:, at[b]] - ece[:, at[a]] for a, b in pairs}
nested = {(a, b): b % a == 0 for a, b in pairs}
fell = {pair: int((step < -tolerance).sum()) for pair, step in steps.items()}
rose = {pair: int((step > tolerance).sum()) for pair, step in steps.items()}

# %% tags=["hide-input"]
lines = []
for (a, b), step in steps.items():
    change = tables[b].ece - tables[a].ece
    change = 0.0 if abs(change) < tolerance else change
    record(run, **{f"fell_{b}_{a}": fell[a, b], f"rose_{b}_{a}": rose[a, b]})
    if (a, b) != (coarse, fine):  # that one is recorded with its interval
        record(run, **{f"difference_{b}_{a}": change})
    unchanged = replicates - fell[a, b] - rose[a, b]
    lines.append([a, b, "yes" if nested[a, b] else "no", f"{change:.6f}", f"{fell[a, b]:,}", f"{unchanged:,}", f"{rose[a, b]:,}", f"{max(-step.min(), 0):.0e}"])
refined = np.concatenate([step for pair, step in steps.items() if nested[pair]])
record(run, n_nested=sum(nested.values()), n_nested_checks=len(refined), n_nested_violations=int((refined < -tolerance).sum()), nested_largest_fall=max(0.0, -refined.min()))
table("rrlrrrrr", ["From", "To", "Refinement", "Observed change", "Falls on", "Unchanged on", "Rises on", "Largest fall"], lines)

# %% [markdown]
# In the {glue:text}`binning-sensitivity/n_nested:d` refinements, {glue:text}`binning-sensitivity/n_nested_checks:,d` comparisons in all, the ECE fell
# {glue:text}`binning-sensitivity/n_nested_violations:d` times; the largest apparent fall is {glue:text}`binning-sensitivity/nested_largest_fall:.0e`, which is
# rounding. From 10 to 15 bins it fell on {glue:text}`binning-sensitivity/fell_15_10:d` of
# {glue:text}`binning-sensitivity/replicates:,d` replicates and rose on {glue:text}`binning-sensitivity/rose_15_10:,d`.
#
# This changes how the interval of the difference is to be read. The difference of {glue:text}`binning-sensitivity/fine:d` and
# {glue:text}`binning-sensitivity/coarse:d` bins cannot be negative, in the sample or in any replicate. It is exactly 0 on
# {glue:text}`binning-sensitivity/difference_zero:.2%` of the replicates, and where that share exceeds 2.5% the lower end of the
# interval sits at 0 by construction. An interval that begins at 0 is then no sign that the difference may be absent, and one that begins above 0
# no test that found it. At the edge of what a quantity can be, a percentile interval does not have its nominal coverage.
#
# ## Which rows make the difference
#
# By the inequality above, the ECE grows under refinement only in a bin whose rows err in both directions, and only where the finer bins
# separate the directions. For each of the {glue:text}`binning-sensitivity/coarse:d` bins, the growth is the sum of its parts' distances less its own.

# %%
signed = {
    m: np.nan_to_num(t.confidence - t.accuracy) * t.counts / n
    for m, t in tables.items()
}  # sums of d over n
growth = np.abs(signed[fine]).reshape(coarse, -1).sum(axis=1) - np.abs(signed[coarse])
changed = np.flatnonzero(growth > tolerance)
largest = int(growth.argmax() if len(changed) else tables[coarse].counts.argmax())


def parts_of(m, b):
    """The non-empty ones of m bins inside coarse bin b."""
    inside = np.arange(m) * coarse // m == b
    return np.flatnonzero(inside & tables[m].filled)

# %% tags=["hide-input"]
chain = [m for m in bin_counts if m % coarse == 0 and fine % m == 0]
lines = []
for b, m in ((b, m) for b in changed for m in chain):
    for k in parts_of(m, b):
        t, name = tables[m], name_of(tables[m], k)
        name = f"**{name}**" if m == coarse else name
        lines.append([m, name, t.counts[k], f"{t.confidence[k] - t.accuracy[k]:+.3f}", f"{signed[m][k]:+.6f}", f"{t.contributions[k]:.6f}"])
table("rlrrrr", ["Bins", "Bin", "Count", "Mean confidence − accuracy", "Sum of differences / n", "Adds to ECE"], lines)

# %% tags=["hide-input"]
for m in chain:
    t, parts = tables[m], parts_of(m, largest)
    words = [f"{t.counts[k]} row{'s' if t.counts[k] > 1 else ''} at {t.confidence[k] - t.accuracy[k]:+.3f}" for k in parts]
    both = signed[m][parts].min() < -tolerance and signed[m][parts].max() > tolerance
    grown = np.abs(signed[m][parts]).sum() - np.abs(signed[coarse][largest])
    record(run, **{f"largest_parts_{m}": ", ".join(words).replace("-", "−"), f"largest_signs_{m}": "differ in sign" if both else "do not differ in sign"})
    record(run, **{f"largest_growth_{m}": grown if grown > tolerance else 0.0})
record(
    run,
    n_changed=len(changed),
    changed_bins=" and ".join(name_of(tables[coarse], b) for b in changed) or "none",
    largest_bin=name_of(tables[coarse], largest),
    largest_count=int(tables[coarse].counts[largest]),
    largest_share=growth[largest] / max(growth.sum(), tolerance),
    growth_error=abs(growth.sum() - observed),
)
share = growth[largest] / max(growth.sum(), tolerance)
glue(arises=f"The largest part of the difference, {share:.0%}, arises in {name_of(tables[coarse], largest)}" if len(changed) else f"The fullest bin is {name_of(tables[coarse], largest)}")

# %% [markdown]
# Of the {glue:text}`binning-sensitivity/coarse:d` bins, {glue:text}`binning-sensitivity/n_changed:d` change when they are split into
# {glue:text}`binning-sensitivity/fine:d`: {glue:text}`binning-sensitivity/changed_bins:s`. {glue:text}`arises:s`. Its
# {glue:text}`binning-sensitivity/largest_count:d` rows, by their mean difference of confidence and accuracy:
#
# - one bin of {glue:text}`binning-sensitivity/coarse:d`: {glue:text}`binning-sensitivity/largest_parts_5:s`;
# - split as by 10 bins: {glue:text}`binning-sensitivity/largest_parts_10:s`. The parts {glue:text}`binning-sensitivity/largest_signs_10:s`, and the ECE grows by
#   {glue:text}`binning-sensitivity/largest_growth_10:.6f`;
# - split as by {glue:text}`binning-sensitivity/fine:d` bins: {glue:text}`binning-sensitivity/largest_parts_20:s`. The parts
#   {glue:text}`binning-sensitivity/largest_signs_20:s`, and the ECE grows by {glue:text}`binning-sensitivity/largest_growth_20:.6f` in all.
#
# Parts that differ in sign had cancelled inside the larger bin and now count in full. From 5 to 10 bins the whole ECE changes by
# {glue:text}`binning-sensitivity/difference_10_5:.6f`, from 10 to 20 by {glue:text}`binning-sensitivity/difference_20_10:.6f`. In a part
# of a few rows the outcome of a single sentence can decide the sign: such finer bins give no firm evidence of a pattern.

# %% tags=["hide-input"]
source = "binning sensitivity"
where = "cancellation inside [0.6,0.8): mean signed difference confidence minus accuracy"
quantities = ["7 rows in one bin of five", "3 lower rows", "4 upper rows"]
article = {q: (int(q.split()[0]), float(printed(source, where, q))) for q in quantities}
lower, upper = (count * mean for count, mean in (article[q] for q in quantities[1:]))
article_n = int(printed(source, "exploration pool", "n"))
article_rebuilt = (abs(lower) + abs(upper) - abs(lower + upper)) / article_n
pieces = reliability_table(confidence, correct, [0, 0.6, 0.7, 0.8, 1])
union = reliability_table(confidence, correct, [0, 0.6, 0.8, 1])
ours = dict(zip(quantities, [(union, 1), (pieces, 1), (pieces, 2)]))
lines = []
for q, (t, b) in ours.items():
    here = f"{t.confidence[b] - t.accuracy[b]:+.3f}" if t.counts[b] else "–"
    lines.append([name_of(t, b), article[q][0], t.counts[b], f"{article[q][1]:+.3f}", here])
table("lrrrr", ["Bin", "Rows, article", "Rows, here", "Mean difference, article", "Mean difference, here"], lines)

# %% tags=["hide-input"]
signed_mean = {end: t.confidence[b] - t.accuracy[b] for end, (t, b) in zip(("whole", "lower", "upper"), ours.values()) if t.counts[b]}
for end, q in zip(("whole", "lower", "upper"), quantities):
    record(run, **{f"article_count_{end}": article[q][0], f"article_{end}": f"{article[q][1]:+.3f}".replace("-", "−")})
record(run, **{f"signed_{end}": value for end, value in signed_mean.items()})
glue(article_n=article_n)
record(run, article_rebuilt=article_rebuilt, article_difference=float(printed(source, "20 minus 5 bins", "difference")))
record(run, same_bin="no bin, since nothing changes" if not len(changed) else "the same bin" if name_of(tables[coarse], largest) == "[0.6, 0.8)" else "another bin");

# %% [markdown]
# The article that this section repeats did the analysis on another pool of SST-2 sentences. It found its change in [0.6, 0.8):
# {glue:text}`binning-sensitivity/article_count_whole:d` rows with a mean difference of {glue:text}`binning-sensitivity/article_whole:s`, which 10
# bins separate into {glue:text}`binning-sensitivity/article_count_lower:d` lower rows at
# {glue:text}`binning-sensitivity/article_lower:s` and {glue:text}`binning-sensitivity/article_count_upper:d` upper ones at {glue:text}`binning-sensitivity/article_upper:s`. The rounded
# values give a growth of {glue:text}`binning-sensitivity/article_rebuilt:.6f`, against a printed difference of
# {glue:text}`binning-sensitivity/article_difference:.6f`. Its ECEs with 10, 15 and 20 bins are equal to the last printed digit.
#
# On the pool used here, the largest part of the change comes from {glue:text}`binning-sensitivity/same_bin:s`. By 10 bins
# {glue:text}`binning-sensitivity/largest_bin:s` has added {glue:text}`binning-sensitivity/largest_growth_10:.6f` to the ECE, by {glue:text}`binning-sensitivity/fine:d` bins
# {glue:text}`binning-sensitivity/largest_growth_20:.6f`; in the article all of the change has come by 10 bins. The mechanism is the same, since nothing else can
# raise an ECE under refinement. The step at which it acts and the signs of the parts depend on a handful of rows.
#
# ## What a calibrated classifier would show
#
# A sum of distances cannot be negative, so chance errors add up where they should cancel: at a finite sample size the ECE is biased upwards
# {cite:p}`kumar2019`. How far is easy to simulate. Keep the {glue:text}`binning-sensitivity/n:d` confidences, and
# draw each outcome anew, right with a probability equal to its confidence. This classifier is perfectly calibrated; its ECE should be 0.

# %%
rng = np.random.default_rng([seed, 1])
calibrated = confidence - (
    rng.random((replicates, n)) < confidence
)  # d, one label set per row
one_hot = {
    m: assign_bins(confidence, t.edges)[:, None] == np.arange(m)
    for m, t in tables.items()
}


def ece_of(d, m):
    """ECE with m bins of each row of differences d."""
    return np.abs(d @ one_hot[m].astype(float)).sum(axis=1) / n


floor = np.column_stack([ece_of(calibrated, m) for m in bin_counts])
floor_difference = floor[:, at[fine]] - floor[:, at[coarse]]

# %% tags=["hide-input"]
floor_mean, (floor_low, floor_high) = floor.mean(axis=0), interval(floor)
for m, mean, a, b in zip(bin_counts, floor_mean, floor_low, floor_high):
    record(run, **{f"calibrated_{m}": mean, f"calibrated_{m}_low": a, f"calibrated_{m}_high": b})
    record(run, **{f"calibrated_exceeds_{m}": int((floor[:, at[m]] >= tables[m].ece).sum())})
record(run, calibrated_difference=floor_difference.mean(), calibrated_difference_exceeds=(floor_difference >= observed - tolerance).mean());

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3.9))
for values, (bottom, top), colour, text in ((points, (low, high), COLOURS["t1"], "observed, 95% bootstrap interval"), (floor_mean, (floor_low, floor_high), COLOURS["neutral"], "calibrated classifier: mean, central 95%")):
    ax.errorbar(places, values, yerr=[values - bottom, top - values], fmt="o-", color=colour, capsize=4, linewidth=1.2)
    label(ax, text, (places[0], top.max()), (0.1, 6), colour)
    for x, y in zip(places, values):
        label(ax, f"{y:.4f}", (x, y), (8, -3), colour)
ax.set(xlabel="number of equal-width bins", ylabel="ECE", ylim=(0, 1.18 * high.max()), xlim=(-0.3, len(places) - 0.55))
ax.set_xticks(places, bin_counts)
show(
    fig,
    name="fig-bins-calibrated",
    caption=f"ECE of the {n} rows (SST-2 exploration pool, T = 1) with its 95% bootstrap interval, and mean ECE of a perfectly calibrated classifier with the same confidences, with the central 95% of {replicates:,} simulated label sets.",
    alt="Two series over the number of bins. "
    + "; ".join(f"{m} bins: observed {tables[m].ece:.4f}, calibrated {floor_mean[at[m]]:.4f} ({floor_low[at[m]]:.4f} to {floor_high[at[m]]:.4f})" for m in bin_counts)
    + ".",
)

# %% [markdown]
# Over {glue:text}`binning-sensitivity/replicates:,d` label sets the mean ECE of the calibrated classifier is
# {glue:text}`binning-sensitivity/calibrated_5:.4f` with {glue:text}`binning-sensitivity/coarse:d` bins and
# {glue:text}`binning-sensitivity/calibrated_20:.4f` with {glue:text}`binning-sensitivity/fine:d` ({numref}`fig-bins-calibrated`). The observed
# ECE is reached by {glue:text}`binning-sensitivity/calibrated_exceeds_5:d` label sets with {glue:text}`binning-sensitivity/coarse:d`
# bins and by {glue:text}`binning-sensitivity/calibrated_exceeds_20:d` with {glue:text}`binning-sensitivity/fine:d`. The simulated mean is the
# bias at perfect calibration. For a miscalibrated classifier the bias is another, smaller where a bin's true distance is large against its noise, so
# subtracting the simulated mean is no correction.
#
# The *difference* of {glue:text}`binning-sensitivity/fine:d` and {glue:text}`binning-sensitivity/coarse:d` bins is judged in the same way. Its mean under perfect
# calibration is {glue:text}`binning-sensitivity/calibrated_difference:.4f`, and {glue:text}`binning-sensitivity/calibrated_difference_exceeds:.1%` of the label
# sets reach the observed {glue:text}`binning-sensitivity/difference_20_5:.4f`. Unless that share is
# small, chance in small bins accounts for the rise, and no miscalibration that only finer bins could see is needed for it.
#
# The simulation also shows what the intervals are worth, since the true value is known to be 0.

# %%
n_sets = 200  # label sets to bootstrap
drawn = np.array(
    [np.bincount(row, minlength=n) for row in indices]
)  # how often each row is in each replicate
inside_ece, inside_difference = 0, 0
for d in calibrated[:n_sets]:
    with_fine, with_coarse = ece_of(drawn * d, fine), ece_of(drawn * d, coarse)
    inside_ece += interval(with_fine)[0] <= tolerance
    inside_difference += interval(with_fine - with_coarse)[0] <= tolerance

# %% tags=["hide-input"]
again = np.column_stack([ece_of(drawn * (confidence - correct), m) for m in bin_counts])  # the replicates, in a second way
record(run, n_replicate_values=ece.size, recomputed_difference=np.abs(again - ece).max())
coverage_low, coverage_high = wilson_interval(inside_difference, n_sets)
record(run, n_sets=n_sets, coverage_ece=inside_ece / n_sets, coverage_difference=inside_difference / n_sets)
record(run, coverage_difference_low=coverage_low, coverage_difference_high=coverage_high);

# %% [markdown]
# Bootstrapped in the same way, the first {glue:text}`binning-sensitivity/n_sets:d` label sets have a 95% interval that contains the true value in
# {glue:text}`binning-sensitivity/coverage_ece:.1%` of the cases for the ECE with {glue:text}`binning-sensitivity/fine:d` bins, and in
# {glue:text}`binning-sensitivity/coverage_difference:.1%` for the difference of {glue:text}`binning-sensitivity/fine:d` and
# {glue:text}`binning-sensitivity/coarse:d` bins (Wilson interval {glue:text}`binning-sensitivity/coverage_difference_low:.1%` to
# {glue:text}`binning-sensitivity/coverage_difference_high:.1%`); the nominal figure is 95%. This is the extreme case, because 0 is the smallest value that an ECE can take. Resampling also
# adds its own bias to that of the sample: the replicates' mean lies above the observed ECE by
# {glue:text}`binning-sensitivity/shift_5:.4f` with {glue:text}`binning-sensitivity/coarse:d` bins and by
# {glue:text}`binning-sensitivity/shift_20:.4f` with {glue:text}`binning-sensitivity/fine:d` (a minus sign means below). The intervals of this
# page describe how sensitive the estimates are to the rows that happen to be in the pool. They promise no coverage.
#
# ## Too low or too high? What others found
#
# {cite:t}`kumar2019` prove that binning *under*estimates the calibration error of the continuous predictor; this page shows that an ECE is biased *upwards*. Both are right, about two different targets.
#
# - *With infinitely many rows* a bin averages over the confidences in it, and errors of opposite sign cancel. So the error of the binned predictor is at most that of the continuous one, and refining the bins brings it nearer: the inequality
#   above.
# - *With few rows in a bin* chance alone puts its accuracy off its confidence, and distances do not cancel. So the estimate lies above the error of the binned predictor, more so with more bins: the simulation above.
#
# A sample's ECE can therefore lie on either side of the calibration error of the classifier, and no number of bins is right for both reasons at once. Around this question: {cite:t}`ovadia2019` find that a temperature fitted on one population
# says little once the data shift, so the error on the old population is no promise for the new; {cite:t}`minderer2021` find that recent architectures are better calibrated than those of {cite:t}`guo2017`, and check that their
# comparisons survive other numbers of bins.
#
# ## Beside the printed numbers
#
# The article's pool also is a cut of the validation sentences, {glue:text}`article_n:d` of them, ordered by a hash whose key it does not print. Its
# numbers therefore need not be met, and no key was searched for. What can be asked, of a pool of that size, is whether they are as close as two such pools are. The
# last two columns say so: the central 95% of {glue:text}`binning-sensitivity/replicates:,d` random pools of {glue:text}`binning-sensitivity/n:d`
# from all {glue:text}`binning-sensitivity/n_all:d` sentences, and whether the printed value lies in it. For the ends of the intervals, the first
# {glue:text}`binning-sensitivity/n_end_pools:d` of these pools are bootstrapped with {glue:text}`binning-sensitivity/n_end_replicates:d` samples each. This is the only use of the other sentences' labels in this section; nothing is chosen by it.

# %%
rng = np.random.default_rng([seed, 2])
pools = np.array([rng.permutation(len(everything))[:n] for _ in range(replicates)])
all_confidence, all_correct = top_label(softmax(everything.logits), everything.labels)
pool_ece = bootstrap_ece(all_confidence, all_correct, bin_counts, pools)
means = bootstrap_mean(
    np.column_stack([all_correct, all_confidence]).astype(float), pools
)
members = {
    m: assign_bins(all_confidence, t.edges)[:, None] == np.arange(m)
    for m, t in tables.items()
}
pool_counts = {
    m: np.rint(n * bootstrap_mean(rows.astype(float), pools))
    for m, rows in members.items()
}

few = 500  # pools with a bootstrap of their own, and samples in each
pool_ends = []
for rows in pools[:few]:
    drawn_ece = bootstrap_ece(
        all_confidence[rows], all_correct[rows], bin_counts, indices[:few]
    )
    pool_ends.append(
        interval(
            np.column_stack(
                [drawn_ece, drawn_ece[:, at[fine]] - drawn_ece[:, at[coarse]]]
            )
        )
    )
pool_lows, pool_highs = np.moveaxis(pool_ends, 1, 0)

zone = assign_bins(all_confidence, pieces.edges)  # 1: [0.6, 0.7), 2: [0.7, 0.8)
pool_signed = {}
for end, zones in (("whole", (1, 2)), ("lower", (1,)), ("upper", (2,))):
    inside = np.isin(zone, zones).astype(float)
    total, share = bootstrap_mean(
        np.column_stack([inside * (all_confidence - all_correct), inside]), pools
    ).T
    pool_signed[end] = total[share > 0] / share[share > 0]

# %% tags=["hide-input"]
pool = "exploration pool"
rows = [  # what, its name in the results, printed, here, values over the random pools or None, format
    ("Rows", "n", printed(source, pool, "n"), n, None, "d"),
    ("Correct", "correct", printed(source, pool, "correct"), int(correct.sum()), n * means[:, 0], "d"),
    ("Mean confidence", "mean_confidence", printed(source, pool, "mean_confidence"), confidence.mean(), means[:, 1], ".4f"),
]
for m, t in tables.items():
    place, ends = f"{m} equal-width bins", printed(source, f"{m} equal-width bins", "ci95").split()
    rows += [
        (f"ECE, {m} bins", f"ece_{m}", printed(source, place, "ece"), t.ece, pool_ece[:, at[m]], ".6f"),
        ("– lower end", f"ece_{m}_low", ends[0], low[at[m]], pool_lows[:, at[m]], ".6f"),
        ("– upper end", f"ece_{m}_high", ends[1], high[at[m]], pool_highs[:, at[m]], ".6f"),
        ("– non-empty bins", f"nonempty_{m}", printed(source, place, "nonempty_bins"), int(t.filled.sum()), (pool_counts[m] > 0).sum(axis=1), "d"),
        ("– last bin's count", f"rightmost_{m}", printed(source, place, "rightmost_count"), int(t.counts[-1]), pool_counts[m][:, -1], "d"),
    ]
ends = printed(source, "20 minus 5 bins", "ci95").split()
rows += [
    ("ECE, 20 minus 5 bins", "difference_20_5", printed(source, "20 minus 5 bins", "difference"), tables[20].ece - tables[5].ece, pool_ece[:, at[20]] - pool_ece[:, at[5]], ".6f"),
    ("– lower end", "difference_20_5_low", ends[0], difference_low, pool_lows[:, -1], ".6f"),
    ("– upper end", "difference_20_5_high", ends[1], difference_high, pool_highs[:, -1], ".6f"),
]
for end, q in zip(pool_signed, quantities):
    if end in signed_mean:  # there may be no row in the interval
        rows.append((f"Mean difference, {name_of(*ours[q])}", f"signed_{end}", printed(source, where, q), signed_mean[end], pool_signed[end], ".3f"))

# %% tags=["hide-input"]
lines, compared, within = [], 0, 0
for what, name, text, here, values, spec in rows:
    gap = here - (int(text) if spec == "d" else float(text))
    cells = [what, text, f"{here:{spec}}", f"{gap:+{spec}}" if gap else "0", "–", "–"]
    if values is not None:
        bottom, top = interval(np.where(np.abs(values) < tolerance, 0, values))
        record(run, **{f"splits_{name}_low": bottom, f"splits_{name}_high": top})
        compared, within = compared + 1, within + (is_in := bool(bottom <= float(text) <= top))
        cells[4:] = [" to ".join(format(end, spec.replace("d", ".0f")) for end in (bottom, top)), "yes" if is_in else "no"]
    lines.append(cells)
filled = " ".join(str(c) for c in tables[20].counts[tables[20].filled])
lines.append(["Counts in the non-empty bins of 20", printed(source, "20 equal-width bins", "counts of non-empty bins"), filled, "–", "–", "–"])
record(run, counts_20=filled, n_end_pools=min(few, len(pools)), n_end_replicates=min(few, replicates))
record(run, n_compared=compared, n_within=within, correct_less_printed=int(correct.sum()) - int(printed(source, pool, "correct")), ece10_less_printed=tables[10].ece - float(printed(source, "10 equal-width bins", "ece")))
table("lrrrrl", ["Quantity", "Printed", "Here", "Here − printed", "Random pools, 95%", "Printed in it"], lines)

# %% [markdown]
# Of {glue:text}`binning-sensitivity/n_compared:d` printed values with a spread to judge them by, {glue:text}`binning-sensitivity/n_within:d` lie within it. Here
# less printed is {glue:text}`binning-sensitivity/correct_less_printed:+d` correct predictions and {glue:text}`binning-sensitivity/ece10_less_printed:+.4f` in the ECE with 10 bins. The
# values are not {glue:text}`binning-sensitivity/n_compared:d` independent checks: pools with more errors tend to have higher ECEs at every bin count, and one count fixes others. Random pools
# overlap with both pools compared, and the spread holds for this checkpoint and these {glue:text}`binning-sensitivity/n_all:d` sentences only. The last row
# cannot be compared position by position, because which bins are empty differs.
#
# ## Take-aways
#
# - With {glue:text}`binning-sensitivity/coarse:d`, 10, 15 and {glue:text}`binning-sensitivity/fine:d` equal-width bins, the ECE of the same
#   {glue:text}`binning-sensitivity/n:d` predictions is {glue:text}`binning-sensitivity/ece_5:.4f`,
#   {glue:text}`binning-sensitivity/ece_10:.4f`, {glue:text}`binning-sensitivity/ece_15:.4f` and {glue:text}`binning-sensitivity/ece_20:.4f`. The distance of mean confidence
#   and accuracy, {glue:text}`binning-sensitivity/ece_1:.4f`, is a lower bound for all of them.
# - Refining bins never lowers the ECE ({glue:text}`binning-sensitivity/n_nested_violations:d` exceptions in
#   {glue:text}`binning-sensitivity/n_nested_checks:,d` comparisons); more bins that are no refinement can (10 to 15 bins:
#   {glue:text}`binning-sensitivity/fell_15_10:d` of {glue:text}`binning-sensitivity/replicates:,d` replicates).
# - The difference of {glue:text}`binning-sensitivity/difference_20_5:.4f` between {glue:text}`binning-sensitivity/fine:d` and
#   {glue:text}`binning-sensitivity/coarse:d` bins comes to {glue:text}`binning-sensitivity/largest_share:.0%` from {glue:text}`binning-sensitivity/largest_count:d` rows. A calibrated classifier
#   would show {glue:text}`binning-sensitivity/calibrated_difference:.4f` on average.
# - Intervals for an ECE, and for a difference that cannot be negative, show sensitivity to the sample. They are no tests and promise no coverage.
# - Report an ECE with its kind of bins, their number, which end is closed, the counts and the sample size.
#
# ## Exercises
#
# The folded cell computes the answers.

# %% tags=["hide-cell"]
by_count = {m: reliability_table(confidence, correct, m).ece for m in range(1, 41)}
multiples = [(a, b) for a in by_count for b in by_count if b > a and b % a == 0]
multiples_fell = sum(by_count[b] < by_count[a] - tolerance for a, b in multiples)
neighbours_fell = [m for m in range(1, 40) if by_count[m + 1] < by_count[m] - tolerance]

mass = reliability_table(confidence, correct, EqualMass(20))
mass_bins = assign_bins(confidence, mass.edges)[:, None] == np.arange(len(mass.counts))
mass_floor = np.abs(calibrated @ mass_bins.astype(float)).sum(axis=1).mean() / n

inside = np.flatnonzero(one_hot[coarse][:, largest])  # the rows of the bin
grown = []
for i in inside:
    flipped = correct.copy()
    flipped[i] = ~flipped[i]
    grown.append(reliability_table(confidence, flipped, fine).ece - reliability_table(confidence, flipped, coarse).ece - observed)
grown = np.array(grown)

many = np.random.default_rng([seed, 3]).binomial(100, confidence.astype(float), (replicates, n))  # right ones of 100 copies of each row
many_floor = {m: ece_of(100 * confidence - many, m).mean() / 100 for m in (coarse, fine)}
glue(
    multiples=len(multiples), multiples_fell=multiples_fell, neighbours_fell=", ".join(f"{m} to {m + 1}" for m in neighbours_fell[:3]) or "none", n_neighbours_fell=len(neighbours_fell),
    mass_bins=len(mass.counts), mass_last=int(mass.counts[-1]), mass_from=mass.edges[-2], mass_ece=mass.ece, mass_floor=mass_floor,
    flip_vanishes=int((grown <= tolerance - growth[largest]).sum()), flip_less=int((grown < -tolerance).sum()), flip_more=int((grown > tolerance).sum()), flip_rows=len(grown), flip_low=observed + grown.min(), flip_high=observed + grown.max(),
    many_coarse=many_floor[coarse], many_fine=many_floor[fine],
)  # fmt: skip

# %% [markdown]
# 1. Compute the ECE of the pool for every number of equal-width bins from 1 to 40. Predict first from which to which numbers it cannot fall, then check.
#
#    :::{dropdown} Answer
#    It cannot fall from a number to one of its multiples. Of {glue:text}`multiples:d` such pairs, {glue:text}`multiples_fell:d` show a fall. From one number to the next it can, and
#    does {glue:text}`n_neighbours_fell:d` times (the first: {glue:text}`neighbours_fell:s`).
#    :::
#
# 2. Use `EqualMass(20)` from `calib.reliability` in place of 20 equal-width bins. What happens to the last bin, and to the mean ECE of the calibrated classifier?
#
#    :::{dropdown} Answer
#    The last of {glue:text}`mass_bins:d` bins starts at {glue:text}`mass_from:.5f` and holds {glue:text}`mass_last:d` rows in place of {glue:text}`binning-sensitivity/rightmost_20:d`. The ECE is
#    {glue:text}`mass_ece:.4f` in place of {glue:text}`binning-sensitivity/ece_20:.4f`, and the calibrated classifier shows {glue:text}`mass_floor:.4f` on average in place of
#    {glue:text}`binning-sensitivity/calibrated_20:.4f`.
#    :::
#
# 3. Flip the outcome of one row in {glue:text}`binning-sensitivity/largest_bin:s` and repeat the decomposition. For which rows does the difference shrink, for which does it grow, and can one flip make it vanish?
#
#    :::{dropdown} Answer
#    Of the {glue:text}`flip_rows:d` rows, flipping makes the difference of {glue:text}`binning-sensitivity/fine:d` and {glue:text}`binning-sensitivity/coarse:d` bins smaller for
#    {glue:text}`flip_less:d` and larger for {glue:text}`flip_more:d`; it ends between {glue:text}`flip_low:.4f` and {glue:text}`flip_high:.4f`, from
#    {glue:text}`binning-sensitivity/difference_20_5:.4f`. What this bin adds to it is twice the smaller of two totals: the positive sums of its parts, and the negative ones. A flip moves the sum of one part by 1, so it shrinks the
#    difference where it takes from the smaller total and grows it where it adds to that. The contribution vanishes only where all parts end with one sign, which one flip does for {glue:text}`flip_vanishes:d` of the rows.
#    :::
#
# 4. Draw the calibrated label sets for 100 times as many rows by repeating the confidences. How do the mean ECEs and their dependence on the bins change?
#
#    :::{dropdown} Answer
#    They fall by a factor of about ten, since chance errors shrink with the square root of the number of rows: to {glue:text}`many_coarse:.5f` with {glue:text}`binning-sensitivity/coarse:d` bins and
#    {glue:text}`many_fine:.5f` with {glue:text}`binning-sensitivity/fine:d`. The distance between bin counts shrinks with them; their ratio hardly changes.
#    :::

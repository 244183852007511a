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
# # Six examples: better likelihood, worse ECE
#
# Can one and the same temperature improve the likelihood of some predictions and worsen their calibration error? On the six
# labelled examples that this section starts from it does: fitted to them, it lowers the negative log-likelihood (NLL), leaves every
# predicted class as it was, and raises the expected calibration error (ECE). The section works the case out by
# hand-sized arithmetic and says why the two results do not contradict each other.
#
# :::{admonition} Before you start
# **You will**
#
# - turn logits into confidences and fit one temperature to them, by search over a grid and by a solver;
# - compute an ECE bin by bin, with the counts in view;
# - explain how the NLL can improve while the ECE gets worse;
# - see which part of an ECE comes from where the bins lie.
#
# **You need** softmax, logarithms and means; NumPy for the code.
#
# **Time** about 20 minutes to read, seconds to run.
# :::

# %% tags=["hide-input"]
from string import ascii_uppercase

import matplotlib.pyplot as plt
import numpy as np

from calib import (
    Predictions,
    accuracy,
    brier,
    count_overlap,
    ece,
    fit_temperature,
    nll,
    reliability_table,
    softmax,
    top_label,
)
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, label, log_axis, reliability_diagram
from calib.reliability import assign_bins
from calib.sweep import sweep_bins, sweep_temperatures

plt.style.use("calib.paper")

# %% [markdown]
# ## The data
#
# The rows are made up, and they are the whole data set. Each has a logit for each of the classes A, B and so on, and
# a label: the index of the true class.

# %% tags=["parameters"]
logits = [  # one row per example, one column per class
    [3.0, 1.0, 0.0],
    [2.5, 1.0, 0.0],
    [3.0, 0.5, 0.0],
    [1.5, 2.0, 0.0],
    [0.5, 0.0, 1.5],
    [2.0, 2.2, 0.0],
]
labels = [0, 0, 1, 1, 2, 0]  # index of the true class
edges = [0, 0.25, 0.5, 0.75, 1]  # bins of the ECE, with at least one inner edge
grid_low = 0.25  # smallest temperature of the dense search
grid_high = 4.0  # largest
grid_size = 15_001  # how many
max_bins = 20  # largest number of equal-width bins to try

# %%
if len(edges) < 3:
    raise ValueError(f"edges: expected at least one edge between 0 and 1, got {edges}")
data = Predictions(ids=range(1, len(labels) + 1), logits=logits, labels=labels)
n = len(data)
_, correct = top_label(softmax(data.logits), data.labels)
letters = ascii_uppercase  # names of the classes, in the order of the columns

# %% tags=["remove-cell"]
record("six-examples", n=n, correct=correct.sum(), accuracy=accuracy(data.logits, data.labels), n_bins=len(edges) - 1)

# %% [markdown]
# The predicted class is the one with the largest logit. It is right in {glue:text}`six-examples/correct:d` of
# {glue:text}`six-examples/n:d` rows, an accuracy of {glue:text}`six-examples/accuracy:.3f`.
#
# ## What is claimed when a probability is given
#
# Let $\hat Y$ be the predicted class and $\hat P$ the probability given to it, its *confidence*. The confidences are
# calibrated if
#
# $$\Pr(Y = \hat Y \mid \hat P = p) = p \quad\text{for every } p \text{ that occurs.}$$
#
# The probability on the left is taken over a population of examples, and the event is a rule by which an answer counts
# as right. Calibration is therefore a relation between predicted probabilities and outcomes in a named population: change
# the population or the event, and the same classifier may be calibrated no longer. It is a different thing from accuracy. A
# classifier that is right in six of ten cases and says 0.6 each time is calibrated; one that ranks its classes
# equally well but says 0.99 is not.
#
# Rows with different confidences show each value of $p$ once, with an outcome of 0 or 1. The definition cannot be
# checked at a single $p$; rows must be pooled, and that is what bins are for.
#
# ## One temperature
#
# Temperature scaling {cite:p}`guo2017` divides all logits $z_{ik}$ of example $i$ by one positive number before the softmax:
#
# $$p_{ik}(T) = \frac{e^{z_{ik}/T}}{\sum_j e^{z_{ij}/T}}.$$
#
# Above 1 it flattens the probabilities, below 1 it sharpens them. The order of the logits within a row stays, so the
# predicted class and the accuracy stay. Row 1, for example, has the logits {glue:text}`first_logits:s`. At $T = 1$ their softmax is
# {glue:text}`first_t1:s`, and at $T =$ {glue:text}`six-examples/temperature_rounded:g` it is {glue:text}`first_rounded:s`.
#
# :::{dropdown} How a program computes it
# It subtracts the largest logit of the row first: that multiplies numerator and denominator by the same number and changes no probability. Without it
# $e^z$ overflows float64 above $z \approx$ {glue:text}`overflow:.0f`, and the quotient is no number. For the same reason a loss takes the logarithm of the sum
# ($\log p_k = z_k - \log \sum_j e^{z_j}$, shifted likewise) and never the logarithm of a probability that may have been rounded to 0. `calib.probabilities` does both.
# :::
#
# The fitted temperature minimises the mean negative log-likelihood of the labels $y_i$,
#
# $$\mathrm{NLL}(T) = -\frac1n \sum_{i=1}^{n} \log p_{i y_i}(T).$$
#
# As a function of $1/T$ it is convex, so there is one minimum to find (or none inside the search range).

# %%
temperatures = np.linspace(grid_low, grid_high, grid_size)
nll_curve = np.array([nll(data.logits, data.labels, t) for t in temperatures])
temperature_grid = temperatures[nll_curve.argmin()]

fit = fit_temperature(data.logits, data.labels)
temperature = float(fit.temperature)

# %% tags=["hide-input"]
record(
    "six-examples",
    temperature=temperature,
    temperature_grid=temperature_grid,
    grid_low=grid_low,
    grid_high=grid_high,
    grid_size=grid_size,
    grid_spacing=temperatures[1] - temperatures[0],
    grid_difference=abs(temperature_grid - temperature),
    iterations=fit.iterations,
    nll_t1=nll(data.logits, data.labels),
    nll_fitted=nll(data.logits, data.labels, temperature),
)
near = np.abs(np.arange(grid_size) - nll_curve.argmin()) <= 5  # grid points around the minimum
agree = abs(temperature_grid - temperature) <= temperatures[1] - temperatures[0]
glue(ways="Two ways to the minimum agree." if agree else "Two ways to the minimum end apart: it lies outside the range of the dense search.")
ticks = [t for t in 2.0 ** np.arange(-10, 11) if grid_low <= t <= grid_high]  # of the axes of temperature

# %% [markdown]
# {glue:text}`ways:s` The dense search tries {glue:text}`six-examples/grid_size:,d` temperatures from
# {glue:text}`six-examples/grid_low:.2f` to {glue:text}`six-examples/grid_high:.0f` and keeps the best,
# {glue:text}`six-examples/temperature_grid:.5f`. The solver, a Newton iteration on the derivative, gives
# {glue:text}`six-examples/temperature:.7f` (evaluations: {glue:text}`six-examples/iterations:d`). The
# difference is {glue:text}`six-examples/grid_difference:.1e`, against a grid spacing of
# {glue:text}`six-examples/grid_spacing:.1e` ({numref}`fig-six-nll`). The grid is easy to check; the solver needs no range
# guessed beforehand.

# %% tags=["hide-input"]
fig, (whole, close) = plt.subplots(1, 2, figsize=(7.2, 3.6), width_ratios=(3, 2))
whole.plot(temperatures, nll_curve, color=COLOURS["neutral"])
outward = 1 if temperature > 1 else -1  # the side of the fitted temperature on which its label has room
for t, name, colour, side in ((1.0, "T = 1", COLOURS["t1"], -outward), (temperature, f"fitted, T = {temperature:.3f}", COLOURS["fitted"], outward)):
    if grid_low <= t <= grid_high:
        whole.plot(t, nll(logits, labels, t), "o", color=colour)
        label(whole, name, (t, nll(logits, labels, t)), (side, -9), colour)
whole.margins(y=0.18)
log_axis(whole.xaxis, ticks)
whole.set(xlabel="temperature T (log scale)", ylabel="mean NLL", title="Whole range")

close.plot(1000 * (temperatures[near] - temperature), 1e9 * (nll_curve[near] - fit.objective), "o", color=COLOURS["neutral"], markersize=4)
close.axvline(0, color=COLOURS["fitted"], linewidth=1.2)
label(close, "solver", (0, 0.95), (4, 0), COLOURS["fitted"], xycoords=("data", "axes fraction"))
close.set(xlabel=r"1000 $\times$ (T $-$ fitted T)", ylabel=r"$10^9\times$ (NLL $-$ minimum)", title="Grid and solver")
show(
    fig,
    name="fig-six-nll",
    caption=f"NLL against temperature on the {n} rows. Left: {grid_size:,} temperatures from {grid_low:g} to {grid_high:g}. Right: the grid points around the minimum (dots) and the temperature that the solver returns (line).",
    alt=f"Left: a smooth curve that passes {nll(logits, labels):.3f} at T = 1 and {fit.objective:.3f} at the fitted T = {temperature:.3f}. Right: the grid points around the minimum, the lowest one {abs(temperature_grid - temperature):.1e} from the solver's line.",
)

# %% [markdown]
# The NLL goes from {glue:text}`six-examples/nll_t1:.5f` at $T = 1$ to {glue:text}`six-examples/nll_fitted:.5f` at the fitted
# temperature. The table gives each row with its confidence before and after.

# %%
confidence_t1, _ = top_label(softmax(data.logits), data.labels)
confidence_fitted, _ = top_label(softmax(data.logits, temperature), data.labels)
temperature_rounded = float(f"{temperature:.3g}")
rounded, _ = top_label(softmax(data.logits, temperature_rounded), data.labels)
bin_t1, bin_fitted = (
    assign_bins(c, np.array(edges)) for c in (confidence_t1, confidence_fitted)
)

# %% tags=["hide-input"]
record(
    "six-examples",
    temperature_rounded=temperature_rounded,
    rounding_effect=np.abs(rounded - confidence_fitted).max(),
    n_moved=int((bin_t1 != bin_fitted).sum()),
    moved=", ".join(str(i) for i in data.ids[bin_t1 != bin_fitted]),
    largest_change=np.abs(confidence_fitted - confidence_t1).max(),
    mean_confidence_t1=confidence_t1.mean(),
    mean_confidence_fitted=confidence_fitted.mean(),
)
for name, values in (("t1", confidence_t1), ("fitted", confidence_fitted)):
    record("six-examples", **{f"confidence_{name}_{i}": value for i, value in zip(data.ids, values)})
for name, t in (("t1", 1.0), ("rounded", temperature_rounded)):
    first = softmax(data.logits[:1], t)[0]
    record("six-examples", **{f"first_row_{name}_{k + 1}": p for k, p in enumerate(first)})
    glue(**{f"first_{name}": ", ".join(f"{p:.3f}" for p in first)})
glue(first_logits=", ".join(f"{z:g}" for z in data.logits[0]), overflow=np.log(np.finfo(float).max))
rows = []
for i, row in enumerate(data.logits):
    predicted = f"{letters[row.argmax()]}, {'right' if correct[i] else 'wrong'}"
    moved = "yes" if bin_t1[i] != bin_fitted[i] else "no"
    rows.append([i + 1, ", ".join(f"{z:g}" for z in row), letters[labels[i]], predicted, f"{confidence_t1[i]:.3f}", f"{confidence_fitted[i]:.3f}", moved])
table("rlllrrl", ["Row", "Logits", "Label", "Predicted", "Confidence, T = 1", f"Confidence, T = {temperature:.5f}", "Changes bin"], rows)

# %% [markdown]
# The lesson that this case comes from rounds the temperature to three digits for its table, here to {glue:text}`six-examples/temperature_rounded:g`.
# That shifts no confidence by more than {glue:text}`six-examples/rounding_effect:.1e`. The mean confidence goes from
# {glue:text}`six-examples/mean_confidence_t1:.3f` to {glue:text}`six-examples/mean_confidence_fitted:.3f`, while
# the accuracy stays at {glue:text}`six-examples/accuracy:.3f`. {glue:text}`six-examples/n_moved:d` of
# {glue:text}`six-examples/n:d` rows change their bin.
#
# ## The ECE, bin by bin
#
# Sort the rows into bins $B_1, \dots, B_M$ by confidence. A bin contains its left edge and not its right one; the last bin contains both.
# In each bin compare the share of correct predictions with the mean confidence, and weight the distances by the counts:
#
# $$\mathrm{ECE} = \sum_{m=1}^{M} \frac{|B_m|}{n}\,\bigl|\mathrm{acc}(B_m) - \mathrm{conf}(B_m)\bigr|.$$
#
# An empty bin adds nothing.

# %%
table_t1 = reliability_table(confidence_t1, correct, edges)
table_fitted = reliability_table(confidence_fitted, correct, edges)

# %% tags=["remove-cell"]
record("six-examples", ece4_t1=table_t1.ece, ece4_fitted=table_fitted.ece)
for name, binned in (("t1", table_t1), ("fitted", table_fitted)):
    record("six-examples", **{f"contribution_{name}_{m + 1}": value for m, value in enumerate(binned.contributions)})
    for column in ("counts", "confidence", "accuracy"):
        record("six-examples", **{f"bin_{column}_{name}_{m + 1}": getattr(binned, column)[m] for m in np.flatnonzero(binned.filled)})

# %% tags=["hide-input"]
rows = []
for t, binned, confidence in ((1.0, table_t1, confidence_t1), (temperature, table_fitted, confidence_fitted)):
    for m in range(len(edges) - 1):
        interval = f"[{edges[m]:.2f}, {edges[m + 1]:.2f}{']' if m == len(edges) - 2 else ')'}"
        means = [f"{binned.confidence[m]:.3f}", f"{binned.accuracy[m]:.3f}"] if binned.counts[m] else ["–", "–"]
        rows.append([f"{t:.3f}", interval, binned.counts[m], *means, f"{binned.contributions[m]:.3f}"])
    total = [binned.n, f"{confidence.mean():.3f}", f"{correct.mean():.3f}", f"{binned.ece:.3f}"]
    rows.append([f"{t:.3f}", *(f"**{cell}**" for cell in ["all", *total])])
table("rlrrrr", ["Temperature", "Bin", "Count", "Mean confidence", "Accuracy", "Adds to ECE"], rows)

# %% tags=["hide-input"]
tables = (table_t1, table_fitted)
covered = sum(int(((t.low <= t.confidence) & (t.confidence <= t.high)).sum()) for t in tables)
record("six-examples", covered=covered, n_points=sum(int(t.filled.sum()) for t in tables))

fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.9), sharey=True)
for ax, binned, name, colour in ((axes[0], table_t1, "T = 1", COLOURS["t1"]), (axes[1], table_fitted, f"T = {temperature:.3f}", COLOURS["fitted"])):
    reliability_diagram(ax, binned, colour)
    ax.set(title=f"{name}, ECE {binned.ece:.3f}", xticks=[0, 0.25, 0.5, 0.75, 1], yticks=[0, 0.25, 0.5, 0.75, 1])
axes[1].set_ylabel("")
points = ["; ".join(f"{c} at {x:.3f}, accuracy {y:.3f}" for c, x, y in zip(t.counts[t.filled], t.confidence[t.filled], t.accuracy[t.filled])) for t in tables]
show(
    fig,
    name="fig-six-reliability",
    caption=f"Reliability diagrams of the {n} rows in {len(edges) - 1} bins, before and after scaling. Numbers on top are counts; thin bars are 95% Wilson intervals; the shaded bar is the distance that the ECE averages; grey lines are bin edges.",
    alt=f"Two reliability diagrams. T = 1, count and mean confidence: {points[0]}; ECE {table_t1.ece:.3f}. T = {temperature:.3f}: {points[1]}; ECE {table_fitted.ece:.3f}.",
)

# %% [markdown]
# The ECE with the bins declared above, {glue:text}`six-examples/n_bins:d` in number, goes from {glue:text}`six-examples/ece4_t1:.3f` to
# {glue:text}`six-examples/ece4_fitted:.3f` ({numref}`fig-six-reliability`). The counts are the first thing to read in the picture. A bin that holds one row
# has an accuracy of 0 or 1, whatever the classifier is worth. Of the {glue:text}`six-examples/n_points:d` points in the
# two diagrams, {glue:text}`six-examples/covered:d` have a 95% Wilson interval {cite:p}`wilson1927` that contains their mean confidence.
# Such an interval does not account for the choice of the bins or of the temperature.
#
# ## Why the two results do not contradict each other
#
# *The objective is another one.* The fit asks for the smallest NLL. Setting its derivative by $1/T$ to zero gives
#
# $$\frac1n\sum_i \sum_k p_{ik}(T)\, z_{ik} = \frac1n\sum_i z_{i y_i}:$$
#
# the mean logit that the model expects equals the mean logit of the true classes. All classes of all rows enter, and no bin occurs.
# The NLL is a strictly proper score {cite:p}`gneiting2007`: in a population, the true probabilities minimise its expectation. It
# is smooth in $T$.
#
# *The ECE sums up what does not cancel.* Write $d_i$ for the outcome (1 if right, 0 if wrong) less the confidence. The
# counts cancel from the formula above, and
#
# $$\mathrm{ECE} = \frac1n \sum_{m=1}^{M} \Bigl|\sum_{i \in B_m} d_i\Bigr|.$$
#
# Right rows have $d_i \ge 0$, wrong rows $d_i \le 0$. Where both sit in one bin they offset each other; once they sit in
# different bins, both count in full. With nothing cancelled the sum would be the mean of $|d_i|$: {glue:text}`six-examples/ece_largest_t1:.3f` at
# $T = 1$ and {glue:text}`six-examples/ece_largest_fitted:.3f` at the fitted temperature. The bins cancel
# {glue:text}`six-examples/cancelled_t1:.3f` of the first and {glue:text}`six-examples/cancelled_fitted:.3f` of the second. No confidence moved by more than
# {glue:text}`six-examples/largest_change:.3f`; {glue:text}`company:s`.
#
# *The ECE is piecewise.* While no row changes its bin, the ECE moves continuously with $T$, with a kink where a bin's sum
# passes zero. When a confidence crosses an edge, a whole $d_i$ goes from one sum to another, and the ECE can jump; it does not where
# neither sum changes its sign and $d_i$ agrees with both. {numref}`fig-six-curves` shows both
# curves over the same temperatures.

# %%
moved = [str(i) for i in data.ids[bin_t1 != bin_fitted]]

# %% tags=["remove-cell"]
glue(company=f"what changed is which rows share a bin (moved: {', '.join(moved)})" if moved else "and every row stayed in its bin")

# %%
curve_t = temperatures[::5]
ece_curve = sweep_temperatures(data.logits, data.labels, curve_t, edges)["ece"]
curves = [top_label(softmax(data.logits, t), data.labels)[0] for t in curve_t]
members = np.array([assign_bins(c, np.array(edges)) for c in curves])
changes = (
    np.flatnonzero((members[1:] != members[:-1]).any(axis=1)) + 1
)  # a row has crossed an edge
steps = np.abs(np.diff(ece_curve))[changes - 1]

# %% tags=["hide-input"]
lowest = int(ece_curve.argmin())
record(
    "six-examples",
    n_changes=len(changes),
    largest_jump=steps.max(initial=0.0),
    ece4_lowest=ece_curve[lowest],
    temperature_ece4_lowest=curve_t[lowest],
    ece4_before_lowest=ece_curve[max(lowest - 1, 0)],
    curve_spacing=curve_t[1] - curve_t[0],
    nll_at_ece4_lowest=nll(logits, labels, curve_t[lowest]),
)
at_edge = lowest > 0 and lowest in changes
glue(
    lowest_at=f"where a row crosses an edge: the point {curve_t[1] - curve_t[0]:.5f} before it has {ece_curve[lowest - 1]:.3f}. A temperature chosen for its ECE here would be chosen by the position of an edge"
    if at_edge
    else "where no row crosses an edge"
)
rows = np.transpose(curves)
levels = np.vstack([rows, np.repeat(np.array(edges)[:, None], len(curve_t), axis=1)])
distance = np.abs(rows[:, None] - levels)
distance[range(n), range(n)] = np.inf
free = distance.min(axis=1)  # distance of each curve from the others and from the edges: its number goes where that is largest
free[np.ix_(correct, curve_t > 0.9)] = 0
places = free.argmax(axis=1)

# %% tags=["hide-input"]
fig, (top, middle, bottom) = plt.subplots(3, 1, figsize=(7.2, 7.4), sharex=True, height_ratios=(3, 3, 4))
top.plot(temperatures, nll_curve, color=COLOURS["neutral"])
for piece_t, piece_ece in zip(np.split(curve_t, changes), np.split(ece_curve, changes)):
    middle.plot(piece_t, piece_ece, color=COLOURS["neutral"])
for i, place in enumerate(places):
    bottom.plot(curve_t, rows[i], color="black", linestyle="-" if correct[i] else "--", linewidth=1.2)
    bottom.text(curve_t[place], rows[i, place], i + 1, ha="center", va="center", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
bottom.hlines(edges[1:-1], grid_low, grid_high, color=COLOURS["other"], linewidth=1.2)
for ax in (top, middle, bottom):
    ax.grid(False)
    ax.axvline(1, color=COLOURS["t1"], linewidth=1.2, zorder=0)
    ax.axvline(temperature, color=COLOURS["fitted"], linewidth=1.2, zorder=0)
for ax in (middle, bottom):
    ax.vlines(curve_t[changes], 0, 1, transform=ax.get_xaxis_transform(), color=COLOURS["neutral"], linewidth=0.7, linestyle=":", zorder=0)
place = {"xycoords": ("data", "axes fraction"), "annotation_clip": True}
label(top, "T = 1", (1, 0.9), (-4 * outward, 0), COLOURS["t1"], **place)
label(top, f"fitted, T = {temperature:.3f}", (temperature, 0.9), (4 * outward, 0), COLOURS["fitted"], **place)
top.set(title="NLL: smooth", ylabel="mean NLL")
middle.set(title=f"ECE, {len(edges) - 1} bins: in pieces", ylabel="ECE", ylim=(0, None))
log_axis(bottom.xaxis, ticks)
bottom.set(title="Confidence of each row (dashed: wrong) and bin edges", ylabel="confidence", xlabel="temperature T (log scale)", xlim=(grid_low, grid_high))
show(
    fig,
    name="fig-six-curves",
    caption=f"NLL, ECE and the {n} confidences over the temperature; {n} rows, {len(edges) - 1} bins. Dotted lines mark the {len(changes)} temperatures at which a row crosses a bin edge (horizontal lines, bottom). Numbers name the rows.",
    alt=f"Top: the NLL is a smooth curve; the fitted T = {temperature:.3f} is marked. Middle: the ECE runs in pieces, with values from {ece_curve.min():.3f} to {ece_curve.max():.3f}. Bottom: {n} confidences fall with T and cross the bin edges at {len(changes)} temperatures; the ECE jumps only there.",
)

# %% [markdown]
# In this range rows cross an edge {glue:text}`six-examples/n_changes:d` times, and the largest jump of the ECE is
# {glue:text}`six-examples/largest_jump:.3f`. The smallest ECE, {glue:text}`six-examples/ece4_lowest:.3f`, occurs at a temperature of
# {glue:text}`six-examples/temperature_ece4_lowest:.3f`, with an NLL of {glue:text}`six-examples/nll_at_ece4_lowest:.5f`, and
# {glue:text}`lowest_at:s`.
#
# ## Moving and adding edges
#
# None of the predictions changes in this part; only the bins do. Merging all rows into one bin gives the smallest ECE that any bins
# can give, $|\frac1n\sum_i d_i|$, the distance between accuracy and mean confidence. Giving each row a bin of its own gives the largest,
# $\frac1n\sum_i |d_i|$. By the triangle inequality every other choice lies between.

# %%
bin_counts = np.arange(1, max_bins + 1)
middle_edge = len(edges) // 2
positions = np.linspace(edges[middle_edge - 1], edges[middle_edge + 1], 1001)[1:-1]
moved_edges = [[*edges[:middle_edge], x, *edges[middle_edge + 1 :]] for x in positions]
by_count, by_edge = {}, {}
for name, confidence in (("t1", confidence_t1), ("fitted", confidence_fitted)):
    by_count[name] = sweep_bins(confidence, correct, bin_counts.tolist())
    by_edge[name] = sweep_bins(confidence, correct, moved_edges)

# %% tags=["hide-input"]
brier_t1, brier_fitted = (brier(softmax(data.logits, t), data.labels) for t in (1.0, temperature))
brier_change = "worse" if brier_fitted > brier_t1 else "no worse"
record("six-examples", brier_t1=brier_t1, brier_fitted=brier_fitted, brier_change=brier_change)
glue(nll_verb="lowers" if fit.objective < nll(logits, labels) else "does not lower", ece_verb="raises" if table_fitted.ece > table_t1.ece else "does not raise")
here = edges[middle_edge]
n_lower = int((by_count["fitted"] < by_count["t1"]).sum())
below, above = confidence_fitted[confidence_fitted < here], confidence_fitted[confidence_fitted >= here]
record(
    "six-examples",
    n_overlap=count_overlap(data, data, declared=True),
    max_bins=max_bins,
    n_lower=n_lower,
    middle_edge=float(here),
    edge_low=below.max(initial=edges[middle_edge - 1]),
    edge_high=above.min(initial=edges[middle_edge + 1]),
    by_edge_smallest=by_edge["fitted"].min(),
    by_edge_largest=by_edge["fitted"].max(),
)
limits = {}
for name, confidence, binned in (("t1", confidence_t1, table_t1), ("fitted", confidence_fitted, table_fitted)):
    d = correct - confidence
    limits |= {f"ece_smallest_{name}": abs(d.mean()), f"ece_largest_{name}": np.abs(d).mean()}
    record("six-examples", **{f"cancelled_{name}": np.abs(d).mean() - binned.ece})
record("six-examples", **limits)
open_order = max(limits["ece_smallest_t1"], limits["ece_smallest_fitted"]) <= min(limits["ece_largest_t1"], limits["ece_largest_fitted"])
glue(
    ranges="The ranges overlap: which temperature has the lower ECE is open until the bins are named" if open_order else "The ranges do not overlap",
    sign="the sign of the change depends on their number" if 0 < n_lower < max_bins else "the sign of the change is the same for each number tried",
)

# %% tags=["hide-input"]
fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.8), sharey=True)
for name, text, y, marker in (("t1", "T = 1", 0.99, "o"), ("fitted", f"T = {temperature:.3f}", 0.92, "s")):
    left.plot(bin_counts, by_count[name], marker=marker, markersize=4.5, linewidth=0.6, color=COLOURS[name])
    right.plot(positions, by_edge[name], color=COLOURS[name], linewidth=2 if name == "t1" else 1.5)
    left.text(0.02, y, f"{'●' if marker == 'o' else '■'} {text}", transform=left.transAxes, va="top", color=COLOURS[name])
right.axvline(here, color=COLOURS["neutral"], linewidth=1, linestyle=":")
label(right, f"declared: {here:g}", (here, 0.96), (-4, 0), xycoords=("data", "axes fraction"))
left.set(ylim=(0, 1.25 * max(by_count["t1"].max(), by_count["fitted"].max())), xlabel="number of equal-width bins", ylabel="ECE", title="Adding edges")
left.set_xticks([1, *range(5, max_bins + 1, 5)])
right.set(xlabel="position of the middle edge", title="Moving one edge")
show(
    fig,
    name="fig-six-bins",
    caption=f"ECE of the same {n} rows under other bins. Left: 1 to {max_bins} equal-width bins. Right: the {len(edges) - 1} bins of the text, with the middle edge moved between its neighbours.",
    alt=f"Left: the ECE at T = 1 ranges from {by_count['t1'].min():.3f} to {by_count['t1'].max():.3f} and at the fitted T from {by_count['fitted'].min():.3f} to {by_count['fitted'].max():.3f} as bins are added; the fitted T has the lower ECE for {n_lower} of the {max_bins} choices. Right: step functions of the edge; T = 1 between {by_edge['t1'].min():.3f} and {by_edge['t1'].max():.3f}, fitted between {by_edge['fitted'].min():.3f} and {by_edge['fitted'].max():.3f}.",
)

# %% [markdown]
# At $T = 1$ these limits are {glue:text}`six-examples/ece_smallest_t1:.3f` and {glue:text}`six-examples/ece_largest_t1:.3f`; at the fitted temperature they are
# {glue:text}`six-examples/ece_smallest_fitted:.3f` and {glue:text}`six-examples/ece_largest_fitted:.3f`.
# {glue:text}`ranges:s`. With equal-width bins
# {glue:text}`sign:s` ({numref}`fig-six-bins`, left). Of the numbers from 1 to {glue:text}`six-examples/max_bins:d`, the fitted temperature has the lower
# ECE for {glue:text}`six-examples/n_lower:d`.
#
# Moving only the middle edge of the declared bins takes the ECE at the fitted temperature to values from
# {glue:text}`six-examples/by_edge_smallest:.3f` to {glue:text}`six-examples/by_edge_largest:.3f` (right). The value
# {glue:text}`six-examples/ece4_fitted:.3f` holds while that edge lies above {glue:text}`six-examples/edge_low:.3f` and at or below
# {glue:text}`six-examples/edge_high:.3f`; the declared edge is at {glue:text}`six-examples/middle_edge:.2f`. Equal-mass bins do not remove
# the dependence: they put the edges at the data, so that the edges move too. Estimates of this kind need many more rows than bins,
# and even then they are biased in ways that depend on the binning {cite:p}`kumar2019`.

# %% [markdown]
# ## What this case can and cannot show
#
# Three statements hold for these {glue:text}`six-examples/n:d` rows, each by itself: the fitted temperature {glue:text}`nll_verb:s` their NLL; it leaves their predicted classes and
# accuracy alone; it {glue:text}`ece_verb:s` their ECE in the declared bins. A fourth number belongs beside them. The Brier score
# {cite:p}`brier1950` is a proper score too, but was not the objective; it goes from {glue:text}`six-examples/brier_t1:.4f` to
# {glue:text}`six-examples/brier_fitted:.4f`, so it gets {glue:text}`six-examples/brier_change:s`. On a finite sample two
# proper scores need not agree on the best temperature, and a better likelihood alone does not make the probabilities better by every measure.
#
# None of this says anything about other rows. The temperature was fitted and judged on the same rows:
# {glue:text}`six-examples/n_overlap:d` of {glue:text}`six-examples/n:d` overlap. On the rows of the fit, the fitted temperature cannot
# have a larger NLL than $T = 1$; a smaller one is no evidence of generalisation. Evidence needs labelled examples that the fit has not seen, drawn from the population in question.
#
# A fitted temperature therefore belongs to a measurement contract. A record of it names
#
# - the classifier, down to its checkpoint, and the logits before scaling;
# - the event that counts as right;
# - the population, where and when it was sampled, and how it was split into examples for the fit and for the evaluation;
# - the objective, the search range and the fitted temperature;
# - the bin edges with the count of each bin, and a proper score beside every ECE.
#
# If inputs, class mix or outcome rule change, the temperature has to be measured anew. It rescales logits;
# it does not mend a wrong order of the classes, and it does not notice that the population has changed.
#
# ## The computation in plain NumPy
#
# The cell below needs nothing but NumPy and carries its own copy of the six rows. Paste it into a fresh interpreter to repeat the main numbers by
# the dense search. Its ECE uses the form with $d_i$ and multiplies by four to find the bin.

# %%
import numpy as np

SCORES = np.array(
    [[3, 1, 0], [2.5, 1, 0], [3, 0.5, 0], [1.5, 2, 0], [0.5, 0, 1.5], [2, 2.2, 0]]
)
TRUTH = np.array([0, 0, 1, 1, 2, 0])


def log_probs(t):
    z = SCORES / t
    return z - np.logaddexp.reduce(z, axis=1, keepdims=True)


def mean_nll(t):
    return -log_probs(t)[range(6), TRUTH].mean()


def four_bin_ece(t):
    p = np.exp(log_probs(t))
    d = (p.argmax(axis=1) == TRUTH) - p.max(axis=1)  # outcome less confidence
    bins = np.minimum(4 * p.max(axis=1), 3).astype(
        int
    )  # [0, 1/4), [1/4, 1/2), [1/2, 3/4), [3/4, 1]
    return np.abs(np.bincount(bins, weights=d)).sum() / 6


T = min(np.linspace(0.25, 4, 15_001), key=mean_nll)
print(f"T={T:.5f}")
print(f"NLL: {mean_nll(1):.5f} -> {mean_nll(T):.5f}")
print(f"ECE: {four_bin_ece(1):.3f} -> {four_bin_ece(T):.3f}")

# %% [markdown]
# ## Take-aways
#
# - On {glue:text}`six-examples/n:d` rows, dividing the logits by {glue:text}`six-examples/temperature:.3f` takes the NLL from
#   {glue:text}`six-examples/nll_t1:.3f` to {glue:text}`six-examples/nll_fitted:.3f` and the ECE in the declared bins from
#   {glue:text}`six-examples/ece4_t1:.3f` to {glue:text}`six-examples/ece4_fitted:.3f`; {glue:text}`six-examples/correct:d` of
#   {glue:text}`six-examples/n:d` predictions are right before and after. The Brier score, which was not fitted, goes from
#   {glue:text}`six-examples/brier_t1:.3f` to {glue:text}`six-examples/brier_fitted:.3f`.
# - The two scores answer different questions. The NLL is smooth in the temperature and uses the probability of every true class; the ECE is piecewise and
#   counts what does not cancel inside a bin.
# - The bins alone can take the ECE anywhere from {glue:text}`six-examples/ece_smallest_fitted:.3f` (one bin) to
#   {glue:text}`six-examples/ece_largest_fitted:.3f` (one row per bin) at the fitted temperature. Report an ECE with its edges and counts.
# - Calibration is a relation between probabilities and outcomes in a named population. A temperature fitted and judged on the same rows says
#   nothing about others.
#
# ## Exercises
#
# The answers are for the six rows as they stand in the listing above; the folded cell computes them.

# %% tags=["hide-cell"]
relabelled = TRUTH.copy()
relabelled[2] = 0
again = fit_temperature(SCORES, relabelled)
eces = {t: ece(*top_label(softmax(SCORES, t), relabelled), bins=4) for t in (1.0, float(again.temperature))}
without = [float(fit_temperature(np.delete(SCORES, i, axis=0), np.delete(TRUTH, i)).temperature) for i in range(6)]
both = [top_label(softmax(SCORES, t), TRUTH) for t in (1.0, T)]
tried = [[0, 0.25, x, 0.75, 1] for x in np.arange(0.26, 0.75, 0.01).round(2)]
better = [bins[2] for bins in tried if ece(*both[1], bins) < ece(*both[0], bins)]
chosen = [ece(*pair, [0, 0.25, better[0], 0.75, 1]) for pair in both]
glue(
    relabelled_temperature=float(again.temperature), relabelled_t1=eces[1.0], relabelled_fitted=eces[float(again.temperature)], six_temperature=float(T),
    without_low=min(without), without_high=max(without), without_low_row=int(np.argmin(without)) + 1, without_high_row=int(np.argmax(without)) + 1,
    better_low=better[0], better_high=better[-1], chosen_t1=chosen[0], chosen_fitted=chosen[1],
)  # fmt: skip

# %% [markdown]
# 1. Change the label of row 3 to A and run the section again. Which way does the fitted temperature move, and why? What happens to the ECE?
#
#    :::{dropdown} Answer
#    It falls, from {glue:text}`six_temperature:.3f` to {glue:text}`relabelled_temperature:.3f`. Row 3 has the largest confidence and was wrong; with the new label
#    it is right, and the likelihood no longer pays for being less sure. The ECE in the four bins is {glue:text}`relabelled_t1:.3f` at
#    $T = 1$ and {glue:text}`relabelled_fitted:.3f` at the new temperature.
#    :::
#
# 2. Leave out one row at a time and fit the temperature to the others. How far apart are the temperatures? What do you conclude about the precision of the one fitted to all rows?
#
#    :::{dropdown} Answer
#    They run from {glue:text}`without_low:.3f` (without row {glue:text}`without_low_row:d`) to {glue:text}`without_high:.3f` (without row
#    {glue:text}`without_high_row:d`). A single row moves the temperature across 1: six rows do not even settle whether the logits are too large or too small.
#    :::
#
# 3. Find four bins under which the fitted temperature has a lower ECE than $T = 1$. Could you defend this choice, had you not seen the outcome?
#
#    :::{dropdown} Answer
#    Move the middle edge to {glue:text}`better_low:.2f`: the ECE is then {glue:text}`chosen_t1:.3f` at $T = 1$ and {glue:text}`chosen_fitted:.3f` at
#    the fitted temperature. Any middle edge from {glue:text}`better_low:.2f` to {glue:text}`better_high:.2f`, in steps of one hundredth, does. Nothing but the outcome speaks for it:
#    equal widths and equal counts are rules that one can name beforehand, this edge follows none.
#    :::
#
# 4. Prove that merging two neighbouring bins never raises the ECE. When does it leave it unchanged?
#
#    :::{dropdown} Answer
#    Let $a$ and $b$ be the sums of $d_i$ in the two bins. Apart they add $(|a| + |b|)/n$ to the ECE, merged $|a + b|/n$, and $|a + b| \le |a| + |b|$. The two
#    are equal where $a$ and $b$ have the same sign or one of them is 0.
#    :::

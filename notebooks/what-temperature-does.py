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
# # What a temperature does
#
# What does it change, and what does it leave alone, to divide the logits by one number before the softmax? This section answers on small problems, and shows what to do when a fit goes wrong. Its relatives and other uses of the same division follow in [](temperature-relatives.ipynb).
#
# :::{admonition} Before you start
# - **You will** fit a temperature and see what it repairs and what it cannot; tell what is wrong when it ends at a bound; read its limits; follow it into a detector and a language model.
# - **You need** softmax, cross-entropy and a little PyTorch.
# - **Time** about 10 minutes to read, seconds to run.
# :::
#
# All data on this page but one short text are simulated from the seed below, so the true answer is often known.

# %% tags=["hide-input"]
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # small problems: threads would only wait for each other

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.optimize import brentq
from torchvision.ops import box_iou

from calib import (
    accuracy,
    entropy,
    fit_temperature,
    nll,
    reliability_table,
    softmax,
    top_label,
)
from calib.claims.printed import printed
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, label, log_axis, reliability_diagram

RUN = "what-temperature-does"
plt.style.use("calib.paper")
torch.set_num_threads(1)


# %% tags=["parameters"]
# A classifier whose logits are off by a known factor
seed = 0
n = 5000
n_classes = 10
scale = 9.0  # standard deviation of the logits
true_temperature = 3.0
grid_low = 0.5  # smallest temperature of the grid
grid_high = 6.0  # largest
grid_steps = 551  # how many
n_bins_figure = 8  # equal-width bins of the reliability diagrams
n_bins = 15  # equal-width bins of every ECE
# Limits
example_logits = [3.0, 2.0, 0.5, 0.0, -1.0]
# Detector
n_images = 150
objects_per_image = 6
false_boxes_per_image = 6
overlap = 0.5  # IoU from which a detection matches an object
threshold = 0.25  # confidence below which a box is dropped
# Language model
sampling_temperatures = [0.1, 0.5, 1.0, 2.0]
n_characters = 2000
smoothing_count = 0.02  # added to every trigram count

# %% [markdown]
# ## One number, fitted
#
# Temperature scaling {cite:p}`guo2017` replaces the softmax of the logits $z$ by
#
# $$p_i(T) = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}}, \qquad T > 0.$$
#
# The network stays frozen. $T$ is the value that minimises the negative log-likelihood (NLL) on data that the network was not trained on.
#
# To see whether the fit finds the right value, we need data for which it is known. We draw {glue:text}`what-temperature-does/n:,d` rows of logits with standard deviation {glue:text}`what-temperature-does/scale:g` for {glue:text}`what-temperature-does/n_classes:d` classes, and for each row a label from the softmax at $T =$ {glue:text}`what-temperature-does/true_temperature:g`. A model with these logits is calibrated at that temperature and {glue:text}`at_one:s` at $T = 1$.
#
# The mean NLL at temperature $T$ is the mean of $\log \sum_j e^{z_j/T}$ less the mean logit of the label over $T$. We evaluate it on a grid.

# %%
generator = torch.Generator().manual_seed(seed)
logits = scale * torch.randn(n, n_classes, generator=generator)
labels = torch.multinomial(
    (logits / true_temperature).softmax(dim=1), 1, generator=generator
)[:, 0]

grid = torch.linspace(grid_low, grid_high, grid_steps)
at_label = logits.gather(1, labels[:, None]).mean()
losses = torch.stack(
    [(logits / t).logsumexp(dim=1).mean() - at_label / t for t in grid]
)
temperature = grid[losses.argmin()].item()

hit_rate = (logits.argmax(dim=1) == labels).double().mean().item()
confidence = {
    t: (logits / t).softmax(dim=1).amax(dim=1).mean().item() for t in (1.0, temperature)
}

# %% [markdown]
# The same fit without a grid: `calib.fit_temperature` solves for the root of the derivative. The curvature of the NLL at the optimum gives a standard error. By $1/T$ it is the mean variance of the logits under the predicted probabilities.

# %%
z, y = logits.numpy(), labels.numpy()
fit = fit_temperature(z, y)
p = softmax(z, fit.temperature)
curvature = ((p * z**2).sum(axis=1) - (p * z).sum(axis=1) ** 2).mean()
standard_error = fit.temperature**2 / np.sqrt(n * curvature)

# %% tags=["hide-input"]
tables = {t: reliability_table(*top_label(softmax(z, t), y), bins=n_bins_figure) for t in (1.0, temperature)}
eces = {t: reliability_table(*top_label(softmax(z, t), y), bins=n_bins).ece for t in (1.0, temperature)}
record(
    RUN, n=n, n_classes=n_classes, scale=scale, true_temperature=true_temperature, grid_low=grid_low, grid_high=grid_high, grid_steps=grid_steps,
    temperature=temperature, accuracy=hit_rate, mean_confidence_t1=confidence[1.0], mean_confidence_fitted=confidence[temperature],
    temperature_continuous=fit.temperature, standard_error=standard_error, errors_off=abs(fit.temperature - true_temperature) / standard_error,
    iterations=fit.iterations, nll_t1=nll(z, y), nll_fitted=fit.objective, n_bins=n_bins, ece_t1=eces[1.0], ece_fitted=eces[temperature],
    argmax_changes=int((softmax(z).argmax(axis=1) != softmax(z, temperature).argmax(axis=1)).sum()),
)  # fmt: skip
glue(at_one="overconfident" if true_temperature > 1 else "underconfident" if true_temperature < 1 else "so")
source = "temperature-scaling glossary"
where = "overconfident logits: torch, seed 0, 9*randn(5000,10), labels from softmax(logits/3), grid 0.5..6.0 in 551 steps"
here = dict(temperature=temperature, accuracy=hit_rate, mean_confidence_t1=confidence[1.0], mean_confidence_fitted=confidence[temperature])
names = ["fitted temperature (grid)", "accuracy", "mean confidence, T = 1", "mean confidence, fitted T"]
expected = {quantity: printed(source, where, quantity) for quantity in here}
table("lrr", ["Quantity", "Published", "This run"], [[name, expected[q], f"{here[q]:.{len(expected[q].split('.')[1])}f}"] for name, q in zip(names, here)])

# %% [markdown]
# With the default parameters this is the set-up of an experiment, whose printed values stand beside ours. The grid of {glue:text}`what-temperature-does/grid_steps:d` values from {glue:text}`what-temperature-does/grid_low:.1f` to {glue:text}`what-temperature-does/grid_high:.1f` gives $T =$ {glue:text}`what-temperature-does/temperature:.2f`. The continuous optimum, found by Newton's method ({glue:text}`what-temperature-does/iterations:d` evaluations), is {glue:text}`what-temperature-does/temperature_continuous:.4f` with standard error {glue:text}`what-temperature-does/standard_error:.3f`: the true value lies {glue:text}`what-temperature-does/errors_off:.1f` standard errors away. The NLL goes from {glue:text}`what-temperature-does/nll_t1:.3f` to {glue:text}`what-temperature-does/nll_fitted:.3f`.
#
# Division by a positive number keeps the order of the logits, so {glue:text}`what-temperature-does/argmax_changes:d` of {glue:text}`what-temperature-does/n:,d` predicted classes change and the accuracy stays {glue:text}`what-temperature-does/accuracy:.3f`. The mean confidence moves from {glue:text}`what-temperature-does/mean_confidence_t1:.3f` to {glue:text}`what-temperature-does/mean_confidence_fitted:.3f`, beside that accuracy. {numref}`fig-known-temperature` shows the same bin by bin.

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.2, 4.3), sharey=True)
for ax, (t, binned), colour in zip(axes, tables.items(), (COLOURS["t1"], COLOURS["fitted"])):
    reliability_diagram(ax, binned, colour)
    ax.set_title("T = 1" if t == 1 else f"Fitted, T = {t:.2f}")
axes[1].set_ylabel("")
below = {t: int((b.accuracy[b.filled] < b.confidence[b.filled]).sum()) for t, b in tables.items()}
filled = {t: int(b.filled.sum()) for t, b in tables.items()}
show(
    fig, name="fig-known-temperature",
    caption=f"Reliability before and after temperature scaling. {n:,} simulated rows with {n_classes} classes, the rows on which T was fitted; {n_bins_figure} equal-width bins of the top-label confidence, 95% Wilson intervals, counts on top.",
    alt=f"Two reliability diagrams. At T = 1, {below[1.0]} of {filled[1.0]} points lie below the diagonal, mean confidence {confidence[1.0]:.3f} against accuracy {hit_rate:.3f}. At T = {temperature:.2f} it is {below[temperature]} of {filled[temperature]}, mean confidence {confidence[temperature]:.3f}.",
)  # fmt: skip

# %% [markdown]
# ### When the fit goes wrong
#
# A fit that ends at a bound, or another tool that reports a temperature below zero, is a finding about the data and not a number to use. We break the same data in five ways and look at the signs: accuracy, what `calib` fits, and the
# slope $\beta = 1/T$ that a solver without bounds finds.

# %% tags=["hide-input"]
def free_slope(z, y):
    """Slope of the logits that minimises the NLL, of either sign."""
    mean = z[np.arange(len(z)), y].mean()

    def derivative(b):
        return (softmax(z * b) * z).sum(axis=1).mean() - mean

    return brentq(derivative, -20, 20) if derivative(-20) < 0 < derivative(20) else np.nan


right = z.argmax(axis=1) == y
broken = {
    "as they are": (z, y),
    "labels of another order of the classes": (z, (y + 1) % n_classes),
    "logits with the sign turned round": (-z, y),
    "labels of other rows": (z, np.roll(y, 1)),
    "only rows that are right": (z[right], y[right]),
    "probabilities passed as logits": (softmax(z), y),
}
signs = {name: (accuracy(*data), fit_temperature(*data), free_slope(*data)) for name, data in broken.items()}
at = {"lower": "lower bound", "upper": "upper bound", None: ""}
record(RUN, **{f"broken_slope_{k}": slope for k, (_, _, slope) in enumerate(signs.values()) if np.isfinite(slope)})
table("lrrrr", ["Data", "Accuracy", "Fitted T", "NLL", "Free slope"], [
    [name, f"{share:.1%}", at[found.at_bound] or f"{found.temperature:.3f}", f"{found.objective:.3f}", "none: no finite one" if np.isnan(slope) else f"{slope:.4f}"]
    for name, (share, found, slope) in signs.items()
])

# %% [markdown]
# So look in this order:
#
# 1. **Accuracy on the rows of the fit.** If it is at or below chance, rows, columns or labels do not belong together, or the sign is turned round. A negative slope says the same: the larger the logit, the *less* likely
#    the class. A temperature cannot be negative, so `calib` stops at its upper bound. Mend the data; never use the slope.
# 2. **The input.** Rows that lie in [0, 1] and sum to one are probabilities. Their logarithm is what belongs here; the fit to the probabilities themselves ends far below 1, with a higher NLL than the logits have.
# 3. **All rows right?** Then the NLL falls without end as $T \to 0$: the lower bound. More rows are needed, among them some that are wrong.
# 4. **The upper bound, or hundreds, for another reason?** The NLL is then that of uniform probabilities, the logarithm of the number of classes. Either rows and labels are mixed up, or the logits say nothing about these labels, and uniform probabilities are the best that division can do.
# 5. **A finite temperature that another tool does not reproduce?** Compare the two NLLs on the same rows. Where one is higher, its solver stopped early: a step size or a number of steps, not the data.
#
# ## The two limits
#
# Let the largest logit be unique. For $T \to 0$ its probability tends to one; for $T \to \infty$ every probability tends to $1/K$. Between the limits the way is monotone. With variance $\mathrm{Var}_p(z)$ and mean $\mathrm{E}_p(z)$ under the probabilities at $T$, the confidence $p_1$ and the entropy $H$ follow
#
# $$\frac{\mathrm{d}p_1}{\mathrm{d}T} = -\frac{p_1\,(z_1 - \mathrm{E}_p(z))}{T^2} \le 0, \qquad \frac{\mathrm{d}H}{\mathrm{d}T} = \frac{\mathrm{Var}_p(z)}{T^3} \ge 0.$$
#
# So a larger temperature always lowers the confidence, and a smaller one always raises it, for each example. {numref}`fig-limits` shows one example. The probability of a class in the middle of the order need not be monotone.

# %%
ladder = np.geomspace(0.05, 50, 200)
ordered = sorted(example_logits, reverse=True)
curves = np.concatenate([softmax([ordered], t) for t in ladder])
top, spread_out = curves.max(axis=1), entropy(curves)

# %% tags=["hide-input"]
K = len(example_logits)
record(RUN, limit_low=ladder[0], limit_high=ladder[-1], limit_low_confidence=top[0], limit_high_confidence=top[-1])
fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6))
left.set_prop_cycle(color=plt.cm.cividis(np.linspace(0.05, 0.8, K)))
left.plot(ladder, curves)
for k, (t, words) in enumerate(((0.9, f"z = {ordered[0]:g}"), (1.6, f"z = {ordered[1]:g}"), (1.0, "the others"))[:K]):
    pin = {"arrowstyle": "-", "color": COLOURS["neutral"], "linewidth": 0.7}
    label(left, words, (t, softmax([ordered], t)[0, k]), [(30, 26), (-60, 30), (-44, 4)][k], "black", arrowprops=pin)
left.axhline(1 / K, color=COLOURS["neutral"], linestyle=":", linewidth=1)
label(left, "1/K", (ladder[0], 1 / K), (2, 2))
right.plot(ladder, top, color=COLOURS["neutral"])
right.plot(ladder, spread_out / np.log(K), color=COLOURS["other"])
label(right, "confidence", (0.05, 0.92), (0.1, 0))
label(right, "entropy / log K", (50, 0.92), (-0.1, 0), COLOURS["other"])
for ax, title in ((left, "Probabilities"), (right, "Confidence and entropy")):
    log_axis(ax.xaxis, [0.1, 1, 10])
    ax.set(ylim=(-0.03, 1.05), xlabel="temperature T (log scale)", title=title)
show(
    fig, name="fig-limits",
    caption=f"One example with the logits {', '.join(f'{v:g}' for v in ordered)} over the temperature. Left: its {K} probabilities; dotted: 1/K. Right: confidence and entropy, the entropy as a share of its maximum.",
    alt=f"Left: from T = {ladder[0]:g} to {ladder[-1]:g} the largest probability falls from {top[0]:.2f} to {top[-1]:.2f} and all {K} meet near {1 / K:.2f}. Right: confidence falls and relative entropy rises from {spread_out[0]:.2f} to {spread_out[-1] / np.log(K):.2f}.",
)  # fmt: skip

# %% [markdown]
# ## A detector: the threshold moves, the ranking stays
#
# Many object detectors score each class by its own sigmoid. The temperature then acts as $\sigma(z/T)$, and $T > 1$ moves every score towards one half: high scores fall, low scores rise. A box passes a confidence threshold $c$ when
#
# $$z > T \log\frac{c}{1-c}.$$
#
# For $c$ below one half the right side is negative, so a larger $T$ can only let more boxes pass.
#
# We simulate {glue:text}`what-temperature-does/n_images:d` images with {glue:text}`what-temperature-does/objects_per_image:d` objects each. A detector reports every object twice, with errors in position, and adds {glue:text}`what-temperature-does/false_boxes_per_image:d` boxes around nothing. The images lie side by side in one long strip, so that a single call of `box_iou` compares all boxes and boxes of different images never touch.

# %%
def corners(b):
    """Boxes from centre, width and height to two corners."""
    return torch.tensor(np.hstack([b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2]))


def random_boxes(rng, count, side=640):
    """Centre, width and height of `count` boxes in each image, images side by side."""
    x, y = rng.uniform(80, side - 80, (2, n_images, count))
    x = x + np.arange(n_images)[:, None] * 2 * side
    return np.stack(
        [x, y, *rng.uniform(40, 160, (2, n_images, count))], axis=-1
    ).reshape(-1, 4)


def simulate_detector(rng):
    """Best IoU, the object it is reached with, and the logit, for each detection."""
    objects, empty = (
        random_boxes(rng, objects_per_image),
        random_boxes(rng, false_boxes_per_image),
    )
    error = rng.uniform(0.02, 0.35, 2 * len(objects))
    shift = error[:, None] * rng.normal(size=(len(error), 4)) * [1, 1, 0.5, 0.5]
    seen = np.tile(objects, (2, 1))
    found = np.concatenate([seen + shift * seen[:, [2, 3, 2, 3]], empty])
    logits = np.concatenate(
        [rng.normal(5 - 30 * error, 3), rng.normal(-6, 3, len(empty))]
    )
    best, owner = box_iou(corners(found), corners(objects)).max(dim=1)
    return best.numpy(), owner.numpy(), logits

# %% [markdown]
# The average precision (AP) of the PASCAL VOC challenge {cite:p}`everingham2010` walks down the detections by score. A detection is true if its best object overlaps by an IoU of at least {glue:text}`what-temperature-does/overlap:.1f` and is not yet taken. We interpolate the precision at every recall level (the challenge first used eleven levels, later all).

# %%
def walk(scores, best, owner):
    """Order by descending score, and which detections are true in that order."""
    order = np.argsort(-scores, kind="stable")
    able = np.flatnonzero(best[order] >= overlap)
    true = np.zeros(len(order), dtype=bool)
    true[able[np.unique(owner[order][able], return_index=True)[1]]] = True
    return order, true


def average_precision(true, n_objects):
    precision = np.cumsum(true) / np.arange(1, len(true) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return envelope[true].sum() / n_objects


# %% [markdown]
# The temperature comes from one set of images, by the NLL of "true detection" with the two logits $(0, z)$; a second set of the same size judges.

# %%
rng = np.random.default_rng(seed)
n_objects = n_images * objects_per_image
best, owner, z_box = simulate_detector(rng)
order, true = walk(z_box, best, owner)
detector = fit_temperature(np.column_stack([0 * z_box, z_box])[order], true.astype(int))

best, owner, z_box = simulate_detector(rng)
ap, passed, ap_cut, orders = {}, {}, {}, {}
for t in (1.0, detector.temperature):
    scores = 1 / (1 + np.exp(-z_box / t))
    keep = scores >= threshold
    orders[t], true = walk(scores, best, owner)
    ap[t], passed[t] = average_precision(true, n_objects), int(keep.sum())
    ap_cut[t] = average_precision(
        walk(scores[keep], best[keep], owner[keep])[1], n_objects
    )

# %% tags=["hide-input"]
T_box = detector.temperature
saturated = torch.tensor(z_box / 0.1, dtype=torch.float32).sigmoid().numpy()
record(
    RUN, n_images=n_images, objects_per_image=objects_per_image, false_boxes_per_image=false_boxes_per_image, overlap=overlap, threshold=threshold,
    n_objects=n_objects, n_boxes=len(z_box), detector_temperature=T_box, detector_rank_changes=int((orders[1.0] != orders[T_box]).sum()),
    ap_t1=ap[1.0], ap_fitted=ap[T_box], ap_difference=ap[T_box] - ap[1.0], passed_t1=passed[1.0], passed_fitted=passed[T_box],
    ap_cut_t1=ap_cut[1.0], ap_cut_fitted=ap_cut[T_box], saturated=int((saturated == 1).sum()),
)  # fmt: skip
rows = [[f"{t:.3f}", repr(float(ap[t])), f"{passed[t]:,}", f"{ap_cut[t]:.4f}"] for t in ap]
table("rrrr", ["T", "AP, all boxes (every digit)", f"Boxes with score ≥ {threshold}", "AP of those boxes"], rows)

# %% [markdown]
# The fitted temperature is {glue:text}`what-temperature-does/detector_temperature:.2f`. Of {glue:text}`what-temperature-does/n_boxes:,d` boxes in the second set, {glue:text}`what-temperature-does/detector_rank_changes:d` change their rank, and the AP at both temperatures differs by {glue:text}`what-temperature-does/ap_difference:.1f`: not one digit moves. The number of boxes that pass {glue:text}`what-temperature-does/threshold:.2f` goes from {glue:text}`what-temperature-does/passed_t1:,d` to {glue:text}`what-temperature-does/passed_fitted:,d`.
#
# The order of the steps matters. If the boxes are cut at the threshold *before* the AP is computed, the AP depends on $T$: {glue:text}`what-temperature-does/ap_cut_t1:.4f` at $T = 1$ and {glue:text}`what-temperature-does/ap_cut_fitted:.4f` at the fitted temperature, because the cut ends the precision-recall curve at another place ({numref}`fig-detector`). A threshold that was tuned at $T = 1$ has to be set anew, at $\sigma(\mathrm{logit}(c)/T)$, to keep the same boxes.
#
# Two limits of the statement. Separate temperatures per class keep the AP of each class, but no longer the order between classes. And "no rank changes" holds for real numbers: in single precision at $T = 0.1$, {glue:text}`what-temperature-does/saturated:,d` of these scores round to exactly one and become ties. Rank by the logits.

# %% tags=["hide-input"]
fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6))
cuts = {1.0: COLOURS["t1"], T_box: COLOURS["fitted"]}
passes_at = {t: t * np.log(threshold / (1 - threshold)) for t in cuts}
found = np.cumsum(true)
precision, recall = found / np.arange(1, len(true) + 1), found / n_objects
left.plot(recall, precision, color=COLOURS["neutral"], linewidth=1.5)
z_line = np.linspace(-8, 8, 200)
for t, colour in cuts.items():
    end = passed[t] - 1
    left.plot(recall[end], precision[end], "o", color=colour, markersize=7)
    label(left, f"cut at T = {t:.3g}", (recall[end], precision[end]), (-8, -6), colour)
    right.plot(z_line, 1 / (1 + np.exp(-z_line / t)), color=colour)
    steeper = t == min(cuts)
    label(right, f"T = {t:.3g}", (t * np.log(3), 0.75), (-8, 6) if steeper else (8, -6), colour)
    right.plot([passes_at[t]] * 2, [0, threshold], color=colour, linestyle=":", linewidth=1.5)
right.axhline(threshold, color=COLOURS["neutral"], linewidth=1)
label(right, f"threshold {threshold}", (8, threshold) if threshold < 0.5 else (-8, threshold), (-0.1 if threshold < 0.5 else 0.1, 2))
left.set(xlim=(0, 1), ylim=(0, 1.04), xlabel="recall", ylabel="precision", title="One ranking, two cuts")
right.set(ylim=(0, 1.06), xlabel="logit z", ylabel="score", title="Score over logit")
show(
    fig, name="fig-detector",
    caption=f"A simulated detector on {n_images} images with {n_objects:,} objects and {len(z_box):,} boxes. Left: the precision-recall curve, the same at both temperatures, and where the cut at score {threshold} ends it. Right: the score over the logit; dotted: the logit at which a box passes.",
    alt=f"Left: one precision-recall curve; the cut lies at recall {recall[passed[1.0] - 1]:.2f} for T = 1 and at {recall[passed[T_box] - 1]:.2f} for T = {T_box:.2f}. Right: two sigmoids; a score of {threshold} is reached at a logit of {passes_at[1.0]:.2f} at T = 1 and of {passes_at[T_box]:.2f} at T = {T_box:.2f}.",
)  # fmt: skip

# %% [markdown]
# ## A language model: temperature as a dial
#
# When a language model writes, the logits of the next token are divided by a sampling temperature. It is set by hand to trade variety against caution; nothing is fitted. A model of a few lines is enough to see it: counts of three successive characters in a short text. The logits are the logarithms of the counts, plus {glue:text}`what-temperature-does/smoothing_count:.2f` each.

# %% tags=["hide-input"]
text = (
    "a forecast is a promise about how often. when the station says that rain will fall with a chance of seven in ten, it should rain on seven of ten such days. "
    "a station that says nine in ten and sees rain on six of ten is too sure of itself. a station that says six and sees nine is too shy. neither of them is a liar, "
    "and both can be put right without a new look at the sky. it is enough to keep the old forecasts, to count how often the rain came, and to draw the numbers in or out. "
    "the order of the days stays as it was: the wettest day is still the wettest day. only the size of the promise is changed. "
    "the same holds for a network that names the bird in a picture. it may be right in two of three pictures and still speak as if it were right in all of them. "
    "then one number, found on pictures that it has not seen, can tell it to speak more softly. the name of the bird does not change, but the reader knows how far to trust it. "
    "this is a small repair. it does not help the network to see the bird, and it does not say which of the pictures are the hard ones. "
)  # fmt: skip

# %%
alphabet = sorted(set(text))
codes = np.array([alphabet.index(character) for character in text])
split = len(codes) * 4 // 5
counts = np.full((len(alphabet),) * 3, smoothing_count)
np.add.at(counts, (codes[: split - 2], codes[1 : split - 1], codes[2:split]), 1)


def write(t, rng):
    """Sampled characters, mean entropy, share of greedy picks."""
    table = softmax(np.log(counts).reshape(-1, len(alphabet)), t).reshape(counts.shape)
    cumulative = table.cumsum(axis=-1)
    path = list(codes[:2])
    for u in rng.random(n_characters):
        edges = cumulative[path[-2], path[-1]]
        path.append(np.searchsorted(edges, u * edges[-1], side="right"))
    visited = table[path[:-2], path[1:-1]]
    return (
        path[2:],
        entropy(visited).mean(),
        (visited.argmax(axis=1) == path[2:]).mean(),
    )

# %% tags=["hide-input"]
written = {t: write(t, np.random.default_rng(seed)) for t in sampling_temperatures}
held_out = fit_temperature(np.log(counts[codes[split - 2 : -2], codes[split - 1 : -1]]), codes[split:])
low, high = min(written), max(written)
record(
    RUN, smoothing_count=smoothing_count, n_characters=n_characters, n_text=len(codes), n_text_fit=split, n_text_held_out=len(codes) - split,
    sampling_low=low, sampling_high=high, greedy_low=written[low][2], greedy_high=written[high][2], entropy_low=written[low][1], entropy_high=written[high][1],
    text_temperature=held_out.temperature,
)  # fmt: skip
rows = [[f"{t:.1f}", f"{h:.2f}", f"{g:.1%}", "".join(alphabet[k] for k in path[:60]).strip()] for t, (path, h, g) in written.items()]
table("rrrl", ["T", "Mean entropy, nats", "Greedy picks", "The first 60 characters"], rows)

# %% [markdown]
# From $T =$ {glue:text}`what-temperature-does/sampling_low:g` to {glue:text}`what-temperature-does/sampling_high:g`, over {glue:text}`what-temperature-does/n_characters:,d` sampled characters each, the share of picks that are the most probable character goes from {glue:text}`what-temperature-does/greedy_low:.1%` to {glue:text}`what-temperature-does/greedy_high:.1%`, and the mean entropy from {glue:text}`what-temperature-does/entropy_low:.2f` to {glue:text}`what-temperature-does/entropy_high:.2f` nats. Near zero the sampling becomes greedy decoding.
#
# The calibrating temperature is a different number. The counts come from the first {glue:text}`what-temperature-does/n_text_fit:,d` characters; on the last {glue:text}`what-temperature-does/n_text_held_out:d` the NLL is lowest at $T =$ {glue:text}`what-temperature-does/text_temperature:.2f`. A temperature that makes pleasant text need not make honest probabilities, and the reverse.
#
# ## Take-aways
#
# - One fitted number can undo a common factor: $T =$ {glue:text}`what-temperature-does/temperature:.2f` for a true factor of {glue:text}`what-temperature-does/true_temperature:g`, with mean confidence {glue:text}`what-temperature-does/mean_confidence_t1:.3f` before, {glue:text}`what-temperature-does/mean_confidence_fitted:.3f` after, and accuracy {glue:text}`what-temperature-does/accuracy:.3f` throughout.
# - A temperature changes no order within an example. In a detector with sigmoids it changes none at all: AP stays to the last digit, while the boxes above the threshold go from {glue:text}`what-temperature-does/passed_t1:,d` to {glue:text}`what-temperature-does/passed_fitted:,d`.
# - A temperature below 1 makes a language model pick its favourite more often, one above 1 less often; nothing is calibrated by it.
# - A fit at a bound, or a slope below zero, is a finding about the data.
#
# ## Exercises
#
# The folded cell computes the answers.

# %% tags=["hide-cell"]
z_small = 3 * torch.randn(n, n_classes, generator=generator)
y_small = torch.multinomial((z_small / 0.5).softmax(dim=1), 1, generator=generator)[:, 0].numpy()
small = fit_temperature(z_small.numpy(), y_small).temperature
pass_07 = {t: int((1 / (1 + np.exp(-z_box / t)) >= 0.7).sum()) for t in (1.0, 2.0)}
glue(
    small_accuracy=accuracy(z_small.numpy(), y_small), small_t1=softmax(z_small.numpy()).max(1).mean(), small_fitted=softmax(z_small.numpy(), small).max(1).mean(), small_temperature=small,
    pass_07_t1=pass_07[1.0], pass_07_t2=pass_07[2.0],
)  # fmt: skip

# %% [markdown]
# 1. Set `scale` to 3 and `true_temperature` to 0.5. What do you expect for the two mean confidences? Check.
#
#    :::{dropdown} Answer
#    Labels drawn at $T = 0.5$ follow the logits more closely than the softmax at $T = 1$ says: the model is underconfident. On a draw of {glue:text}`what-temperature-does/n:,d` rows
#    the accuracy is {glue:text}`small_accuracy:.3f` and the mean confidence {glue:text}`small_t1:.3f` at $T = 1$; at the fitted temperature, {glue:text}`small_temperature:.3f`, it is
#    {glue:text}`small_fitted:.3f`.
#    :::
#
# 2. For a detector threshold of 0.7, say before you run it whether more or fewer boxes pass at $T > 1$. Change `threshold` and compare.
#
#    :::{dropdown} Answer
#    Fewer: above one half $\log\frac{c}{1-c}$ is positive, so $T > 1$ asks for a larger logit. On the second set of images {glue:text}`pass_07_t1:,d` boxes pass 0.7 at $T = 1$ and
#    {glue:text}`pass_07_t2:,d` at $T = 2$.
#    :::

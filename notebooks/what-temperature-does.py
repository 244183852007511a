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
# What does it change, and what does it leave alone, to divide the logits by one number before the softmax? This section answers on small problems, shows where else the same division occurs, and compares temperature scaling with its relatives.
#
# :::{admonition} Before you start
# - **You will** fit a temperature and see what it repairs; read its limits; follow it into a detector, a language model, distillation and contrastive learning; and compare it with related methods on the same test examples.
# - **You need** softmax, cross-entropy and a little PyTorch.
# - **Time** about 20 minutes to read, seconds to run.
# :::
#
# All data on this page but one short text are simulated from the seed below, so the true answer is often known.

# %% tags=["hide-input"]
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # small problems: threads would only wait for each other

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import brentq
from torchvision.ops import box_iou

from calib import (
    TemperatureScaling,
    accuracy,
    brier,
    entropy,
    fit_temperature,
    nll,
    reliability_table,
    softmax,
    top_label,
)
from calib.affine import AffineScaling
from calib.claims.published import printed
from calib.isotonic import IsotonicCalibration
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
# Networks for distillation and for the relatives
n_blobs = 5  # classes
n_features = 10
spread = 0.7  # standard deviation of the class centres
n_train = 1000
distillation_temperatures = [1.0, 2.0, 4.0, 8.0]  # 1 among them, to compare with
n_transfer = 60  # unlabelled inputs on which a student learns, before one class is removed
n_students = 4  # students per temperature, each with its own transfer inputs
# Contrastive learning
n_pairs = 4000
n_pairs_test = 500
pair_noise = 0.6
batch = 128
steps = 300
initial_temperature = 0.07
max_logit_scale = 100.0
# Relatives
n_calibration = 1000
n_conformal = 1000
n_test = 10000
label_smoothing = 0.1
coverage = 0.9
calibration_sizes = [125, 250, 500, 1000]
n_draws = 3  # calibration sets per size
n_networks = 5  # trained from different starts, for the table of relatives and for conformal sets

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
# With the default parameters this is the set-up of a published experiment, whose printed values stand beside ours. The grid of {glue:text}`what-temperature-does/grid_steps:d` values from {glue:text}`what-temperature-does/grid_low:.1f` to {glue:text}`what-temperature-does/grid_high:.1f` gives $T =$ {glue:text}`what-temperature-does/temperature:.2f`. The continuous optimum, found by Newton's method ({glue:text}`what-temperature-does/iterations:d` evaluations), is {glue:text}`what-temperature-does/temperature_continuous:.4f` with standard error {glue:text}`what-temperature-does/standard_error:.3f`: the true value lies {glue:text}`what-temperature-does/errors_off:.1f` standard errors away. The NLL goes from {glue:text}`what-temperature-does/nll_t1:.3f` to {glue:text}`what-temperature-does/nll_fitted:.3f`.
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
# ## Distillation: temperature on both sides
#
# In distillation {cite:p}`hinton2015` a small network, the student, learns from the probabilities of a teacher. Both softmaxes get the same temperature $T > 1$ in training, so that the teacher's probabilities for the wrong classes, which are tiny at $T = 1$, carry weight. The student is used at $T = 1$.
#
# We use a problem with {glue:text}`what-temperature-does/n_blobs:d` Gaussian classes in {glue:text}`what-temperature-does/n_features:d` dimensions and networks with one hidden layer. Training repeats itself step by step, and so does the error of rounding: in
# single precision another processor gives another network. All networks of this page are trained in double precision, where the difference stays far below what is printed.

# %%
DOUBLE = {"dtype": torch.float64}
centres = np.random.default_rng(seed).normal(scale=spread, size=(n_blobs, n_features))


def draw(size, key):
    """Inputs and labels of a fresh sample."""
    rng = np.random.default_rng([seed, key])
    label = rng.integers(0, n_blobs, size)
    return torch.tensor(
        centres[label] + rng.normal(size=(size, n_features))
    ), torch.tensor(label)


def train(x, target, width, t=1.0, smoothing=0.0, steps=150, start=seed):
    """A network with one hidden layer, trained by full-batch Adam."""
    torch.manual_seed(start)
    first, last = (
        torch.nn.Linear(n_features, width, **DOUBLE),
        torch.nn.Linear(width, n_blobs, **DOUBLE),
    )
    net = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        adam.zero_grad()
        F.cross_entropy(net(x) / t, target, label_smoothing=smoothing).backward()
        adam.step()
    return net.requires_grad_(False)

# %% [markdown]
# How much do the soft targets carry? We leave out one class. Each student sees {glue:text}`what-temperature-does/n_transfer:d` fresh inputs, less those of class 0, and the teacher's softened probabilities for them. It never sees an input of class 0. A student trained on the labels of the same inputs learns only that class 0 does not occur.

# %%
if 1.0 not in distillation_temperatures:
    raise ValueError(
        "distillation_temperatures: expected 1 among them, "
        f"got {distillation_temperatures}"
    )
x_test, y_test = draw(n_test, key=2)
teacher = train(*draw(n_train, key=1), width=64)
results = {t: [] for t in ["hard", *distillation_temperatures]}
for key in range(n_students):
    x, y_student = draw(n_transfer, key=100 + key)
    x, y_student = x[y_student != 0], y_student[y_student != 0]
    for t in results:
        target = y_student if t == "hard" else (teacher(x) / t).softmax(dim=1)
        student = train(x, target, width=16, t=1.0 if t == "hard" else t)
        right = student(x_test).argmax(dim=1) == y_test
        results[t].append(
            [right.double().mean().item(), right[y_test == 0].double().mean().item()]
        )
results = {t: np.array(values) for t, values in results.items()}

# %% [markdown]
# The second matter is size. The gradient of the softened cross-entropy by the student's logits is $(p(T) - q(T))/T$, with $q(T)$ the teacher's and $p(T)$ the student's probabilities, and for large $T$ the difference itself shrinks like $1/T$. Hinton and co-authors therefore multiply this loss by $T^2$ when it is added to a loss on hard labels.

# %%
student_logits, teacher_logits = train(x, y_student, width=16)(x_test), teacher(x_test)
size = {}
for t in [1.0, 4.0, 16.0, 64.0]:
    size[t] = (
        (((student_logits / t).softmax(1) - (teacher_logits / t).softmax(1)) / t)
        .norm(dim=1)
        .mean()
        .item()
    )

# %% tags=["hide-input"]
means = {t: values.mean(axis=0) for t, values in results.items()}
t_best = max(distillation_temperatures, key=lambda t: means[t][0])
record(
    RUN, n_blobs=n_blobs, n_features=n_features, n_transfer=n_transfer, n_students=n_students, teacher_accuracy=accuracy(teacher_logits.numpy(), y_test.numpy()),
    student_hard=means["hard"][0], student_t1=means[1.0][0], student_best=means[t_best][0], student_best_temperature=t_best,
    omitted_hard=means["hard"][1], omitted_t1=means[1.0][1], omitted_best=means[t_best][1],
    students_better=int((results[t_best][:, 0] > results[1.0][:, 0]).sum()),
    gradient_ratio=size[1.0] / size[64.0], gradient_ratio_scaled=size[1.0] / (64.0**2 * size[64.0]), gradient_ratio_last=size[16.0] / size[64.0], gradient_ratio_last_scaled=size[16.0] / size[64.0] / 16,
)  # fmt: skip
table("rrr", ["T", "Gradient, mean norm", "T² times gradient"], [[f"{t:g}", f"{g:.5f}", f"{t**2 * g:.3f}"] for t, g in size.items()])

# %% [markdown]
# The table gives the mean norm of the gradient over {glue:text}`what-temperature-does/n_test:,d` test inputs. From $T = 16$ to $64$ the plain gradient shrinks by a factor of {glue:text}`what-temperature-does/gradient_ratio_last:.1f`, after multiplication by $T^2$ by {glue:text}`what-temperature-does/gradient_ratio_last_scaled:.2f`: the scaling holds once $T$ is large against the logits.
#
# The teacher is right on {glue:text}`what-temperature-does/teacher_accuracy:.1%` of the test inputs. The students reach on average over {glue:text}`what-temperature-does/n_students:d` transfer samples {glue:text}`what-temperature-does/student_hard:.1%` with hard labels, {glue:text}`what-temperature-does/student_t1:.1%` with soft targets at $T = 1$, and {glue:text}`what-temperature-does/student_best:.1%` at $T =$ {glue:text}`what-temperature-does/student_best_temperature:.0f`, the best of the temperatures tried; there {glue:text}`what-temperature-does/students_better:d` of {glue:text}`what-temperature-does/n_students:d` students beat their twin at $T = 1$. On inputs of the class that no student has seen the three means are {glue:text}`what-temperature-does/omitted_hard:.1%`, {glue:text}`what-temperature-does/omitted_t1:.1%` and {glue:text}`what-temperature-does/omitted_best:.1%` ({numref}`fig-distillation`). The best temperature is picked on the test inputs, so its value is a little too good.

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
positions = range(len(results))
for column, (ax, title) in enumerate(zip(axes, ["All classes", "The class no student saw"])):
    for position, (t, values) in zip(positions, results.items()):
        colour = COLOURS["neutral"] if t == "hard" else COLOURS["t1"] if t == 1 else COLOURS["other"]
        ax.plot(np.full(n_students, position), values[:, column], "o", color=colour, alpha=0.45, markersize=5)
        ax.plot([position - 0.28, position + 0.28], [values[:, column].mean()] * 2, color=colour, linewidth=2.5)
    ax.set_xticks(positions, ["hard", *(f"{t:g}" for t in distillation_temperatures)])
    ax.set(title=title, ylim=(-0.03, 1.03), xlabel="hard labels, or T of soft targets")
axes[0].set_ylabel("accuracy on test inputs")
show(
    fig, name="fig-distillation",
    caption=f"Students trained on at most {n_transfer} inputs without class 0, with labels or with the teacher's softened probabilities. Points: {n_students} students, each with its own inputs; bars: their means. Accuracy on {n_test:,} test inputs (left) and on the {int((y_test == 0).sum()):,} of class 0 (right).",
    alt="Accuracy of students, mean by training target. All classes: " + ", ".join(f"{t if t == 'hard' else f'T = {t:g}'} {m[0]:.2f}" for t, m in means.items()) + ". Unseen class: " + ", ".join(f"{t if t == 'hard' else f'T = {t:g}'} {m[1]:.2f}" for t, m in means.items()) + ".",
)  # fmt: skip

# %% [markdown]
# ## Contrastive learning: temperature as a weight
#
# CLIP {cite:p}`radford2021` embeds images and texts in one space and compares them by the cosine, which lies between $-1$ and $1$. A softmax of values in so narrow a range is almost flat, so the similarities are divided by a temperature. It is learnt with the other weights, as the logarithm of its inverse, starting at 0.07, and the inverse is kept at or below 100.
#
# We take {glue:text}`what-temperature-does/n_pairs:,d` synthetic pairs. Both views are noisy linear pictures of one hidden vector, and each side has a linear encoder. Three runs: the temperature learnt from {glue:text}`what-temperature-does/initial_temperature:g`, learnt from 1, and fixed at 1.

# %%
def make_pairs(size, key, hidden=8, width=32):
    maps = (
        torch.randn(
            2, hidden, width, generator=torch.Generator().manual_seed(seed), **DOUBLE
        )
        / hidden**0.5
    )
    generator = torch.Generator().manual_seed(key)
    shared = torch.randn(size, hidden, generator=generator, **DOUBLE)
    return shared @ maps + pair_noise * torch.randn(
        2, size, width, generator=generator, **DOUBLE
    )


def contrast(views, log_scale, encoders):
    a, b = (F.normalize(encode(view), dim=1) for encode, view in zip(encoders, views))
    cosines = a @ b.T
    similarity = log_scale.exp() * cosines
    pair = torch.arange(len(a))
    loss = (F.cross_entropy(similarity, pair) + F.cross_entropy(similarity.T, pair)) / 2
    return loss, cosines

# %%
def learn(start, learnt):
    torch.manual_seed(seed)
    encoders = [torch.nn.Linear(32, 16, bias=False, **DOUBLE) for _ in range(2)]
    log_scale = torch.tensor(-np.log(start), **DOUBLE, requires_grad=learnt)
    weights = [*encoders[0].parameters(), *encoders[1].parameters()]
    adam = torch.optim.Adam([*weights, log_scale] if learnt else weights, lr=0.01)
    trace = [start]
    for rows in torch.randint(0, n_pairs, (steps, batch)):
        adam.zero_grad()
        contrast(train_pairs[:, rows], log_scale, encoders)[0].backward()
        adam.step()
        log_scale.data.clamp_(max=np.log(max_logit_scale))
        trace.append((-log_scale).exp().item())
    with torch.no_grad():
        _, cosines = contrast(test_pairs, log_scale, encoders)
    return trace, cosines.numpy()


train_pairs, test_pairs = make_pairs(n_pairs, key=1), make_pairs(n_pairs_test, key=2)
runs = {
    name: learn(start, learnt)
    for name, start, learnt in [
        ("clip", initial_temperature, True),
        ("one", 1.0, True),
        ("fixed", 1.0, False),
    ]
}

partner = np.arange(n_pairs_test)
found = {name: accuracy(cosines, partner) for name, (_, cosines) in runs.items()}
at_end = {
    name: nll(cosines, partner, temperature=trace[-1])
    for name, (trace, cosines) in runs.items()
}
refit = {name: fit_temperature(cosines, partner) for name, (_, cosines) in runs.items()}

# %% tags=["hide-input"]
record(
    RUN, n_pairs=n_pairs, steps=steps, batch=batch, initial_temperature=initial_temperature, n_pairs_test=n_pairs_test,
    **{f"contrast_temperature_{k}": trace[-1] for k, (trace, _) in runs.items()}, **{f"contrast_found_{k}": v for k, v in found.items()}, **{f"contrast_nll_{k}": v for k, v in at_end.items()},
    **{f"contrast_refit_{k}": v.temperature for k, v in refit.items()}, **{f"contrast_refit_nll_{k}": v.objective for k, v in refit.items()}, uniform_nll=np.log(n_pairs_test), contrast_error=np.sqrt(found["clip"] * (1 - found["clip"]) / n_pairs_test),
)  # fmt: skip
glue(ranking=(max(found.values()) - min(found.values())) / np.sqrt(2 * found["clip"] * (1 - found["clip"]) / n_pairs_test))
fig, ax = plt.subplots(figsize=(7.2, 3.2))
for (name, (trace, _)), colour, words, (at, offset) in zip(runs.items(), (COLOURS["other"], COLOURS["neutral"], COLOURS["t1"]), (f"learnt from {initial_temperature:g}", "learnt from 1", "fixed at 1"), ((0.4, (0.1, -14)), (0.35, (6, 4)), (0.45, (0.1, -4)))):
    ax.plot(trace, color=colour)
    at = int(at * steps)
    label(ax, f"{words}: {found[name]:.1%} of test pairs found", (at, trace[at]), offset, colour)
ax.axhline(1 / max_logit_scale, color=COLOURS["neutral"], linewidth=1, linestyle=":")
label(ax, "smallest value allowed", (steps, 1 / max_logit_scale), (-0.1, 2))
log_axis(ax.yaxis, [0.01, 0.1, 1])
ax.set(xlabel="training step", ylabel="temperature (log scale)", xlim=(0, steps))
show(
    fig, name="fig-contrast",
    caption=f"The temperature of a contrastive loss during training on {n_pairs:,} synthetic pairs in batches of {batch}. Percentages: test texts found at the first place among {n_pairs_test:,} by their partner.",
    alt=f"Temperature over {steps} steps: from {initial_temperature:g} to {runs['clip'][0][-1]:.3f}, from 1 to {runs['one'][0][-1]:.3f}, and constant at 1. Partners found: {found['clip']:.1%}, {found['one']:.1%}, {found['fixed']:.1%}.",
)  # fmt: skip

# %% [markdown]
# After {glue:text}`what-temperature-does/steps:d` steps of {glue:text}`what-temperature-does/batch:d` pairs the two learnt temperatures are {glue:text}`what-temperature-does/contrast_temperature_clip:.3f` and {glue:text}`what-temperature-does/contrast_temperature_one:.3f`, from starts of {glue:text}`what-temperature-does/initial_temperature:.2f` and 1 ({numref}`fig-contrast`). On {glue:text}`what-temperature-does/n_pairs_test:,d` new pairs they find the right partner for {glue:text}`what-temperature-does/contrast_found_clip:.1%` and {glue:text}`what-temperature-does/contrast_found_one:.1%`; with the temperature fixed at 1 it is {glue:text}`what-temperature-does/contrast_found_fixed:.1%` (standard error of a share about {glue:text}`what-temperature-does/contrast_error:.1%`). The largest and the smallest of the three shares are {glue:text}`ranking:.1f` standard errors of a difference apart. The ranking is one matter, the probabilities are another: the NLL of the partner is {glue:text}`what-temperature-does/contrast_nll_clip:.2f` and {glue:text}`what-temperature-does/contrast_nll_one:.2f` with the learnt temperatures and {glue:text}`what-temperature-does/contrast_nll_fixed:.2f` with the fixed one, where a uniform guess has {glue:text}`what-temperature-does/uniform_nll:.2f`.
#
# Fitting a temperature to the test cosines afterwards, on the frozen encoders, gives {glue:text}`what-temperature-does/contrast_refit_clip:.3f`, {glue:text}`what-temperature-does/contrast_refit_one:.3f` and {glue:text}`what-temperature-does/contrast_refit_fixed:.3f`, with an NLL of {glue:text}`what-temperature-does/contrast_refit_nll_clip:.2f`, {glue:text}`what-temperature-does/contrast_refit_nll_one:.2f` and {glue:text}`what-temperature-does/contrast_refit_nll_fixed:.2f` on the same pairs. A learnt temperature is temperature scaling during training; where the three refitted values are close, one number fitted afterwards does for the run without it what learning did for the others.
#
# ## Relatives of temperature scaling
#
# Back to calibration. We train {glue:text}`what-temperature-does/n_networks:d` networks with one hidden layer, which differ in their start only, on {glue:text}`what-temperature-does/n_train:,d` examples of the Gaussian problem, fit every method on a calibration part of {glue:text}`what-temperature-does/n_calibration:,d` and judge on a test part of {glue:text}`what-temperature-does/n_test:,d`. The three parts are separate draws.
#
# The networks' accuracy is {glue:text}`what-temperature-does/blob_train_accuracy:.1%` on their training examples, with a mean confidence of {glue:text}`what-temperature-does/blob_train_confidence:.3f`. On the test part the accuracy is {glue:text}`what-temperature-does/blob_accuracy:.1%` and the mean confidence {glue:text}`what-temperature-does/blob_confidence:.3f`. Cross-entropy goes on rewarding larger logits on training examples that are already right, and so the confidence on new examples can outrun the accuracy {cite:p}`guo2017`.
#
# - **Platt scaling** {cite:p}`platt1999`: a slope and an intercept before the sigmoid, for two classes. We apply it to the examples of classes 0 and 1, with the two logits.
# - **Vector and matrix scaling** {cite:p}`guo2017`: a weight and a bias per class, or a full matrix and a bias. They are affine maps of the logits before the softmax, as in Dirichlet calibration, which applies them to log-probabilities {cite:p}`kull2019`.
# - **Isotonic regression** {cite:p}`zadrozny2002`: one monotone, piecewise linear map per class, then renormalised.
# - **Label smoothing** {cite:p}`szegedy2016`: a second network for each start, trained with {glue:text}`what-temperature-does/label_smoothing:.1f` of each target spread evenly over the classes. This changes training; temperature scaling changes the output of a trained model.

# %%
x_train, y_train = draw(n_train, key=1)
x_cal, y_cal = draw(n_calibration, key=3)
y_cal, y_hold = y_cal.numpy(), y_test.numpy()
pair_cal, pair_test = y_cal < 2, y_hold < 2
methods = {
    "temperature": TemperatureScaling,
    "vector": lambda: AffineScaling("vector"),
    "matrix": lambda: AffineScaling("matrix"),
    "isotonic": IsotonicCalibration,
}
two_class_methods = {
    "two_temperature": TemperatureScaling,
    "two_platt": lambda: AffineScaling("platt"),
}


def fit_relatives(start):
    """Logits, fitted methods and their outputs, for one network."""
    plain = train(x_train, y_train, width=64, start=start)
    smoothed = train(x_train, y_train, width=64, smoothing=label_smoothing, start=start)
    (z_cal, z_test), (s_cal, s_test) = (
        [net(x).numpy() for x in (x_cal, x_test)] for net in (plain, smoothed)
    )
    fitted = {name: method().fit(z_cal, y_cal) for name, method in methods.items()}
    fitted["smoothing_temperature"] = TemperatureScaling().fit(s_cal, y_cal)
    outputs = {"none": softmax(z_test)} | {
        name: fitted[name].predict_proba(z_test) for name in methods
    }
    outputs |= {
        "smoothing": softmax(s_test),
        "smoothing_temperature": fitted["smoothing_temperature"].predict_proba(s_test),
    }
    two_cal, two_test = z_cal[pair_cal][:, :2], z_test[pair_test][:, :2]
    pairs = {
        name: method().fit(two_cal, y_cal[pair_cal]).predict_proba(two_test)
        for name, method in two_class_methods.items()
    }
    return (
        plain,
        z_cal,
        z_test,
        fitted,
        outputs,
        {"two_none": softmax(two_test)} | pairs,
    )


networks = [fit_relatives(seed + k) for k in range(n_networks)]

# %% tags=["hide-input"]
def judge(p, label, base):
    """NLL, Brier, ECE and changed predictions of one output."""
    return nll(np.log(p), label), brier(p, label), reliability_table(*top_label(p, label), bins=n_bins).ece, int((p.argmax(1) != base.argmax(1)).sum())


def describe(network):
    """Every number of one network that the page tells, by name."""
    plain, _, z_test, fitted, outputs, pairs = network
    scores = {k: judge(p, y_hold, outputs["none"]) for k, p in outputs.items()} | {k: judge(p, y_hold[pair_test], pairs["two_none"]) for k, p in pairs.items()}
    confidence, correct = top_label(softmax(plain(x_train).numpy()), y_train.numpy())
    return {
        "blob_train_accuracy": correct.mean(), "blob_train_confidence": confidence.mean(), "blob_accuracy": accuracy(z_test, y_hold), "blob_confidence": outputs["none"].max(1).mean(),
        "blob_temperature": fitted["temperature"].temperature_, "smoothing_fitted_temperature": fitted["smoothing_temperature"].temperature_,
        "smoothing_accuracy": accuracy(outputs["smoothing"], y_hold), "smoothing_confidence": outputs["smoothing"].max(1).mean(),
        "isotonic_levels": sum(len(np.unique(m.y_thresholds_)) for m in fitted["isotonic"].maps_), "isotonic_zeros": (outputs["isotonic"][np.arange(n_test), y_hold] < 1e-6).sum(),
        **{f"{k}_accuracy": accuracy(outputs[k], y_hold) for k in ("vector", "matrix", "isotonic")},
        **{f"{k}_{score}": v for k, values in scores.items() for score, v in zip(("nll", "brier", "ece", "changed"), values)},
    }  # fmt: skip


described = [describe(network) for network in networks]
means = {name: np.mean([one[name] for one in described]) for name in described[0]}
deviations = {f"{name}_sd": np.std([one[name] for one in described]) for name in described[0]}
better = {f"{k}_beats_temperature": sum(one[f"{k}_nll"] < one["temperature_nll"] for one in described) for k in ("vector", "matrix", "isotonic")}
record(
    RUN, n_train=n_train, n_calibration=n_calibration, n_test=n_test, n_networks=n_networks, label_smoothing=label_smoothing, n_two_calibration=int(pair_cal.sum()), n_two_test=int(pair_test.sum()),
    **means, **deviations, **better,
)  # fmt: skip
words = {
    "none": ("none (T = 1)", "nothing", 0), "temperature": ("temperature", "common scale of the logits", 1),
    "vector": ("vector", "scale and offset per class", 2 * n_blobs), "matrix": ("matrix", "any affine map of the logits", n_blobs * (n_blobs + 1)),
    "isotonic": ("isotonic", "a monotone map per class", f"{means['isotonic_levels']:.0f} levels"), "smoothing": ("label smoothing", "the training", "0, ε by hand"),
    "smoothing_temperature": ("label smoothing, then temperature", "training and scale", 1),
    "two_none": ("*two classes:* none", "nothing", 0), "two_temperature": ("*two classes:* temperature", "slope", 1), "two_platt": ("*two classes:* Platt", "slope and intercept", 2),
}  # fmt: skip
rows = [[*cells, *(f"{means[f'{k}_{score}']:.3f} ({deviations[f'{k}_{score}_sd']:.3f})" for score in ("nll", "brier", "ece")), f"{means[f'{k}_changed']:,.0f}"] for k, cells in words.items()]
table("llrrrrr", ["Method", "What it changes", "Free parameters", "NLL", "Brier", "ECE", "Argmax changed"], rows)

# %% [markdown]
# Means over {glue:text}`what-temperature-does/n_networks:d` networks trained from different starts on the same examples, in brackets their standard deviation. Test part: {glue:text}`what-temperature-does/n_test:,d` examples; for the two-class rows the {glue:text}`what-temperature-does/n_two_test:,d` of classes 0 and 1, with {glue:text}`what-temperature-does/n_two_calibration:d` in the calibration part. ECE over {glue:text}`what-temperature-does/n_bins:d` equal-width bins. "Argmax changed" counts predictions that differ from those of the plain network. The sentences below speak of these means.
#
# One number, $T =$ {glue:text}`what-temperature-does/blob_temperature:.2f`, takes the NLL from {glue:text}`what-temperature-does/none_nll:.3f` to {glue:text}`what-temperature-does/temperature_nll:.3f` and changes {glue:text}`what-temperature-does/temperature_changed:,.0f` predictions. Vector and matrix scaling change {glue:text}`what-temperature-does/vector_changed:,.0f` and {glue:text}`what-temperature-does/matrix_changed:,.0f`, isotonic regression {glue:text}`what-temperature-does/isotonic_changed:,.0f`; the accuracy is then {glue:text}`what-temperature-does/vector_accuracy:.1%`, {glue:text}`what-temperature-does/matrix_accuracy:.1%` and {glue:text}`what-temperature-does/isotonic_accuracy:.1%`, from {glue:text}`what-temperature-does/blob_accuracy:.1%`. Isotonic regression gives the label of {glue:text}`what-temperature-does/isotonic_zeros:,.0f` test examples a probability that is zero but for the floor of the implementation; the NLL punishes that, the bounded Brier score hardly does.
#
# Label smoothing gives other networks, with a mean confidence of {glue:text}`what-temperature-does/smoothing_confidence:.3f` at an accuracy of {glue:text}`what-temperature-does/smoothing_accuracy:.1%`; the temperature fitted to them is {glue:text}`what-temperature-does/smoothing_fitted_temperature:.2f`. A value below one means that a smoothed network is underconfident, a value above one the opposite.
#
# A full matrix can mend more than the scale of the logits: here it reaches an NLL of {glue:text}`what-temperature-does/matrix_nll:.3f`, lower than a temperature on {glue:text}`what-temperature-does/matrix_beats_temperature:d` of {glue:text}`what-temperature-does/n_networks:d` networks. On the networks of {cite:t}`guo2017` one parameter was mostly enough. More parameters also need more data. {numref}`fig-relatives` fits the maps to the first network on calibration sets of growing size.

# %%
plain, z_cal, z_test, fitted, *_ = networks[0]
x_pool, y_pool = draw(max(calibration_sizes) * n_draws, key=4)
z_pool, y_pool = plain(x_pool).numpy(), y_pool.numpy()
growth = {
    name: np.zeros((len(calibration_sizes), n_draws))
    for name in ("temperature", "vector", "matrix")
}
for i, count in enumerate(calibration_sizes):
    for j in range(n_draws):
        rows = slice(j * max(calibration_sizes), j * max(calibration_sizes) + count)
        for name in growth:
            method = (
                TemperatureScaling() if name == "temperature" else AffineScaling(name)
            )
            growth[name][i, j] = nll(
                np.log(method.fit(z_pool[rows], y_pool[rows]).predict_proba(z_test)),
                y_hold,
            )

# %% tags=["hide-input"]
average = {name: values.mean(axis=1) for name, values in growth.items()}
record(RUN, size_low=min(calibration_sizes), size_high=max(calibration_sizes), n_draws=n_draws, **{f"{k}_{end}": v[i] for k, v in average.items() for end, i in (("few", 0), ("many", -1))})
fig, ax = plt.subplots(figsize=(7.2, 3.4))
for (name, values), colour, shift in zip(growth.items(), (COLOURS["fitted"], COLOURS["neutral"], COLOURS["other"]), (0.96, 1, 1.04)):
    x = np.array(calibration_sizes) * shift
    ax.plot(x, average[name], color=colour)
    ax.plot(x, values, "o", color=colour, markersize=4, alpha=0.5)
    label(ax, name, (min(calibration_sizes) * 0.95, average[name][0]), (-8, 0), colour)
log_axis(ax.xaxis, calibration_sizes)
ax.set(xlim=(min(calibration_sizes) * 0.62, max(calibration_sizes) * 1.12), xlabel="examples in the calibration set (log scale)", ylabel="NLL on the test part")
show(
    fig, name="fig-relatives",
    caption=f"NLL of the first network on {n_test:,} test examples after fitting on calibration sets of growing size. Points: {n_draws} separate calibration sets per size, moved sideways a little for legibility; lines: their means.",
    alt="Mean test NLL from the smallest to the largest calibration set: " + "; ".join(f"{k} {v[0]:.3f} to {v[-1]:.3f}" for k, v in average.items()) + ".",
)  # fmt: skip

# %% [markdown]
# With {glue:text}`what-temperature-does/size_low:d` examples the mean NLL of the first network over {glue:text}`what-temperature-does/n_draws:d` calibration sets is {glue:text}`what-temperature-does/temperature_few:.3f` for temperature, {glue:text}`what-temperature-does/vector_few:.3f` for vector and {glue:text}`what-temperature-does/matrix_few:.3f` for matrix scaling. With {glue:text}`what-temperature-does/size_high:,d` it is {glue:text}`what-temperature-does/temperature_many:.3f`, {glue:text}`what-temperature-does/vector_many:.3f` and {glue:text}`what-temperature-does/matrix_many:.3f`.
#
# ## Conformal prediction: sets instead of probabilities
#
# Split conformal prediction {cite:p}`angelopoulos2023` returns a set of classes. On {glue:text}`what-temperature-does/n_conformal:,d` further examples, separate from those that fitted $T$, it takes the score $1 - p_{\text{label}}$ and its quantile; a set then holds every class whose score is at most that quantile. If the examples are exchangeable, the set contains the label with a probability of at least the level asked for, here {glue:text}`what-temperature-does/coverage:.0%`, whatever the model. The promise is an average over draws of the conformal part and over examples, not one for each example or class.

# %%
x_conformal, y_conformal = draw(n_conformal, key=5)
y_conformal = y_conformal.numpy()


def conformal_sets(network, t):
    """Which classes are in the set of each test example, at one temperature."""
    plain, _, z_test, *_ = network
    scores = np.sort(
        1 - softmax(plain(x_conformal).numpy(), t)[np.arange(n_conformal), y_conformal]
    )
    quantile = scores[int(np.ceil((n_conformal + 1) * coverage)) - 1]
    return 1 - softmax(z_test, t) <= quantile


sets = {
    "t1": [conformal_sets(network, 1.0) for network in networks],
    "fitted": [
        conformal_sets(network, network[3]["temperature"].temperature_)
        for network in networks
    ],
}

# %% tags=["hide-input"]
found = {
    k: np.array([[s[np.arange(n_test), y_hold].mean(), s.sum(1).mean(), (s.sum(1) == 0).mean(), (s.sum(1) > 1).mean()] for s in of_networks])
    for k, of_networks in sets.items()
}  # fmt: skip
names = ("coverage", "set_size", "empty", "several")
record(
    RUN, n_conformal=n_conformal, coverage=coverage, coverage_error=np.sqrt(coverage * (1 - coverage) * (1 / n_conformal + 1 / n_test)),
    **{f"{name}_{k}": v for k, values in found.items() for name, v in zip(names, values.mean(axis=0))},
    **{f"{name}_{k}_sd": v for k, values in found.items() for name, v in zip(names, values.std(axis=0))},
    sets_larger=int((found["fitted"][:, 1] > found["t1"][:, 1]).sum()),
)  # fmt: skip
rows = [[{"t1": "T = 1", "fitted": "fitted T"}[k], *(f"{m:.3f} ({d:.3f})" for m, d in zip(values.mean(axis=0), values.std(axis=0)))] for k, values in found.items()]
table("lrrrr", ["Probabilities at", "Coverage", "Mean set size", "Empty sets", "Sets with several classes"], rows)

# %% [markdown]
# Means over the {glue:text}`what-temperature-does/n_networks:d` networks, in brackets their standard deviation. On the {glue:text}`what-temperature-does/n_test:,d` test examples the coverage is {glue:text}`what-temperature-does/coverage_t1:.1%` at $T = 1$ and {glue:text}`what-temperature-does/coverage_fitted:.1%` at the fitted temperature. Conformal and test parts of these sizes let it scatter around {glue:text}`what-temperature-does/coverage:.0%` with a standard deviation of about {glue:text}`what-temperature-does/coverage_error:.2%`. The mean set size is {glue:text}`what-temperature-does/set_size_t1:.3f` before and {glue:text}`what-temperature-does/set_size_fitted:.3f` after temperature scaling; it grows on {glue:text}`what-temperature-does/sets_larger:d` of the networks. The promise does not need calibrated probabilities; the size of the sets depends on how the scores compare *between* examples, which a temperature does change.
#
# ## Take-aways
#
# - One fitted number can undo a common factor: $T =$ {glue:text}`what-temperature-does/temperature:.2f` for a true factor of {glue:text}`what-temperature-does/true_temperature:g`, with mean confidence {glue:text}`what-temperature-does/mean_confidence_t1:.3f` before, {glue:text}`what-temperature-does/mean_confidence_fitted:.3f` after, and accuracy {glue:text}`what-temperature-does/accuracy:.3f` throughout.
# - A temperature changes no order within an example. In a detector with sigmoids it changes none at all: AP stays to the last digit, while the boxes above the threshold go from {glue:text}`what-temperature-does/passed_t1:,d` to {glue:text}`what-temperature-does/passed_fitted:,d`.
# - The same division has different roles: fitted for calibration, set by hand for sampling, used on both sides in distillation, learnt as a weight in contrastive training. The values are not exchangeable.
# - On one test set of {glue:text}`what-temperature-does/n_test:,d` and as a mean over {glue:text}`what-temperature-does/n_networks:d` networks, temperature, vector, matrix and isotonic scaling reach an NLL of {glue:text}`what-temperature-does/temperature_nll:.3f`, {glue:text}`what-temperature-does/vector_nll:.3f`, {glue:text}`what-temperature-does/matrix_nll:.3f` and {glue:text}`what-temperature-does/isotonic_nll:.3f`, from {glue:text}`what-temperature-does/none_nll:.3f` without any.
# - Conformal sets keep their coverage with or without calibrated probabilities; it is a statement about sets on average, not about one probability.
#
# ## Exercises
#
# The folded cell computes the answers.

# %% tags=["hide-cell"]
def test_nll(method, fit_on, judge_on):
    """NLL of a method fitted on one pair of logits and labels and judged on another."""
    return nll(np.log(method.fit(*fit_on).predict_proba(judge_on[0])), judge_on[1])


def three_times(size, key):
    """A fresh sample in which class 0 comes three times as often."""
    x, y = draw(3 * size, key)
    kept = (y == 0).numpy() | (np.random.default_rng(key).random(3 * size) < 1 / 3)
    return plain(x[kept]).numpy(), y[kept].numpy()


shift = np.eye(n_blobs)[0]  # adds 1 to the logits of class 0
often_cal, often_test = three_times(n_calibration, key=6), three_times(n_test, key=7)
kinds = {"temperature": TemperatureScaling, "vector": lambda: AffineScaling("vector"), "matrix": lambda: AffineScaling("matrix")}
for name, kind in kinds.items():
    glue(**{f"shifted_{name}": test_nll(kind(), (z_cal + shift, y_cal), (z_test + shift, y_hold)), f"often_{name}": test_nll(kind(), often_cal, often_test)})

z_small = 3 * torch.randn(n, n_classes, generator=generator)
y_small = torch.multinomial((z_small / 0.5).softmax(dim=1), 1, generator=generator)[:, 0].numpy()
small = fit_temperature(z_small.numpy(), y_small).temperature
pass_07 = {t: int((1 / (1 + np.exp(-z_box / t)) >= 0.7).sum()) for t in (1.0, 2.0)}
glue(
    first_temperature=fitted["temperature"].temperature_, first_nll=test_nll(TemperatureScaling(), (z_cal, y_cal), (z_test, y_hold)),
    shifted_refit=TemperatureScaling().fit(z_cal + shift, y_cal).temperature_, often_none=nll(*often_test),
    small_accuracy=accuracy(z_small.numpy(), y_small), small_t1=softmax(z_small.numpy()).max(1).mean(), small_fitted=softmax(z_small.numpy(), small).max(1).mean(), small_temperature=small,
    pass_07_t1=pass_07[1.0], pass_07_t2=pass_07[2.0],
)  # fmt: skip

# %% [markdown]
# 1. Add a constant to all logits of a row, and a different constant to one column. Which of the two changes the fitted temperature, and which of the methods in the table can undo the second?
#
#    :::{dropdown} Answer
#    The softmax does not see a constant that all logits of a row share, so the first changes nothing. The second favours a class. With 1 added to the logits of class 0
#    of the first network above, the fitted temperature goes from {glue:text}`first_temperature:.3f` to {glue:text}`shifted_refit:.3f` and its NLL from
#    {glue:text}`first_nll:.3f` to {glue:text}`shifted_temperature:.3f`. Vector and matrix scaling have an offset per class and undo the shift exactly: their NLL stays
#    {glue:text}`shifted_vector:.3f` and {glue:text}`shifted_matrix:.3f`.
#    :::
#
# 2. Set `scale` to 3 and `true_temperature` to 0.5. What do you expect for the two mean confidences? Check.
#
#    :::{dropdown} Answer
#    Labels drawn at $T = 0.5$ follow the logits more closely than the softmax at $T = 1$ says: the model is underconfident. On a draw of {glue:text}`what-temperature-does/n:,d` rows
#    the accuracy is {glue:text}`small_accuracy:.3f` and the mean confidence {glue:text}`small_t1:.3f` at $T = 1$; at the fitted temperature, {glue:text}`small_temperature:.3f`, it is
#    {glue:text}`small_fitted:.3f`.
#    :::
#
# 3. For a detector threshold of 0.7, say before you run it whether more or fewer boxes pass at $T > 1$. Change `threshold` and compare.
#
#    :::{dropdown} Answer
#    Fewer: above one half $\log\frac{c}{1-c}$ is positive, so $T > 1$ asks for a larger logit. On the second set of images {glue:text}`pass_07_t1:,d` boxes pass 0.7 at $T = 1$ and
#    {glue:text}`pass_07_t2:,d` at $T = 2$.
#    :::
#
# 4. Draw the calibration and test parts so that one class is three times as frequent as in training. Which rows of the table gain most, and why?
#
#    :::{dropdown} Answer
#    Those with an offset per class. A class that is three times as frequent has odds three times as large, which is $\log 3$ more on its logit: vector and matrix scaling can add it,
#    a temperature cannot. On such a sample the NLL is {glue:text}`often_none:.3f` without scaling, {glue:text}`often_temperature:.3f` with a temperature,
#    {glue:text}`often_vector:.3f` with vector and {glue:text}`often_matrix:.3f` with matrix scaling.
#    :::

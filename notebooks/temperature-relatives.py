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
# # Relatives and uses of temperature
#
# The same division stands in distillation and in contrastive learning, with other aims; and temperature scaling has relatives that can do more. When is more better?
#
# :::{admonition} Before you start
# - **You will** follow a temperature into distillation and contrastive learning, and compare temperature scaling with vector, matrix and isotonic scaling, and with conformal sets, on the same test examples.
# - **You need** [](what-temperature-does.ipynb) and a little PyTorch.
# - **Time** about 10 minutes to read, seconds to run.
# :::
#
# All data on this page are simulated from the seed below, so the true answer is often known.

# %% tags=["hide-input"]
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # small problems: threads would only wait for each other

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from calib import (
    TemperatureScaling,
    accuracy,
    brier,
    fit_temperature,
    nll,
    reliability_table,
    softmax,
    top_label,
)
from calib.affine import AffineScaling
from calib.isotonic import IsotonicCalibration
from calib.pages.record import glue, record
from calib.pages.show import show, table
from calib.plots import COLOURS, label, log_axis

RUN = "what-temperature-does"
plt.style.use("calib.paper")
torch.set_num_threads(1)


# %% tags=["parameters"]
seed = 0
n_bins = 15  # equal-width bins of every ECE
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
glue(n_bins=n_bins)
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
# Means over {glue:text}`what-temperature-does/n_networks:d` networks trained from different starts on the same examples, in brackets their standard deviation. Test part: {glue:text}`what-temperature-does/n_test:,d` examples; for the two-class rows the {glue:text}`what-temperature-does/n_two_test:,d` of classes 0 and 1, with {glue:text}`what-temperature-does/n_two_calibration:d` in the calibration part. ECE over {glue:text}`n_bins:d` equal-width bins. "Argmax changed" counts predictions that differ from those of the plain network. The sentences below speak of these means.
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

glue(
    first_temperature=fitted["temperature"].temperature_, first_nll=test_nll(TemperatureScaling(), (z_cal, y_cal), (z_test, y_hold)),
    shifted_refit=TemperatureScaling().fit(z_cal + shift, y_cal).temperature_, often_none=nll(*often_test),
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
# 2. Draw the calibration and test parts so that one class is three times as frequent as in training. Which rows of the table gain most, and why?
#
#    :::{dropdown} Answer
#    Those with an offset per class. A class that is three times as frequent has odds three times as large, which is $\log 3$ more on its logit: vector and matrix scaling can add it,
#    a temperature cannot. On such a sample the NLL is {glue:text}`often_none:.3f` without scaling, {glue:text}`often_temperature:.3f` with a temperature,
#    {glue:text}`often_vector:.3f` with vector and {glue:text}`often_matrix:.3f` with matrix scaling.
#    :::

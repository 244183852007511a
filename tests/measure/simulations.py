"""Simulate with known truth what `calib` says about uncertainty: `python tests/measure/simulations.py OUT.json`.

Every entry is {"value", "mc_se"}: what was measured, and its Monte Carlo standard error (0 where it is exact).
"""

import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit, stdtrit
from scipy.stats import binom

from calib import ece, fit_temperature, log_softmax, softmax
from calib.intervals import debiased_ece, debiased_squared_ece, mean_difference_interval, temperature_interval
from calib.reliability import assign_bins, wilson_interval
from calib.resampling import bootstrap_ece, bootstrap_indices, bootstrap_mean, interval
from calib.scores import cross_entropy, squared_distance

SEED = 20240613
Z = 1.959963984540054
BINS = 15


def mean(values):
    """Mean of the draws, with its standard error."""
    values = np.asarray(values, dtype=np.float64)
    return {"value": float(values.mean()), "mc_se": float(values.std(ddof=1) / np.sqrt(len(values)))}


def share(hits):
    """Share of the draws; its standard error never is 0, even where all or none hit (Agresti and Coull 1998)."""
    n, hits = len(hits), int(np.sum(hits))
    p = (hits + 2) / (n + 4)
    return {"value": hits / n, "mc_se": float(np.sqrt(p * (1 - p) / (n + 4)))}


def covered(lows, highs, truth):
    """Coverage of intervals."""
    return share((np.asarray(lows) <= truth) & (truth <= np.asarray(highs)))


def law(logits, true=1.5):
    """Logits of the law that draws the labels; without a true temperature, one that none can make of these logits."""
    return 0.7 * np.sign(logits) * np.abs(logits) ** 1.5 if true is None else logits / true


def draw(rng, n, n_classes, true=1.5):
    """Logits, and labels from their law."""
    logits = 3 * rng.normal(size=(n, n_classes))
    return logits, (law(logits, true) + rng.gumbel(size=logits.shape)).argmax(axis=1)


def best_temperature(n_classes, n=400_000):
    """The temperature that is best on the population where there is no true one."""
    logits = 3 * np.random.default_rng(SEED).normal(size=(n, n_classes))
    return fit_temperature(logits, softmax(law(logits, None))).temperature


def hessian_error(logits, beta):
    """Standard error of 1/T as it is usually computed, by a model that is right: for comparison."""
    p = softmax(logits, 1 / beta)
    centred = logits - (p * logits).sum(axis=1, keepdims=True)
    return 1 / np.sqrt((p * centred**2).sum())


def temperature(n_classes, n, true=1.5, draws=3000, recovered=500):
    """Recovery of T, and coverage of its interval."""
    rng = np.random.default_rng([SEED, 1, n_classes, n, int(10 * (true or 0))])
    found = []
    for _ in range(draws):
        logits, labels = draw(rng, n, n_classes, true)
        beta = 1 / fit_temperature(logits, labels).temperature
        try:
            found.append((beta, *temperature_interval(logits, labels), hessian_error(logits, beta)))
        except ValueError:  # the best T of this draw is 0: no interval
            continue
    beta, lows, highs, hessian = np.array(found).T
    truth = best_temperature(n_classes) if true is None else true
    error = (1 / lows - beta) / stdtrit(n - 1, 0.975)
    steps = ((beta - 1 / truth) / error)[:recovered]
    log_half = Z * error / beta
    return {
        "classes": n_classes,
        "n": n,
        "misspecified": true is None,
        "truth": truth,
        "draws": draws,
        "draws_without_interval": draws - len(found),
        "recovered_draws": recovered,
        "mean_error_in_se": mean(steps),
        "sd_error_in_se": {"value": float(steps.std(ddof=1)), "mc_se": float(steps.std() / np.sqrt(2 * recovered))},
        "within_1_se": share(np.abs(steps) <= 1),
        "within_1.96_se": share(np.abs(steps) <= Z),
        "mean_temperature": mean(1 / beta),
        "coverage": covered(lows, highs, truth),
        "interval_below_truth": share(highs < truth),
        "interval_above_truth": share(lows > truth),
        "coverage_log_t": share(np.abs(np.log(beta * truth)) <= log_half),
        "coverage_t": share(np.abs(1 / beta - truth) <= log_half / beta),
        "coverage_hessian": share(np.abs(beta - 1 / truth) <= Z * hessian),
    }


def row_differences(logits, labels, fitted):
    """NLL and Brier score of each row at the fitted temperature, less those at T = 1, (n, 2)."""
    columns = [
        (cross_entropy(log_softmax(logits, t), labels), squared_distance(softmax(logits, t), labels))
        for t in (fitted, 1.0)
    ]
    return np.column_stack([columns[0][i] - columns[1][i] for i in (0, 1)])


def true_differences(n_classes, n):
    """Expected differences as functions of log T, over a huge sample of logits and the law of the labels."""
    logits = 3 * np.random.default_rng([SEED, 2]).normal(size=(n, n_classes))
    q = softmax(law(logits))
    grid = np.linspace(-0.6, 2.0, 40)
    scores = []
    for t in np.exp(grid):
        log_p = log_softmax(logits, t)
        p = np.exp(log_p)
        scores.append([-(q * log_p).sum(axis=1).mean(), ((p - q) ** 2 + q * (1 - q)).sum(axis=1).mean()])
    curve = CubicSpline(grid, scores)
    return lambda fitted: curve(np.log(fitted)) - curve(0.0)


def differences(n_classes, sizes=(50, 256, 1000), n_fit=200, draws=3000, n_truth=300_000):
    """Coverage of the intervals of NLL and Brier differences, T fitted on n_fit rows and held, on n others."""
    truth_at, results = true_differences(n_classes, n_truth), []
    for n in sizes:
        rng = np.random.default_rng([SEED, 3, n_classes, n])
        rows, truth = np.empty((draws, n, 2)), np.empty((draws, 2))
        for i in range(draws):
            fitted = fit_temperature(*draw(rng, n_fit, n_classes)).temperature
            rows[i] = row_differences(*draw(rng, n, n_classes), fitted)
            truth[i] = truth_at(fitted)
        indices = bootstrap_indices(n)
        for j, score in enumerate(("nll", "brier")):
            student = np.array([mean_difference_interval(one, np.zeros(n)) for one in rows[..., j]]).T
            blocks = np.array_split(rows[..., j].T, max(1, draws // 200), axis=1)
            percentile = np.hstack([interval(bootstrap_mean(block, indices)) for block in blocks])
            results.append(
                {
                    "score": score,
                    "classes": n_classes,
                    "n": n,
                    "n_fit": n_fit,
                    "draws": draws,
                    "mean_difference": mean(rows[..., j].mean(axis=1)),
                    "mean_error": mean(rows[..., j].mean(axis=1) - truth[:, j]),
                    "coverage": covered(*student, truth[:, j]),
                    "coverage_bootstrap": covered(*percentile, truth[:, j]),
                }
            )
    return results


def wilson(draws=200_000):
    """Coverage of the Wilson interval: the exact binomial sum, and as simulated."""
    rng, results = np.random.default_rng([SEED, 4]), []
    for n, p in product((10, 30, 100, 1000), (0.5, 0.8, 0.9, 0.95, 0.99)):
        hits = np.arange(n + 1)
        inside = np.logical_and(
            *[f(end, p) for f, end in zip((np.less_equal, np.greater_equal), wilson_interval(hits, n + 0 * hits))]
        )
        exact = binom.pmf(hits[inside], n, p).sum()
        simulated = covered(*wilson_interval(rng.binomial(n, p, draws), np.full(draws, n)), p)
        results.append(
            {
                "n": n,
                "p": p,
                "draws": draws,
                "exact": {"value": float(exact), "mc_se": 0.0},
                "simulated": simulated,
                "difference_in_se": float((simulated["value"] - exact) / simulated["mc_se"]),
            }
        )
    return results


def quantiles(u):
    """Confidences that are spread like those of a good classifier: most are near 1."""
    return (0.02 + 0.97 * u) ** 0.3


def accuracy_at(confidence, calibrated):
    """Probability that a prediction of this confidence is right; miscalibrated: overconfident by a temperature of 1.5."""
    return confidence if calibrated else expit(logit(confidence) / 1.5)


def sample(rng, n, calibrated):
    """Confidences and outcomes."""
    confidence = quantiles(rng.random(n))
    return confidence, rng.random(n) < accuracy_at(confidence, calibrated)


def true_ece(bins, calibrated, size=2_000_000):
    """ECE and its squared relative on the population, by a fine sum over quantiles."""
    confidence = quantiles((np.arange(size) + 0.5) / size)
    members = assign_bins(confidence, np.arange(bins + 1) / bins)
    weight = np.bincount(members, minlength=bins) / size
    gap = np.bincount(members, weights=accuracy_at(confidence, calibrated) - confidence, minlength=bins) / size
    return float(np.abs(gap).sum()), float((gap**2 / np.where(weight > 0, weight, 1)).sum())


def ece_bias(calibrated, plan=((50, 2000), (100, 2000), (250, 2000), (1000, 1000), (5000, 600))):
    """Mean and root mean square error of the plain and the debiased ECE over the number of rows."""
    truth, squared_truth = true_ece(BINS, calibrated)
    results = []
    for n, draws in plan:
        rng = np.random.default_rng([SEED, 5, calibrated, n])
        found = np.empty((draws, 3))
        for i in range(draws):
            data = sample(rng, n, calibrated)
            found[i] = ece(*data, BINS), debiased_ece(*data, BINS, seed=i), debiased_squared_ece(*data, BINS)
        error = found - [truth, truth, squared_truth]
        results.append(
            {
                "calibrated": calibrated,
                "n": n,
                "bins": BINS,
                "draws": draws,
                "truth": truth,
                "truth_squared": squared_truth,
                "bias_plain": mean(error[:, 0]),
                "bias_debiased": mean(error[:, 1]),
                "bias_squared": mean(error[:, 2]),
                "rmse_plain": float(np.sqrt((error[:, 0] ** 2).mean())),
                "rmse_debiased": float(np.sqrt((error[:, 1] ** 2).mean())),
                "debiased_below_zero": share(found[:, 1] < 0),
                "squared_below_zero": share(found[:, 2] < 0),
            }
        )
    return results


def ece_bootstrap(calibrated, n=256, bin_counts=(5, 10, 15, 20), draws=1000):
    """Coverage of percentile bootstrap intervals of the ECE, and of the difference of nested ECEs (20 less 5 bins)."""
    rng = np.random.default_rng([SEED, 6, calibrated])
    indices = bootstrap_indices(n)
    observed, lows, highs = np.empty((3, draws, len(bin_counts) + 1))
    for i in range(draws):
        data = sample(rng, n, calibrated)
        values = [ece(*data, m) for m in bin_counts]
        replicates = bootstrap_ece(*data, bin_counts, indices)
        observed[i] = *values, values[-1] - values[0]
        lows[i], highs[i] = interval(np.column_stack([replicates, replicates[:, -1] - replicates[:, 0]]))
    truths = [true_ece(m, calibrated)[0] for m in bin_counts]
    names = [*(f"ece_{m}" for m in bin_counts), f"ece_{bin_counts[-1]}_minus_{bin_counts[0]}"]
    return [
        {
            "quantity": name,
            "calibrated": calibrated,
            "n": n,
            "draws": draws,
            "truth": truth,
            "coverage": covered(lows[:, j], highs[:, j], truth),
            "interval_above_truth": share(lows[:, j] > truth),
            "mean_observed": mean(observed[:, j]),
            "mean_low": mean(lows[:, j]),
            "mean_high": mean(highs[:, j]),
            "observed_below_interval": share(observed[:, j] < lows[:, j]),
        }
        for j, (name, truth) in enumerate(zip(names, [*truths, truths[-1] - truths[0]]))
    ]


def main(path):
    """Run all on two processes, and write the JSON."""
    start = time.perf_counter()
    jobs = [("differences", differences, (k,)) for k in (10, 2)]
    jobs += [("ece_bootstrap", ece_bootstrap, (calibrated,)) for calibrated in (True, False)]
    jobs += [("ece_bias", ece_bias, (calibrated,)) for calibrated in (True, False)]
    jobs += [("temperature", temperature, (k, n)) for k in (2, 10) for n in (200, 1000)]
    jobs += [("temperature", temperature, (k, n, true)) for k, n, true in ((10, 1000, None), (2, 100, 0.5))]
    jobs += [("wilson", wilson, ())]
    results = {}
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # of each process, read when it starts
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for name, future in [(name, pool.submit(function, *arguments)) for name, function, arguments in jobs]:
            found = future.result()
            results.setdefault(name, []).extend(found if isinstance(found, list) else [found])
    record = {
        "seed": SEED,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "seconds": round(time.perf_counter() - start, 1),
        **dict(sorted(results.items())),
    }
    Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/measure/simulations.py OUT.json")
    main(sys.argv[1])

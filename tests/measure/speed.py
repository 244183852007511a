"""The cost of calib against the installed peers: python tests/measure/speed.py OUT.json [--quick].

Programs run in turn, A B A B, in one process; what counts is the ratio of their medians. `--quick` leaves out the large
workloads. Run it alone on the machine.
"""

import argparse
import json
import math
import multiprocessing
import os
import re
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import peers
from peers import WORKLOADS

from calib import ece, nll, reliability, softmax, tiles, top_label
from calib.resampling import bootstrap_blocks, bootstrap_ece, bootstrap_indices
from calib.sweep import sweep_bins, sweep_temperatures

BINS = 15
NO_CHECKS = {
    "as_probabilities": lambda probabilities: probabilities,
    "as_labels": lambda labels, n, n_classes: labels,
    "as_confidence": lambda confidence: confidence,
    "as_correct": lambda correct, n: correct,
}
FIT_TARGETS = {"W1": 5, "W2": 8, "W3": 25, "W4": 15}  # times the speed of scikit-learn
ECE_TARGETS = {"W1": 1, "W2": 1, "W3": 1.2, "W4": 1}  # times the time of the faster of torchmetrics and NumPy


def alternate(calls, runs, least=0.05):
    """Time calls in turn, in milliseconds, and compare all with the first; quick calls are repeated for `least` seconds."""
    report, loops, times = {}, {}, {name: [] for name in calls}
    for name, call in calls.items():
        value, taken = clock(call)
        if taken < 1e3 * least:
            taken = clock(call)[1]
        loops[name] = max(1, int(1e3 * least / taken))
        report[name] = {"value": value} if isinstance(value, float) else {}
    for _ in range(runs):
        for name, call in calls.items():
            times[name].append(clock(call, loops[name])[1])
    first = next(iter(times.values()))
    for name, taken in times.items():
        report[name] |= {"median": median(taken), "min": min(taken), "max": max(taken), "loops": loops[name]}
        report[name] |= {"ratio": median(taken) / median(first), "ratios": [b / a for a, b in zip(first, taken)]}
    return report


def clock(call, loops=1):
    """Value of a call and the milliseconds it takes."""
    start = time.perf_counter()
    for _ in range(loops):
        value = call()
    return value, 1e3 * (time.perf_counter() - start) / loops


def replaced(module, names, call):
    """The call with some names of a module replaced while it runs."""

    def run():
        before = {name: getattr(module, name) for name in names}
        vars(module).update(names)
        try:
            return call()
        finally:
            vars(module).update(before)

    return run


def bare_pass(logits):
    """The least that a look at all logits costs on one thread: exp and row sum, in tiles."""
    for rows in peers.tiles(*logits.shape):
        np.exp(logits[rows]).sum(axis=1)


def fits(name):
    """Fit by every program; T against a float64 reference."""
    print(f"fit {name}", flush=True)
    large = name in ("W3", "W4")
    logits, labels = peers.workload(*WORKLOADS[name])
    calib = peers.fit_calib(logits, labels)
    votes = peers.softmax(logits, 2.5)  # half what the labels are drawn from, half the label: the fit has to search
    votes *= 0.5
    votes[np.arange(len(labels)), labels] += 0.5
    calls = {
        "calib": calib,
        "calib, one thread": replaced(tiles, {"THREADS": 1}, calib),
        "calib, distributions": peers.fit_calib(logits, votes),
        "bare pass, one thread": lambda: bare_pass(logits),
        "scikit-learn": peers.fit_sklearn(logits, labels),
    }
    report = alternate(calls, 3 if large else 5)
    for peer in ("netcal", "probmetrics") if name != "W3" else ():
        report[peer] = alternate({"calib": calib, peer: peers.fit[peer](logits, labels)}, 1 if large else 5)[peer]
    reference = peers.reference_temperature(logits, labels)
    for program, row in report.items():
        if "value" in row and program != "calib, distributions":
            row["error"] = abs(row["value"] / reference - 1)
    passes = {program: row["median"] / report["bare pass, one thread"]["median"] for program, row in report.items()}
    return {"reference": reference, "programs": report, "passes": passes}


def peak():
    """Largest resident size of this process so far, in MiB (Linux)."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def apart(function, *arguments):
    """Result of a function in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def fit_growth(folder, program):
    """MiB by which a fit raises the peak of a process that holds nothing but its input."""
    logits, labels = np.load(folder / "logits.npy"), np.load(folder / "labels.npy")
    peers.fit[program](*peers.workload(100, 3))()  # imports
    call = peers.fit[program](logits, labels)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = peak()
    call()
    return peak() - before


def memory(name, folder):
    """Growth of memory in a fit, for every type and order."""
    print(f"memory {name}", flush=True)
    logits, labels = peers.workload(*WORKLOADS[name])
    np.save(folder / "labels.npy", labels)
    report = {}
    for dtype in (np.float16, np.float64, np.float32):
        for order in "FC":
            np.save(folder / "logits.npy", logits.astype(dtype, order=order))
            report[f"calib, {np.dtype(dtype)} {order}"] = apart(fit_growth, folder, "calib")
    report["scikit-learn, float32 C"] = apart(fit_growth, folder, "scikit-learn")
    return report


def exact_ece(confidence, correct):
    """ECE in float64, summed exactly; the edges are at the precision of the confidence."""
    edges = (np.arange(BINS + 1) / BINS).astype(confidence.dtype)
    members = np.searchsorted(edges[1:-1], confidence, side="right")
    difference = correct - confidence.astype(np.float64)
    return sum(abs(math.fsum(difference[members == i])) for i in range(BINS)) / len(confidence)


def eces(name):
    """ECE by every program, the checks of calib apart; each against the exact value."""
    print(f"ece {name}", flush=True)
    logits, labels = peers.workload(*WORKLOADS[name])
    probabilities = peers.softmax(logits)
    del logits
    confidence, correct = top_label(probabilities, labels)
    whole = peers.ece_calib(probabilities, labels, BINS)
    calls = {
        "calib": replaced(reliability, NO_CHECKS, whole),
        "numpy": peers.ece_numpy(probabilities, labels, BINS),
        "torchmetrics": peers.ece_torchmetrics(probabilities, labels, BINS, checked=False),
        "calib, checked": whole,
        "torchmetrics, checked": peers.ece_torchmetrics(probabilities, labels, BINS),
        "part: top label": replaced(reliability, NO_CHECKS, lambda: top_label(probabilities, labels)),
        "part: bins and sums": replaced(reliability, NO_CHECKS, lambda: ece(confidence, correct, BINS)),
        "part: checks of probabilities": lambda: reliability.as_probabilities(probabilities),
    }
    report = alternate(calls, 5)
    del report["part: bins and sums"]["value"]
    exact = exact_ece(confidence, correct)
    for row in report.values():
        if "value" in row:
            row["error"] = abs(row["value"] - exact)
    return {"exact": exact, "programs": report}


def sweeps():
    """200 temperatures and 50 numbers of bins in one call, against as many single calls; W2."""
    print("sweeps", flush=True)
    logits, labels = peers.workload(*WORKLOADS["W2"])
    temperatures, bins = np.geomspace(0.25, 25, 200), range(1, 51)
    confidence, correct = top_label(softmax(logits), labels)

    def singly(t):
        return nll(logits, labels, t), ece(*top_label(softmax(logits, t), labels), BINS)

    def of_temperatures():
        found = sweep_temperatures(logits, labels, temperatures, BINS)
        return np.column_stack([found["nll"], found["ece"]])

    pairs = {
        "200 temperatures": (of_temperatures, lambda: [singly(t) for t in temperatures.tolist()]),
        "50 numbers of bins": (
            lambda: sweep_bins(confidence, correct, bins),
            lambda: [ece(confidence, correct, m) for m in bins],
        ),
    }
    report = {}
    for what, (sweep, single) in pairs.items():
        report[what] = alternate({"sweep": sweep, "single calls": single}, 3)
        report[what]["difference"] = float(np.abs(np.subtract(sweep(), single())).max())
    return report


def bootstrap_input(n):
    logits, labels = peers.workload(n, 10)
    return top_label(peers.softmax(logits), labels)


def bootstrap_growth(n):
    """MiB by which 2,000 replicates raise the peak, drawn rows included."""
    confidence, correct = bootstrap_input(n)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    bootstrap_ece(confidence, correct, [5, 10, 15, 20], bootstrap_blocks(n))
    return peak() - before


def bootstraps(n, runs):
    """2,000 replicates of the ECE at four numbers of bins; with kept indices, and drawn block by block."""
    print(f"bootstrap {n}", flush=True)
    confidence, correct = bootstrap_input(n)
    bins = [5, 10, 15, 20]
    calls = {
        "drawn in blocks": lambda: bootstrap_ece(confidence, correct, bins, bootstrap_blocks(n)),
        "drawing alone": lambda: sum(len(block) for block in bootstrap_blocks(n)),
    }
    report = {"MiB": apart(bootstrap_growth, n)}
    if n > 1000:
        return report | alternate(calls, runs)
    indices = bootstrap_indices(n)
    hits = correct - confidence.astype(np.float64)

    def loop():
        members = [np.minimum((confidence * m).astype(int), m - 1) for m in bins]
        return [[np.abs(np.bincount(b[rows], weights=hits[rows])).sum() / n for b in members] for rows in indices]

    kept = {"calib": lambda: bootstrap_ece(confidence, correct, bins, indices), "a loop over replicates": loop}
    report["difference"] = float(np.abs(np.subtract(kept["calib"](), loop())).max())
    return report | alternate(kept | calls, runs)


def linearity(largest, folder):
    """Milliseconds of a fit from 1,000 logits to the largest number, K = 10; the largest is read from a mapped file."""
    print("linearity", flush=True)
    n_classes = 10
    file = np.lib.format.open_memmap(folder / "large.npy", "w+", np.float32, (largest // n_classes, n_classes))
    mapped, labels = peers.workload(*file.shape, logits=file)
    report = {}
    for size in 10 ** np.arange(3, round(math.log10(largest)) + 1):
        n = int(size) // n_classes
        logits = np.array(mapped[:n]) if size < largest else np.load(folder / "large.npy", mmap_mode="r")
        report[f"1e{round(math.log10(size))}"] = alternate({"calib": peers.fit_calib(logits, labels[:n])}, 3)["calib"]
    return report


def targets(report):
    """What was asked for, what came, and whether that will do."""
    rows = []

    def add(what, value, limit, least=False):
        rows.append(
            {"what": what, "value": value, "limit": limit, "met": bool(value >= limit if least else value <= limit)}
        )

    for name, entry in report["fit"].items():
        programs = entry["programs"]
        ratio, alone = programs["scikit-learn"]["ratio"], programs["calib, one thread"]["ratio"]
        add(f"fit {name}: scikit-learn / calib", ratio, FIT_TARGETS[name], least=True)
        add(f"fit {name}: scikit-learn / calib on one thread", ratio / alone, FIT_TARGETS[name] / 2, least=True)
        add(f"fit {name}: distributions / labels", programs["calib, distributions"]["ratio"], 2)
        add(f"fit {name}: error of T", programs["calib"]["error"], 1e-7)
        if name == "W3":
            add("fit W3: bare passes, two threads", entry["passes"]["calib"], 8)
            add("fit W3: bare passes, one thread", entry["passes"]["calib, one thread"], 8)
    for name, entry in report["memory"].items():
        for what, growth in entry.items():
            if what.startswith("calib"):
                add(f"memory {name}: {what}, MiB", growth, 32)
    for name, entry in report["ece"].items():
        programs = entry["programs"]
        best = min(programs[peer]["median"] for peer in ("numpy", "torchmetrics"))
        add(f"ece {name}: calib / best peer", programs["calib"]["median"] / best, ECE_TARGETS[name])
        add(f"ece {name}: error", programs["calib"]["error"], 1e-12)
    for what, entry in report["sweeps"].items():
        add(f"sweep, {what}: single calls / sweep", entry["single calls"]["ratio"], 3, least=True)
        add(f"sweep, {what}: difference", entry["difference"], 1e-12)
    add("bootstrap n = 256, ms", report["bootstrap"]["256"]["calib"]["median"], 10)
    if "100000" in report["bootstrap"]:
        add("bootstrap n = 100,000, ms", report["bootstrap"]["100000"]["drawn in blocks"]["median"], 6000)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--quick", action="store_true", help="without W3, W4, the large bootstrap and 1e8 logits")
    given = parser.parse_args()
    names = ["W1", "W2"] if given.quick else list(WORKLOADS)
    report = {"machine": peers.machine(), "unit": "milliseconds; ratio: to the first program of the group; memory: MiB"}
    with tempfile.TemporaryDirectory() as folder:
        report["fit"] = {name: fits(name) for name in names}
        report["memory"] = {name: memory(name, Path(folder)) for name in ("W3", "W4") if name in names}
        report["ece"] = {name: eces(name) for name in names}
        report["sweeps"] = sweeps()
        report["bootstrap"] = {"256": bootstraps(256, 5)}
        if not given.quick:
            report["bootstrap"]["100000"] = bootstraps(100_000, 3)
        report["linearity"] = linearity(10**6 if given.quick else 10**8, Path(folder))
    report["machine"]["load after"] = os.getloadavg()
    report["targets"] = targets(report)
    given.out.write_text(json.dumps(report, indent=1) + "\n")
    for row in report["targets"]:
        print(f"{'met ' if row['met'] else 'MISS'}  {row['what']}: {row['value']:.3g} (limit {row['limit']})")


if __name__ == "__main__":
    main()

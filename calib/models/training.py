"""What training images and training sentence pairs have in common: device, precision, the loop, the record."""

import logging
import math
import platform
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from calib.models import checkpoint
from calib.pages.provenance import circumstances

LOGGER = logging.getLogger(__name__)
PRECISIONS = ("auto", "bfloat16", "float32")


class OutOfMemory(Exception):
    """The device has not enough memory: says for what, and the ways on."""


def choose_device(name="auto"):
    """Turn "auto", "cpu", "cuda" or another name that torch knows into a device that is there."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"device: expected one that torch can use here, got {name!r} ({' '.join(str(error).split())[:100]}); leave "
            "--device out for the best there is, or give --device cpu"
        ) from error
    torch.backends.cudnn.allow_tf32 = False  # on by default: float32 convolutions with ten bits
    return device


def choose_precision(name, device):
    """Turn "auto" into "bfloat16" where the processor computes with it, else "float32"."""
    if name not in PRECISIONS:
        raise ValueError(f"precision: expected one of {', '.join(PRECISIONS)}, got {name!r}")
    if name != "auto":
        return name
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
    return "bfloat16" if fast else "float32"


def autocast(device, precision):
    """Context in which torch computes in bfloat16 where that is safe, or does not."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


@contextmanager
def memory_explained(what):
    """Turn torch's many ways of saying "out of memory" into one error with the ways on."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        told = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
        if not told:
            raise
        raise OutOfMemory(
            f"out of memory for {what}; what the checkpoint holds is kept. Ways on: a device with more memory; a "
            "smaller model; a smaller --batch-size, which is another recipe and is recorded as such"
        ) from error


def order_of(n, seed, epoch):
    """The order in which an epoch sees n examples: a function of seed and epoch alone."""
    return torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n))


def cosine(optimiser, steps):
    """Learning rate from its start value to 0 along half a cosine, batch by batch."""
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=steps)


def fit(parts, step, n, recipe, path, save_every=None):
    """Train, or go on where the checkpoint stands, to the last epoch.

    Parameters
    ----------
    parts : dict of str to object
        "network", "optimiser" and "schedule".
    step : callable
        ``step(rows)`` computes the loss of a batch, its mean, and how many of its examples are classified correctly.
    n : int
        Examples per epoch.
    recipe : dict
        With epochs, batch_size, seed; see `checkpoint.save`.
    path : path
        The checkpoint, written after each epoch.
    save_every : int, optional
        Batches after which it is written too, for long epochs.

    Returns
    -------
    list of dict
        Per epoch: epoch, loss, accuracy, learning_rate (of its last batch), seconds.
    """
    network, optimiser, schedule = parts["network"], parts["optimiser"], parts["schedule"]
    progress = {"epoch": 0, "batch": 0, "loss": 0.0, "correct": 0, "seconds": 0.0, "history": []}
    if Path(path).exists():
        progress = checkpoint.resume(path, recipe, parts)
    n_batches = -(-n // recipe["batch_size"])
    done = progress["epoch"] * n_batches + progress["batch"]
    bar = tqdm(total=recipe["epochs"] * n_batches, initial=done, unit="batch", disable=None)
    with bar, memory_explained(f"training with batches of {recipe['batch_size']}"):
        network.train()
        for epoch in range(progress["epoch"], recipe["epochs"]):
            bar.set_description(f"epoch {epoch + 1} of {recipe['epochs']}")
            batches = order_of(n, recipe["seed"], epoch).split(recipe["batch_size"])
            loss, correct, started = progress["loss"], progress["correct"], time.monotonic()
            for batch, rows in enumerate(batches[progress["batch"] :], start=progress["batch"] + 1):
                optimiser.zero_grad()
                mean, right = step(rows)
                mean.backward()
                optimiser.step()
                rate = optimiser.param_groups[0]["lr"]
                schedule.step()
                loss, correct = loss + mean.detach().double() * len(rows), correct + right
                bar.update()
                if save_every and batch % save_every == 0 and batch < n_batches:
                    now = time.monotonic()
                    sums = {
                        "loss": _finite(loss, epoch),
                        "correct": int(correct),
                        "seconds": progress["seconds"] + now - started,
                    }
                    progress, started = {**progress, **sums, "epoch": epoch, "batch": batch}, now
                    checkpoint.save(path, recipe, progress, parts)
                    left = progress["seconds"] / batch * (n_batches - batch) / 60
                    LOGGER.info(
                        "batch %d of %d: about %.0f minutes left in epoch %d", batch, n_batches, left, epoch + 1
                    )
            row = {
                "epoch": epoch + 1,
                "loss": _finite(loss, epoch) / n,
                "accuracy": int(correct) / n,
                "learning_rate": rate,
                "seconds": round(progress["seconds"] + time.monotonic() - started, 2),
            }
            history = [*progress["history"], row]
            progress = {"epoch": epoch + 1, "batch": 0, "loss": 0.0, "correct": 0, "seconds": 0.0, "history": history}
            checkpoint.save(path, recipe, progress, parts)
            bar.set_postfix(loss=f"{row['loss']:.3f}", accuracy=f"{row['accuracy']:.3f}")
            left = row["seconds"] * (recipe["epochs"] - epoch - 1) / 60
            LOGGER.info("epoch %(epoch)d: loss %(loss).4f, accuracy %(accuracy).4f, %(seconds).0f s", row)
            LOGGER.info("about %.0f minutes left", left)
    return progress["history"]


def _finite(loss, epoch):
    """The loss as a float; a network that diverged is never saved, so that the checkpoint stands before it."""
    loss = float(loss)
    if not math.isfinite(loss):
        raise ValueError(
            f"loss: expected a finite number, got {loss} in epoch {epoch + 1}; what the checkpoint holds is kept. Ways "
            "on: --precision float32 or another --seed, with another checkpoint; weights to start from that are finite"
        )
    return loss


def run_record(recipe, history, data, results, device):
    """Describe a run for the file beside its predictions.

    Parameters
    ----------
    recipe : dict
    history : list of dict
        As `fit` returns it.
    data : dict of str to str
        Hashes of what was read.
    results : dict
        Counts and accuracies of the predictions, and the seconds that they took.
    device : torch.device
    """
    return {
        "recipe": recipe,
        "recipe_sha256": checkpoint.digest(recipe),
        "data": data,
        "epochs": history,
        "seconds": round(sum(row["seconds"] for row in history), 1),
        **results,
        "hardware": {
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "processor": _processor(),
            "threads": torch.get_num_threads(),
        },
        **circumstances(),
    }


def _processor():
    """Name of the processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

"""Time training ResNet-20 as shipped beside plain loops: python training.py OUT IMAGES.

Run it alone on the machine; it takes five minutes. The plain loops compute in float32, with channels first, as torch does
unless told otherwise, and with channels last; network, images, augmentation, optimiser and batches are the same. All run in
turn; what counts is the median ratio of neighbours.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from torch.nn.functional import cross_entropy

from calib.models import images, resnet, training, vision
from calib.pages import record as results
from calib.pages.provenance import circumstances

MODEL, LIMIT, ROUNDS = "resnet20", 6400, 5
CPU = torch.device("cpu")


def shipped(folder, source):
    """Seconds of the second epoch of `calib train vision`, in a run of two."""
    out = Path(folder) / "run.npz"
    record = vision.train(out, MODEL, epochs=2, images=source, limit=LIMIT)
    out.with_suffix(".pt").unlink()
    return record["epochs"][1]["seconds"]


def plain(pixels, labels, layout):
    """Seconds of an epoch of a plain loop."""
    network = resnet.build(MODEL).to(memory_format=layout).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    started = time.monotonic()
    for rows in training.order_of(len(pixels), 42, 0).split(128):
        optimiser.zero_grad()
        logits = network(prepared(pixels[rows]).contiguous(memory_format=layout))
        cross_entropy(logits, labels[rows]).backward()
        optimiser.step()
    return time.monotonic() - started


def prepared(pixels):
    """What the shipped loop does to a batch of images before the network sees it."""
    return vision.normalise(vision.augment(pixels))


def timed(call):
    """Seconds that a call takes."""
    started = time.monotonic()
    call()
    return time.monotonic() - started


def measure(source):
    """Seconds of an epoch of each loop, and of its preparation of images; seconds for the logits of 10,000 images."""
    data = images.load_images(source, LIMIT)
    rows, _ = vision.split(LIMIT, 42)
    pixels, labels = torch.from_numpy(data.train[rows]), torch.from_numpy(data.train_labels[rows])
    batches = training.order_of(len(rows), 42, 0).split(128)
    times = {"shipped": [], "channels first": [], "channels last": [], "preparation": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            times["shipped"].append(shipped(folder, source))
            times["channels first"].append(plain(pixels, labels, torch.contiguous_format))
            times["channels last"].append(plain(pixels, labels, torch.channels_last))
            times["preparation"].append(timed(lambda: [prepared(pixels[batch]) for batch in batches]))
    ratios = {
        name: median(b / a for a, b in zip(times["shipped"], seconds))
        for name, seconds in times.items()
        if name != "shipped"
    }
    network = resnet.build(MODEL).to(memory_format=torch.channels_last)
    test = images.load_images(source, 10_000).test
    return {
        "model": MODEL,
        "images": source,
        "precision": training.choose_precision("auto", CPU),
        "images_per_second": len(rows) / median(times["shipped"]),
        "times_as_long": ratios,
        "seconds": times,
        "predicted": len(test),
        "predicting_seconds": median(timed(lambda: vision.logits_of(network, test, CPU)) for _ in range(3)),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        **circumstances(),
    }


if __name__ == "__main__":
    results.save(measure(sys.argv[2]), Path(sys.argv[1]))

"""Time training ResNet-20 as shipped beside a plain loop: python training.py OUT IMAGES.

Run it alone on the machine; it takes four minutes. The plain loop computes in float32 with channels first, which is what
torch does unless told otherwise; network, images, augmentation, optimiser and batches are the same. The two run in turn;
what counts is the ratio of their medians.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from torch.nn.functional import cross_entropy

from calib import results
from calib.models import images, resnet, training, vision
from calib.provenance import circumstances

MODEL, LIMIT, ROUNDS = "resnet20", 6400, 5
CPU = torch.device("cpu")


def shipped(folder, source):
    """Seconds of the second epoch of `calib train vision`, and images in it."""
    out = Path(folder) / "run.npz"
    record = vision.train(out, MODEL, epochs=2, images=source, limit=LIMIT)
    out.with_suffix(".pt").unlink()
    return record["epochs"][1]["seconds"], LIMIT - record["validation"]["n"], record["recipe"]["precision"]


def plain(pixels, labels):
    """Seconds of an epoch of a plain loop."""
    network = resnet.build(MODEL).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    started = time.monotonic()
    for rows in training.order_of(len(pixels), 42, 0).split(128):
        optimiser.zero_grad()
        cross_entropy(network(prepare(pixels[rows]).contiguous()), labels[rows]).backward()
        optimiser.step()
    return time.monotonic() - started


def prepare(pixels):
    """What the shipped loop does to a batch of images before the network sees it."""
    return vision.normalise(vision.augment(pixels))


def timed(call):
    """Seconds that a call takes."""
    started = time.monotonic()
    call()
    return time.monotonic() - started


def measure(source):
    """Images per second of both, share of an epoch that goes into preparing images, seconds for 10,000 logits."""
    data = images.load_images(source, LIMIT)
    rows, _ = vision.split(LIMIT, 42)
    pixels, labels = torch.from_numpy(data.train[rows]), torch.from_numpy(data.train_labels[rows])
    times = {"shipped": [], "plain": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            seconds, n, precision = shipped(folder, source)
            times["shipped"].append(seconds)
            times["plain"].append(plain(pixels, labels))
    middle = {name: median(values) for name, values in times.items()}
    loading = median(timed(lambda: [prepare(batch) for batch in pixels.split(128)]) for _ in range(ROUNDS))
    network = resnet.build(MODEL).to(memory_format=torch.channels_last)
    test = images.load_images(source, 10_000).test
    predicting = median(timed(lambda: vision.logits_of(network, test, CPU)) for _ in range(3))
    return {
        "model": MODEL,
        "images": source,
        "precision": precision,
        "images_per_second": {name: n / seconds for name, seconds in middle.items()},
        "ratio": middle["plain"] / middle["shipped"],
        "seconds": times,
        "loading_share": loading / middle["shipped"],
        "predicted": len(test),
        "predicting_seconds": predicting,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        **circumstances(),
    }


if __name__ == "__main__":
    results.save(measure(sys.argv[2]), Path(sys.argv[1]))

"""Train a residual network on CIFAR-10 and write its logits, by the recipe of the gap paper.

Crops from images padded by 4, flips; SGD with learning rate 0.1 along half a cosine to 0, momentum 0.9, weight decay
5e-4, batches of 128. The training images are cut 80 to 20 by seed; the smaller part is the validation set.
"""

import time
from pathlib import Path

import numpy as np

from calib.checks import as_count
from calib.data.cifar10 import CIFAR10_CLASSES
from calib.data.examples import check_output, save_examples
from calib.models.images import load_images
from calib.predictions import Predictions
from calib.scores import accuracy, nll

MEAN = (0.4914, 0.4822, 0.4465)  # of the training images, by channel
STD = (0.2470, 0.2435, 0.2616)
PADDING = 4


def split(n, seed, share=0.8):
    """Cut n training images by seed.

    Returns
    -------
    train, validation : ndarray int64
        Ascending rows, `share` of them for training.
    """
    order = np.random.default_rng(seed).permutation(n)
    cut = round(share * n)
    return np.sort(order[:cut]), np.sort(order[cut:])


def train(
    out,
    model="resnet20",
    seed=42,
    epochs=30,
    batch_size=128,
    images="original",
    precision="auto",
    device="auto",
    limit=None,
    augment_validation=False,
    checkpoint=None,
):
    """Train, or go on where the checkpoint stands, then write logits of the validation and test images.

    Parameters
    ----------
    out : path
        The per-example file to write, ``.npz``, with the run record beside it: see `calib.data.examples`.
    model : str
        See `calib.models.resnet.build`.
    seed : int
        Of the split, the first weights, the order and the augmentation.
    epochs, batch_size : int
    images : {"original", "jpeg"}
        See `calib.models.images.load_images`.
    precision : {"auto", "bfloat16", "float32"}
        Of training; logits are always computed in float32.
    device : str
        "auto", "cpu", "cuda" or another that torch knows.
    limit : int, optional
        Only so many training and test images: to try it out.
    augment_validation : bool
        Crop and flip the validation images too.
    checkpoint : path, optional
        By default `out` with ``.pt``.

    Returns
    -------
    dict
        The run record.
    """
    import torch

    from calib.models import training

    checkpoint = Path(out).with_suffix(".pt") if checkpoint is None else Path(checkpoint)
    check_output(out, checkpoint)
    device = training.choose_device(device)
    recipe = {
        "task": "vision",
        "model": model,
        "seed": as_count(seed, "seed", minimum=0),
        "epochs": as_count(epochs, "epochs"),
        "batch_size": as_count(batch_size, "batch_size"),
        "images": images,
        "precision": training.choose_precision(precision, device),
        "limit": None if limit is None else as_count(limit, "limit", minimum=10),
        "optimiser": "SGD, learning rate 0.1, momentum 0.9, weight decay 5e-4",
        "schedule": "cosine to 0, per batch",
        "augmentation": f"random crop with padding {PADDING}, random flip",
    }
    with torch.random.fork_rng(), training.memory_explained(f"{model} on {device}"):
        data = load_images(images, limit)
        rows, _ = split(len(data.train), seed)
        parts = _parts(recipe, len(rows), device)
        pixels = torch.from_numpy(data.train[rows]).to(device)
        labels = torch.from_numpy(data.train_labels[rows]).to(device)

        def step(batch):
            batch = batch.to(device)
            with training.autocast(device, recipe["precision"]):
                logits = parts["network"](normalise(augment(pixels[batch])))
            logits, target = logits.float(), labels[batch]
            return torch.nn.functional.cross_entropy(logits, target), (logits.argmax(dim=1) == target).sum()

        history = training.fit(parts, step, len(rows), recipe, checkpoint)
        return _write(out, parts["network"], data, recipe, history, device, augment_validation)


def predict(checkpoint, out, device="auto", augment_validation=False):
    """Write the logits of a trained network again, from its checkpoint.

    Parameters
    ----------
    checkpoint, out, device, augment_validation
        As in `train`.

    Returns
    -------
    dict
        The run record.
    """
    import torch

    from calib.models import resnet, training
    from calib.models.checkpoint import read_finished, restore

    check_output(out)
    content = read_finished(checkpoint)
    recipe, history, device = content["recipe"], content["progress"]["history"], training.choose_device(device)
    with torch.random.fork_rng(), training.memory_explained(f"{recipe['model']} on {device}"):
        network = resnet.build(recipe["model"])
        restore(checkpoint, content, network)
        network = network.to(device, memory_format=torch.channels_last)
        data = load_images(recipe["images"], recipe["limit"])
        return _write(out, network, data, recipe, history, device, augment_validation)


def augment(pixels):
    """Crop each image at random after padding it with zeros, and flip half of them.

    Parameters
    ----------
    pixels : uint8 tensor (n, h, w, 3)

    Returns
    -------
    uint8 tensor (n, h, w, 3)
        Drawn with torch's generator on the CPU.
    """
    import torch
    from torch.nn.functional import pad

    n, height, width, _ = pixels.shape
    top, left = torch.randint(0, 2 * PADDING + 1, (2, n, 1))
    columns = torch.arange(width).expand(n, -1)
    columns = torch.where(torch.rand(n, 1) < 0.5, columns.flip(1), columns)
    rows, columns = torch.arange(height) + top, columns + left
    padded = pad(pixels, (0, 0, PADDING, PADDING, PADDING, PADDING))
    device = pixels.device
    which = torch.arange(n, device=device)[:, None, None]
    return padded[which, rows[:, :, None].to(device), columns[:, None, :].to(device)]


def normalise(pixels):
    """Turn uint8 (n, h, w, 3) into the floats (n, 3, h, w) that a network takes, channels last in memory."""
    floats = pixels.float()
    return floats.sub_(floats.new_tensor(MEAN) * 255).div_(floats.new_tensor(STD) * 255).permute(0, 3, 1, 2)


def logits_of(network, pixels, device, batch_size=500):
    """Logits of images, in float32, without augmentation.

    Parameters
    ----------
    network : torch.nn.Module
    pixels : ndarray uint8 (n, h, w, 3)
    device : torch.device
    batch_size : int

    Returns
    -------
    ndarray float32 (n, K)
    """
    import torch

    network.eval()
    with torch.inference_mode():
        batches = torch.from_numpy(pixels).split(batch_size)
        return torch.cat([network(normalise(batch.to(device))).float().cpu() for batch in batches]).numpy()


def _parts(recipe, n, device):
    """Network, optimiser and schedule at their start, drawn from the seed."""
    import torch

    from calib.models import resnet, training

    torch.manual_seed(recipe["seed"])
    network = resnet.build(recipe["model"]).to(device, memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    batches = -(-n // recipe["batch_size"])
    schedule = training.cosine(optimiser, recipe["epochs"] * batches)
    return {"network": network, "optimiser": optimiser, "schedule": schedule}


def _write(out, network, data, recipe, history, device, augment_validation):
    """Predict both sets, write the per-example file and the record beside it."""
    import torch

    from calib.models import training

    started = time.monotonic()
    _, rows = split(len(data.train), recipe["seed"])
    pixels = data.train[rows]
    if augment_validation:
        torch.manual_seed(recipe["seed"])
        pixels = augment(torch.from_numpy(pixels)).numpy()
    sets = {
        "validation": (data.train_ids[rows], pixels, data.train_labels[rows]),
        "test": (data.test_ids, data.test, data.test_labels),
    }
    results, splits = {"images": data.source, "augmented_validation": augment_validation}, {}
    for name, (ids, pixels, labels) in sets.items():
        logits = logits_of(network, pixels, device)
        splits[name] = Predictions(ids, logits, class_names=CIFAR10_CLASSES)
        results[name] = {"n": len(ids), "accuracy": accuracy(logits, labels), "nll": nll(logits, labels)}
    results["seconds_predicting"] = round(time.monotonic() - started, 2)
    record = training.run_record(recipe, history, data.hashes, results, device)
    save_examples(out, splits, record)
    return record

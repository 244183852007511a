"""Fine-tune a classifier of sentence pairs and write its logits on ChaosNLI, by uid: the recipe of the gap paper.

10,000 examples of the data set's own training file, one epoch, AdamW at 2e-5, 128 tokens. Sentences come from the files
that the authors of SNLI and MNLI distribute, which alone carry the ids by which ChaosNLI names its items.
"""

import hashlib
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from calib.checks import as_count
from calib.data.examples import check_output, save_examples
from calib.data.pairs import NLI_CLASSES, read_pairs
from calib.data.sets import set_of
from calib.models import hub, text
from calib.predictions import Predictions
from calib.scores import accuracy, nll


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What decides a fine-tuned network, its training file aside; kept in the checkpoint and in the record.

    Attributes
    ----------
    dataset : {"chaosnli-s", "chaosnli-m"}
    start : str
        The checkpoint to begin with: a folder, or a name on the hub.
    revision : str, optional
        Hash of a commit of `start` on the hub.
    seed : int
        Of the choice of examples, their order, dropout and a new head.
    epochs, examples, batch_size : int
    classes : sequence of str, optional
        Names of the outputs of `start`, where it does not know them; see `calib.models.text.class_order`.
    new_head : bool
        Begin with a new last layer, for a checkpoint that does not classify pairs.
    segments : bool
        See `calib.models.text.encode`.
    precision : {"auto", "bfloat16", "float32"}
        Of training; logits are always computed in float32.
    """

    dataset: str
    start: str
    revision: str | None = None
    seed: int = 42
    epochs: int = 1
    examples: int = 10_000
    batch_size: int = 16
    classes: tuple[str, ...] | None = None
    new_head: bool = False
    segments: bool = True
    precision: str = "auto"

    def __post_init__(self):
        as_count(self.seed, "seed", minimum=0)
        for name in ("epochs", "examples", "batch_size"):
            as_count(getattr(self, name), name)


def train(out, training_file, validation_file, device="auto", checkpoint=None, save_every=50, **recipe):
    """Fine-tune, or go on where the checkpoint stands, then write logits of the validation file and of ChaosNLI.

    Parameters
    ----------
    out : path
        The per-example file to write, ``.npz``, with the run record beside it: see `calib.data.examples`.
    training_file, validation_file : path
        See `calib.data.pairs.read_pairs`.
    device : str
        "auto", "cpu", "cuda" or another that torch knows.
    checkpoint : path, optional
        By default `out` with ``.pt``.
    save_every : int
        Batches after which the checkpoint is written, besides after each epoch.
    **recipe
        Attributes of a `Recipe`.

    Returns
    -------
    dict
        The run record.
    """
    import torch

    from calib.models import training

    recipe = Recipe(**recipe)
    checkpoint = Path(out).with_suffix(".pt") if checkpoint is None else Path(checkpoint)
    device = training.choose_device(device)
    check_output(out, checkpoint)
    pairs, validation = read_pairs(training_file), read_pairs(validation_file, True)
    sets = {"validation": validation, "soft": set_of(recipe.dataset).pairs()}
    folder = hub.fetch_model(recipe.start, recipe.revision)
    chosen = np.sort(np.random.default_rng(recipe.seed).permutation(len(pairs))[: recipe.examples])
    precision = training.choose_precision(recipe.precision, device)
    kept = _as_kept(replace(recipe, examples=len(chosen), precision=precision), folder, pairs)
    with torch.random.fork_rng(), training.memory_explained(f"{recipe.start} on {device}"):
        torch.manual_seed(recipe.seed)
        model, tokenizer, order = classifier = _classifier(folder, kept, device)
        optimiser = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0)
        parts = {"network": model, "optimiser": optimiser, "schedule": schedule}
        targets = torch.from_numpy(order[pairs.labels[chosen]]).to(device)

        def step(rows):
            sentences = pairs.select(chosen[rows.numpy()])
            tokens = text.encode(model, tokenizer, *sentences, padding="longest", segments=recipe.segments)
            with training.autocast(device, precision):
                logits = model(**tokens).logits
            logits, target = logits.float(), targets[rows.to(device)]
            return torch.nn.functional.cross_entropy(logits, target), (logits.argmax(dim=1) == target).sum()

        history = training.fit(parts, step, len(chosen), kept, checkpoint, save_every)
        return _write(out, classifier, sets, kept, history, pairs, [pairs.ids[i] for i in chosen])


def _as_kept(recipe, folder, pairs):
    """The recipe as the checkpoint and the record keep it: with what the code decides, and hashes of the files."""
    return {
        "task": "nli",
        **asdict(recipe),
        "start": str(recipe.start),
        "classes": None if recipe.classes is None else list(recipe.classes),
        "start_sha256": _hashes(folder),
        "training_sha256": pairs.sha256,
        "tokens": text.MAX_TOKENS,
        "optimiser": "AdamW, learning rate 2e-5, weight decay 0.01",
        "schedule": "constant",
    }


def predict(start, out, dataset=None, validation_file=None, classes=None, segments=True, revision=None, device="auto"):
    """Write the logits of a classifier of pairs that is there, without training it.

    Parameters
    ----------
    start : str
        A checkpoint of `train`; or a folder, or a name on the hub.
    dataset : {"chaosnli-s", "chaosnli-m"}, optional
        By default that of a checkpoint of `train`, else "chaosnli-s".
    out, validation_file, classes, segments, revision, device
        As in `train`; a checkpoint has its own classes, segments and revision.

    Returns
    -------
    dict
        The run record.
    """
    import torch

    from calib.models import training
    from calib.models.checkpoint import CheckpointError, is_checkpoint, read_finished, restore

    check_output(out)
    device = training.choose_device(device)
    trained = read_finished(start) if is_checkpoint(start) else None
    if trained and (classes is not None or not segments or revision):
        raise ValueError(
            "classes, segments, revision: expected none of them with a checkpoint, whose recipe has its own; to change "
            "them, train again"
        )
    if trained:
        recipe, history = trained["recipe"], trained["progress"]["history"]
    else:
        recipe = {"task": "nli", "start": str(start), "revision": revision, "segments": segments, "new_head": False}
        recipe |= {"classes": None if classes is None else list(classes), "tokens": text.MAX_TOKENS, "epochs": 0}
        history = []
    folder = hub.fetch_model(recipe["start"], recipe["revision"])
    found, expected = _hashes(folder), recipe.get("start_sha256")
    if trained and found != expected:
        differing = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        raise CheckpointError(
            f"{start}: its training began with other files than are in {folder} now ({', '.join(differing)}); "
            "restore them, since tokens and the order of classes come from there"
        )
    sets = {"soft": set_of(dataset or recipe.get("dataset", "chaosnli-s")).pairs()}
    if validation_file is not None:
        sets = {"validation": read_pairs(validation_file, True), **sets}
    with torch.random.fork_rng(), training.memory_explained(f"{start} on {device}"):
        model, tokenizer, order = _classifier(folder, recipe, device)
        if trained:
            restore(start, trained, model)
        return _write(out, (model, tokenizer, order), sets, {**recipe, "start_sha256": found}, history)


def _hashes(folder):
    """SHA-256 of the files of a checkpoint."""
    return {name: _sha256(folder / name) for name in text.FILES if (folder / name).is_file()}


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _classifier(folder, recipe, device):
    """Model, tokenizer and order of classes at the start of a recipe."""
    model, tokenizer = text.load(folder, new_head=NLI_CLASSES if recipe["new_head"] else None)
    return model.to(device), tokenizer, text.class_order(model, NLI_CLASSES, recipe["classes"])


def _write(out, classifier, sets, recipe, history, pairs=None, trained_on=()):
    """Predict each set, write the per-example file and the record beside it."""
    from calib.models import training

    model, tokenizer, order = classifier
    options = {"batch_size": 32, "progress": True, "padding": "longest", "segments": recipe["segments"]}
    started, results, splits = time.monotonic(), {}, {}
    for name, rows in sets.items():
        logits = text.logits_of(model, tokenizer, rows.premises, rows.hypotheses, **options)[:, order]
        splits[name] = Predictions(rows.ids, logits, class_names=NLI_CLASSES)
        results[name] = {
            "n": len(rows),
            "n_unlabelled": rows.n_unlabelled,
            "n_trained_on": len(set(rows.ids) & set(trained_on)),
            "labels": "old_label of ChaosNLI" if name == "soft" else rows.name,
            "accuracy": accuracy(logits, rows.labels),
            "nll": nll(logits, rows.labels),
        }
    results["seconds_predicting"] = round(time.monotonic() - started, 2)
    files = [*sets.values(), *([] if pairs is None else [pairs])]
    record = training.run_record(recipe, history, {rows.name: rows.sha256 for rows in files}, results, model.device)
    save_examples(out, splits, record)
    return record

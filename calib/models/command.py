"""The commands ``calib train`` and ``calib predict``."""

import logging
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from calib.data.sets import SETS
from calib.models.architectures import NAMES

train = typer.Typer(
    no_args_is_help=True,
    help="Train a model from raw images or sentences and write its logits. Killed, the same command goes on.",
)

Out = Annotated[
    Path,
    typer.Option("--output", "-o", help="file of logits to write, .npz; the record of the run lies beside it, .json"),
]
Model = Literal[NAMES]
Dataset = Literal[tuple(key for key, one in SETS.items() if hasattr(one, "pairs"))]
Seed = Annotated[int, typer.Option(min=0, help="of everything random")]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU where there is one")]
Precision = Annotated[
    Literal["auto", "bfloat16", "float32"], typer.Option(help="auto: bfloat16 where the processor has it")
]
Checkpoint = Annotated[
    Path | None, typer.Option(help="where the state of the training is kept; by default beside the output, .pt")
]
Classes = Annotated[
    str | None,
    typer.Option(help="order of the model's outputs, e.g. contradiction,entailment,neutral, where it does not know it"),
]
Segments = Annotated[bool, typer.Option(help="tell the model which sentence a token belongs to, if it takes that")]
Revision = Annotated[str | None, typer.Option(help="commit of the model on the hub, to pin it")]
DATASET = "whose items are predicted"


def _fail(error):
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(1)


def _told(function, *arguments, **options):
    """Call, and turn what can be expected to go wrong into one line; without a terminal, a line per epoch."""
    from calib.data import DataUnavailable

    if not sys.stderr.isatty():
        logging.basicConfig(format="%(asctime)s %(message)s")
        logging.getLogger("calib").setLevel(logging.INFO)
    from calib.models.checkpoint import CheckpointError
    from calib.models.training import OutOfMemory

    try:
        record = function(*arguments, **options)
    except (DataUnavailable, CheckpointError, OutOfMemory, ValueError, OSError) as error:
        _fail(error)
    except KeyboardInterrupt:
        typer.echo("interrupted; what the checkpoint holds is kept, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    sets = [name for name in ("validation", "test", "soft") if name in record]
    what = "; ".join(f"{name}: n = {record[name]['n']}, accuracy = {record[name]['accuracy']:.4f}" for name in sets)
    typer.echo(f"{options['out']}: {what}")


@train.command()
def vision(
    output: Out,
    model: Annotated[Model, typer.Option(help="resnet8 to resnet32 are for CPUs, the others for GPUs")] = "resnet20",
    seed: Seed = 42,
    epochs: Annotated[int, typer.Option(min=1, help="passes over the training images")] = 30,
    batch_size: Annotated[int, typer.Option(min=2, help="images at a time")] = 128,
    images: Annotated[
        Literal["original", "jpeg"],
        typer.Option(help="the archive, downloaded once; or lossy copies, see `calib data`"),
    ] = "original",
    limit: Annotated[int | None, typer.Option(min=10, help="only so many images, to try it out")] = None,
    augment_validation: Annotated[bool, typer.Option(help="crop and flip the validation images too")] = False,
    precision: Precision = "auto",
    device: Device = "auto",
    checkpoint: Checkpoint = None,
):
    """Train a residual network on CIFAR-10; write its logits on validation and test images.

    To try it: calib train vision --model resnet8 --epochs 1 --limit 1000 -o _build/try.npz
    """
    from calib.models.vision import train

    _told(
        train,
        out=output,
        model=model,
        seed=seed,
        epochs=epochs,
        batch_size=batch_size,
        images=images,
        precision=precision,
        device=device,
        limit=limit,
        augment_validation=augment_validation,
        checkpoint=checkpoint,
    )


@train.command()
def nli(
    output: Out,
    start: Annotated[str, typer.Option(help="model to begin with: a folder, or a name on the Hugging Face hub")],
    training: Annotated[Path, typer.Option(help="training pairs, e.g. snli_1.0_train.jsonl of SNLI 1.0")],
    validation: Annotated[Path, typer.Option(help="validation pairs, e.g. snli_1.0_dev.jsonl")],
    dataset: Annotated[Dataset, typer.Option(help=DATASET)] = "chaosnli-s",
    seed: Seed = 42,
    epochs: Annotated[int, typer.Option(min=1, help="passes over the examples")] = 1,
    examples: Annotated[int, typer.Option(min=1, help="how many training pairs, chosen by seed")] = 10_000,
    batch_size: Annotated[int, typer.Option(min=1, help="pairs at a time")] = 16,
    classes: Classes = None,
    new_head: Annotated[bool, typer.Option(help="the model does not classify pairs yet: give it a new layer")] = False,
    segments: Segments = True,
    revision: Revision = None,
    precision: Precision = "auto",
    device: Device = "auto",
    checkpoint: Checkpoint = None,
):
    """Fine-tune a classifier of sentence pairs; write its logits on validation pairs and on ChaosNLI, by uid."""
    from calib.models.nli import train

    _told(
        train,
        out=output,
        dataset=dataset,
        start=start,
        training_file=training,
        validation_file=validation,
        seed=seed,
        epochs=epochs,
        examples=examples,
        batch_size=batch_size,
        classes=_names(classes),
        new_head=new_head,
        segments=segments,
        revision=revision,
        precision=precision,
        device=device,
        checkpoint=checkpoint,
    )


def _names(classes):
    return [name.strip() for name in classes.split(",")] if classes else None


def predict(
    start: Annotated[
        str, typer.Argument(help="a checkpoint of `calib train`; or a model of pairs: folder or hub name")
    ],
    output: Out,
    dataset: Annotated[
        Dataset | None, typer.Option(help=f"{DATASET}; by default those that the checkpoint is for, else chaosnli-s")
    ] = None,
    validation: Annotated[Path | None, typer.Option(help="validation pairs, e.g. snli_1.0_dev.jsonl")] = None,
    classes: Classes = None,
    segments: Segments = True,
    revision: Revision = None,
    augment_validation: Annotated[bool, typer.Option(help="crop and flip the validation images")] = False,
    device: Device = "auto",
):
    """Write the logits of a model that is already trained. The options of sentence pairs do not matter for images."""
    from calib.models import nli, vision

    if _task(start) == "vision":
        _told(vision.predict, checkpoint=start, out=output, device=device, augment_validation=augment_validation)
    else:
        _told(
            nli.predict,
            start=start,
            out=output,
            dataset=dataset,
            validation_file=validation,
            classes=_names(classes),
            segments=segments,
            revision=revision,
            device=device,
        )


def _task(start):
    """What a checkpoint of ours was trained for; anything else is a model of pairs."""
    from calib.models.checkpoint import CheckpointError, is_checkpoint, read

    if not is_checkpoint(start):
        return "nli"
    try:
        return read(start)["recipe"]["task"]
    except CheckpointError as error:
        _fail(error)

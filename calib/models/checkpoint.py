"""Checkpoints: whole or not at all, and only of the run that asks for them."""

import hashlib
import json
import pickle
import zipfile
import zlib
from pathlib import Path

import torch

from calib.data.whole import write_whole

FORMAT = "calib-checkpoint-1"
UNREADABLE = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)


class CheckpointError(Exception):
    """A checkpoint is damaged or belongs to another run: names the file, what was expected and found, what to do."""


def digest(recipe):
    """SHA-256 of a recipe."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()


def save(path, recipe, progress, parts):
    """Write a checkpoint.

    Parameters
    ----------
    path : path
    recipe : dict
        Everything that determines the result; JSON can hold it.
    progress : dict
        How far the run has come, and its history; JSON can hold it.
    parts : dict of str to object
        What has a ``state_dict``.
    """
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    content = {
        "format": FORMAT,
        "recipe": recipe,
        "recipe_sha256": digest(recipe),
        "progress": progress,
        "states": {name: part.state_dict() for name, part in parts.items()},
        "random": {"cpu": torch.get_rng_state(), "cuda": cuda},
    }

    def fill(file):
        try:
            torch.save(content, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # a full disk, which leaves torch's archive without its end
                raise error.__context__ from None
            raise

    write_whole({Path(path): fill})


def is_checkpoint(start):
    """Whether a model to predict with is a checkpoint of ours, or means one: a file, where others are folders."""
    return Path(start).is_file() or Path(start).suffix == ".pt"


def read(path):
    """Read a checkpoint without running anything in it.

    Returns
    -------
    dict
        format, recipe, recipe_sha256, progress, states, random.

    Raises
    ------
    CheckpointError
        If it is missing, damaged, or none of ours.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():  # torch compares no checksum: it would read other weights
                raise ValueError(f"the checksum of {damaged} differs")
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise CheckpointError(f"{path}: not found; make it with `calib train`") from None
    except UNREADABLE as error:
        raise CheckpointError(
            f"{path}: expected a checkpoint of `calib train`, found a damaged or foreign file of "
            f"{path.stat().st_size:,} bytes ({' '.join(str(error).split())[:100]}); delete it and run again"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = sorted(map(str, content))[:3] if isinstance(content, dict) else type(content).__name__
        raise CheckpointError(f"{path}: expected a checkpoint in the format {FORMAT}, found {found}; name another file")
    if content.get("recipe_sha256") != digest(content.get("recipe")):
        raise CheckpointError(f"{path}: its recipe is not the one it was saved with; delete it and run again")
    recipe, progress = content["recipe"], content.get("progress")
    for name, found, keys in (("recipe", recipe, {"task", "epochs"}), ("progress", progress, {"epoch", "history"})):
        if not isinstance(found, dict) or not keys <= set(found):
            raise CheckpointError(
                f"{path}: expected a {name} with {', '.join(sorted(keys))}, found {str(found)[:60]}; name another file"
            )
    return content


def read_finished(path):
    """Read the checkpoint of a training that has ended: as `read`, and any other is an error."""
    content = read(path)
    done, epochs = content["progress"]["epoch"], content["recipe"]["epochs"]
    if done < epochs:
        raise CheckpointError(f"{path}: trained for {done} of {epochs} epochs; go on with the command that began it")
    return content


def resume(path, recipe, parts):
    """Load a checkpoint into the parts of a run, and torch's random states.

    Returns
    -------
    dict
        The progress.

    Raises
    ------
    CheckpointError
        As in `read` and `restore`, and if it was made with another recipe: the message names what differs.
    """
    content = read(path)
    found = content["recipe"]
    differing = [name for name in sorted({*recipe, *found}) if recipe.get(name) != found.get(name)]
    if differing:
        what = "; ".join(f"{name} is {found.get(name)!r}, expected {recipe.get(name)!r}" for name in differing)
        raise CheckpointError(
            f"{path}: a checkpoint of another run: {what}; go on with its settings, or name another checkpoint"
        )
    restore(path, content, parts["network"])
    for name in ("optimiser", "schedule"):
        parts[name].load_state_dict(content["states"][name])
    torch.set_rng_state(content["random"]["cpu"])
    if len(content["random"]["cuda"]) == torch.cuda.device_count() > 0:
        torch.cuda.set_rng_state_all(content["random"]["cuda"])
    return content["progress"]


def restore(path, content, network):
    """Load the weights of a checkpoint, as `read` returns it, into a network.

    Raises
    ------
    CheckpointError
        If they are those of another network, as after a change of its code.
    """
    try:
        network.load_state_dict(content["states"]["network"])
    except RuntimeError as error:
        raise CheckpointError(
            f"{path}: its weights do not fit the network that its recipe names ({' '.join(str(error).split())[:100]}); "
            "use the version of calib that made it, or delete it and run again"
        ) from error

"""The per-example file of our own models: ids, logits and split in one ``.npz``, and the record of the run beside it.

It holds nothing of anyone else: no text, no image, no label. Who reads it joins labels and votes by id.
"""

import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from calib.data.registry import DataUnavailable
from calib.data.whole import write_whole
from calib.predictions import Predictions

FIELDS = ("ids", "logits", "split", "class_names")
LARGEST = 1_000_000_000  # bytes of the arrays of one file


def check_output(path, checkpoint=None):
    """Refuse a file that could not be written after hours of training, before them.

    Parameters
    ----------
    path : path
        As in `save_examples`; its folder is made.
    checkpoint : path, optional
        Written during the training.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"output: expected a name that ends in .npz, got {path}")
    files = [path, path.with_suffix(".json"), *([] if checkpoint is None else [Path(checkpoint)])]
    if len({file.resolve() for file in files}) < len(files):
        raise ValueError(f"checkpoint: expected another file than the logits and their record, got {checkpoint}")
    for file in files:
        if file.is_dir():
            raise ValueError(f"{file}: expected the name of a file to write, found a folder")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass


def save_examples(path, splits, record=None):
    """Write the predictions of one run, as float32, and its record as JSON beside them.

    Half precision would need half the space, but makes ties: of ten thousand images some change their class.

    Parameters
    ----------
    path : path
        Ends in ``.npz``. The record has the same name with ``.json``; the two are never of different runs.
    splits : dict of str to Predictions
        By the name of the split, such as "validation" and "test"; with class names.
    record : dict, optional
    """
    path = Path(path)
    check_output(path)
    parts = list(splits.values())
    names = parts[0].class_names
    if names is None or any(part.class_names != names for part in parts):
        raise ValueError(f"splits: expected the same class names in each, got {[part.class_names for part in parts]}")
    fields = {
        "ids": np.concatenate([part.ids for part in parts]),
        "logits": np.concatenate([part.logits for part in parts]).astype(np.float32),
        "split": np.repeat(list(splits), [len(part) for part in parts]),
        "class_names": np.array(names),
    }
    files = {path: lambda file: np.savez_compressed(file, **fields)}
    if record is not None:
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        files = {path.with_suffix(".json"): lambda file: file.write(text.encode()), **files}
    write_whole(files)


def load_examples(path):
    """Read a per-example file.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict of str to Predictions
        By split, in the order of the file; without labels and votes.

    Raises
    ------
    DataUnavailable
        If it is missing or is no such file; objects in it are refused and never run.
    """
    try:
        _refuse_large(path)
        with np.load(path, allow_pickle=False) as file:
            ids, split, names = (file[field].astype(str) for field in ("ids", "split", "class_names"))
            logits = file["logits"]
        rows = {name: split == name for name in dict.fromkeys(split.tolist())}
        return {name: Predictions(ids[at], logits[at], class_names=names.tolist()) for name, at in rows.items()}
    except FileNotFoundError:
        raise DataUnavailable(f"{path}: not found; make it with `calib train` or `calib predict`") from None
    except Exception as error:  # what a damaged archive can raise has no end
        raise DataUnavailable(
            f"{path}: expected an .npz file with {', '.join(FIELDS)}, got: {' '.join(str(error).split())}; "
            "make it again with `calib predict`"
        ) from error


def _refuse_large(path):
    """Raise where the arrays of an archive are larger than any file of ours, before one of them is unpacked."""
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > LARGEST:
        raise ValueError(f"{size:,} bytes of arrays, where {LARGEST:,} are the most that is read")


def load_record(path):
    """Read the record beside a per-example file: see `calib.models.training.run_record`.

    Parameters
    ----------
    path : path
        Ends in ``.json``.

    Returns
    -------
    dict

    Raises
    ------
    DataUnavailable
        If it is missing or is no such record.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not isinstance(record.get("recipe"), dict):
            raise ValueError("no recipe in it")
    except FileNotFoundError:
        raise DataUnavailable(
            f"{path}: not found; `calib train` and `calib predict` write it beside the logits"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataUnavailable(f"{path}: expected the record of a training run, got: {error}") from error
    return record

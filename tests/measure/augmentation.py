"""What augmented validation images do to the temperature: python augmentation.py CHECKPOINTS OUT.

Predicts from each checkpoint of the ladder twice, with validation images as they are and cropped and flipped like the
training images, and studies the gap of either. After `make ladder`; ten minutes on two cores.
"""

import sys
import tempfile
from pathlib import Path

from calib import results
from calib.data import load_soft_labels
from calib.gap import soft_label_gap
from calib.models import vision
from calib.provenance import circumstances

NAMES = ("T_hard", "T_oracle", "accuracy", "ece_hard", "gap", "iso_gap")


def studied(checkpoint, augmented, folder):
    """Numbers of the gap study, and what the run says of its validation set."""
    out = Path(folder) / "cifar10h/model-0.npz"
    record = vision.predict(checkpoint, out, augment_validation=augmented)
    validation, soft, _ = load_soft_labels("cifar10h", "model", 0, folder)
    found = soft_label_gap(validation, soft)
    recipe = record["recipe"]
    numbers = {name: found[name] for name in NAMES} | {"validation_accuracy": record["validation"]["accuracy"]}
    return f"{recipe['model']}-{recipe['seed']}", numbers


def measure(checkpoints):
    """Numbers by run, as they are and augmented."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for checkpoint in checkpoints:
            for state, augmented in (("plain", False), ("augmented", True)):
                name, numbers = studied(checkpoint, augmented, folder)
                if state in found.setdefault(name, {}):
                    sys.exit(f"error: expected one checkpoint of {name}, found two; {checkpoint} is one of them")
                found[name][state] = numbers
                print(name, state, flush=True)
    return {"runs": found, **circumstances()}


if __name__ == "__main__":
    results.save(measure(sorted(Path(sys.argv[1]).glob("*.pt"))), Path(sys.argv[2]))

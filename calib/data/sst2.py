"""Logits of a DistilBERT on the SST-2 validation set."""

from calib.data.registry import read
from calib.data.sst2_table import CLASSES, parse
from calib.predictions import Predictions


def load_sst2():
    """Logits of the pinned DistilBERT on the 872 sentences of the SST-2 validation set; ids are `idx`."""
    ids, labels, logits = parse(read("sst2/distilbert-sst2-validation-logits.csv"))
    return Predictions(ids, logits, labels, class_names=CLASSES)

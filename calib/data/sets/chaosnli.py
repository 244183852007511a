"""ChaosNLI: a hundred votes on pairs of SNLI and MNLI on which earlier annotators had split (Nie et al. 2020)."""

import re
from dataclasses import dataclass

import numpy as np

from calib.data.pairs import NLI_CLASSES, parse_pairs, read_pairs
from calib.data.readers import class_permutation, load_json_lines
from calib.data.registry import REGISTRY, data_folder, read
from calib.data.sets.base import SoftLabelSet
from calib.predictions import Predictions

PREDICTED_CLASSES = ("entailment", "contradiction", "neutral")


@dataclass(frozen=True)
class ChaosNLI(SoftLabelSet):
    """One of its two parts.

    Attributes
    ----------
    votes_file, source : str
        How its files are called: ``chaosNLI_<votes_file>.jsonl``, ``<source>_dev_<model>_<seed>.json``.
    """

    votes_file: str = ""
    source: str = ""

    def items(self):
        """The lines of its file of votes."""
        return load_json_lines(read(f"chaosnli/chaosNLI_{self.votes_file}.jsonl"))

    def pairs(self):
        """Its sentence pairs, with the labels of SNLI or MNLI."""
        name = f"chaosnli/chaosNLI_{self.votes_file}.jsonl"
        return parse_pairs(name, read(name))

    def votes(self):
        """The 100 votes on each pair."""
        return {item["uid"]: item["label_count"] for item in self.items()}

    def original_labels(self):
        """The label that SNLI or MNLI itself gives to each pair, by uid: `old_label` in the file of votes."""
        letters = [name[0] for name in NLI_CLASSES]
        return {item["uid"]: letters.index(item["old_label"]) for item in self.items()}

    def original_votes(self):
        """The votes that SNLI or MNLI itself has on each pair, by uid: `old_labels`, five, of which three agree.

        Counts in the order of the classes; a few pairs of SNLI have four votes.
        """
        return {item["uid"]: [item["old_labels"].count(name) for name in NLI_CLASSES] for item in self.items()}

    def predictions(self, model, seed):
        """Baan et al. (2022): the whole "dev" file with its labels; logits of "dev" and "test" by uid."""
        development, test = (self._file(half, model, seed) for half in ("dev", "test"))
        return development, dict(
            zip([*development.ids.tolist(), *test.ids.tolist()], [*development.logits, *test.logits])
        )

    def _file(self, half, model, seed):
        return load_nli_predictions(f"chaosnli/predictions/{self.source}_{half}_{model}_{seed}.json")

    def validation_labels(self, ids):
        """Labels as SNLI and MNLI give them, from all files that are here."""
        known = {}
        for subset in SOFT_LABEL_SETS:
            known |= subset.original_labels()
        for subset in SOFT_LABEL_SETS:
            for half in ("dev", "test"):
                rows = subset._file(half, "roberta-base", 0)
                known |= dict(zip(rows.ids.tolist(), rows.labels.tolist()))
        for path in sorted((data_folder() / "nli").glob("*dev*.jsonl")):
            rows = read_pairs(path)
            known |= dict(zip(rows.ids, rows.labels.tolist()))
        unknown = [name for name in ids.tolist() if name not in known]
        if unknown:
            raise ValueError(
                f"the labels of {len(unknown)} of {len(ids)} validation items are not known here, the first "
                f"{unknown[0]!r}; put the file that they come from into {data_folder() / 'nli'}, such as "
                "snli_1.0_dev.jsonl"
            )
        return np.array([known[name] for name in ids.tolist()])

    def cluster(self, name):
        """The image of an SNLI pair, the premise of an MNLI pair.

        An SNLI uid begins with the file of the image, an MNLI uid with the number of the premise.
        """
        if not isinstance(name, str):
            raise ValueError(f"ids: expected strings, such as the uid of a pair, got {name!r}")
        return re.sub(r"#.*|(?<=\d)[enc]$", "", name)


BOTH = "paper", "clean"
CHAOSNLI_S = ChaosNLI("chaosnli-s", "ChaosNLI-S", "language", NLI_CLASSES, BOTH, votes_file="snli", source="SNLI")
CHAOSNLI_M = ChaosNLI("chaosnli-m", "ChaosNLI-M", "language", NLI_CLASSES, BOTH, votes_file="mnli_m", source="MNLI")
SOFT_LABEL_SETS = (CHAOSNLI_S, CHAOSNLI_M)


def load_nli_predictions(name):
    """Predictions and labels of one registered file, in the order entailment, neutral, contradiction."""
    if name not in REGISTRY:
        known = ", ".join(known for known in REGISTRY if known.startswith("chaosnli/predictions/"))
        raise ValueError(f"model, seed: expected those of a registered file, got {name}; registered are {known}")
    rows = load_json_lines(read(name))
    order = class_permutation(PREDICTED_CLASSES, NLI_CLASSES)
    position = np.argsort(order)  # where each class of the file stands in our order
    return Predictions(
        ids=[row["uid"] for row in rows],
        logits=np.array([row["logits"] for row in rows])[:, order],
        labels=position[[row["true"] for row in rows]],
        class_names=NLI_CLASSES,
    )

"""The soft-label calibration gap (Dogah 2026, definition 1): what hard-label calibration costs against human votes."""

from calib.isotonic import IsotonicCalibration
from calib.predictions import count_overlap
from calib.probabilities import softmax
from calib.reliability import ece, top_label
from calib.scores import accuracy, brier
from calib.temperature import fit_temperature

N_BINS = 15


def halves(soft):
    """First n // 2 examples, for the oracle's fit, and the rest, for every evaluation."""
    first = len(soft) // 2
    return soft.split(first, len(soft) - first)


def check_classes(validation, soft):
    """Raise unless the two name the same classes in the same order."""
    if validation.class_names != soft.class_names:
        raise ValueError(
            f"validation, soft: expected the same classes in the same order, got {validation.class_names} and "
            f"{soft.class_names}"
        )


def soft_label_gap(validation, soft, overlap_declared=False):
    """Hard-label calibration against an oracle fitted to human label distributions.

    T_hard minimises the NLL of the hard labels of `validation`. T_oracle minimises the Brier score against the
    vote distributions of the first half of `soft`. Everything is evaluated on the second half: the Brier score
    against the distributions, accuracy and ECE (15 equal-width bins) against the hard labels. One-vs-rest
    isotonic regression is fitted on the same two sets.

    Parameters
    ----------
    validation : Predictions
        With hard labels.
    soft : Predictions
        With votes and hard labels, in the order of the file.
    overlap_declared : bool
        True where the protocol lets the validation set contain evaluated examples; they are counted in
        `n_overlap`. Otherwise they are an error.

    Returns
    -------
    dict of str to float or int
        n_val, n, n_overlap, accuracy, T_hard, T_oracle, and at each of uncal, hard, oracle: ece_*, brier_*;
        gap = brier_hard - brier_oracle; iso_brier_hard, iso_brier_oracle, iso_gap.
    """
    check_classes(validation, soft)
    first, second = halves(soft)
    n_overlap = count_overlap(validation, second, declared=overlap_declared)
    hard = fit_temperature(validation.logits, validation.labels)
    oracle = fit_temperature(first.logits, first.distributions, objective="brier")

    result = {
        "n_val": len(validation),
        "n": len(soft),
        "n_overlap": n_overlap,
        "accuracy": accuracy(second.logits, second.labels),
        "T_hard": hard.temperature,
        "T_oracle": oracle.temperature,
    }
    for name, temperature in (("uncal", 1.0), ("hard", hard.temperature), ("oracle", oracle.temperature)):
        probabilities = softmax(second.logits, temperature)
        result[f"ece_{name}"] = ece(*top_label(probabilities, second.labels), bins=N_BINS)
        result[f"brier_{name}"] = brier(probabilities, second.distributions)
    result["gap"] = result["brier_hard"] - result["brier_oracle"]

    for name, fitted, targets in (("hard", validation, validation.labels), ("oracle", first, first.distributions)):
        isotonic = IsotonicCalibration().fit(fitted.logits, targets)
        result[f"iso_brier_{name}"] = brier(isotonic.predict_proba(second.logits), second.distributions)
    result["iso_gap"] = result["iso_brier_hard"] - result["iso_brier_oracle"]
    return result

"""The soft-label calibration gap (Dogah 2026, definition 1): what hard-label calibration costs against human votes."""

from calib.isotonic import IsotonicCalibration
from calib.probabilities import softmax
from calib.reliability import ece, top_label
from calib.scores import accuracy, brier
from calib.temperature import fit_temperature

N_BINS = 15


def soft_label_gap(study):
    """Hard-label calibration against an oracle fitted to human label distributions.

    T_hard minimises the NLL of the hard labels of the validation set. T_oracle minimises the Brier score against the
    vote distributions of the first half. Everything is evaluated on the second half: the Brier score
    against the distributions, accuracy and ECE (15 equal-width bins) against the hard labels. One-vs-rest
    isotonic regression is fitted on the same two sets.

    Parameters
    ----------
    study : calib.softlabels.study.Study

    Returns
    -------
    dict of str to float or int
        n_val, n, n_overlap, accuracy, T_hard, T_oracle, and at each of uncal, hard, oracle: ece_*, brier_*;
        gap = brier_hard - brier_oracle; iso_brier_hard, iso_brier_oracle, iso_gap.
    """
    validation, first, second = study.validation, study.first, study.second
    hard = fit_temperature(validation.logits, validation.labels)
    oracle = fit_temperature(first.logits, first.distributions, objective="brier")

    result = {
        "n_val": len(validation),
        "n": len(study.soft),
        "n_overlap": study.n_overlap,
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

"""Calibration of classifiers: predicted probabilities against outcomes in a named population."""

from calib.predictions import Predictions, count_overlap
from calib.probabilities import log_softmax, softmax
from calib.reliability import EqualMass, ece, reliability_table, top_label
from calib.scores import accuracy, brier, entropy, nll
from calib.temperature import TemperatureFit, TemperatureScaling, bisect_temperature, fit_temperature

__all__ = [
    "EqualMass",
    "Predictions",
    "TemperatureFit",
    "TemperatureScaling",
    "accuracy",
    "bisect_temperature",
    "brier",
    "count_overlap",
    "ece",
    "entropy",
    "fit_temperature",
    "log_softmax",
    "nll",
    "reliability_table",
    "softmax",
    "top_label",
]

"""Labels of many people: the soft-label calibration gap, what it is made of, and votes to fit a temperature to."""

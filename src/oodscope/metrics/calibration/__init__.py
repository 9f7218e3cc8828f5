"""Calibration of a classifier: errors of its confidence, with intervals."""

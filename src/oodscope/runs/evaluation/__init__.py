"""Evaluations: one classifier, one benchmark, detectors under protocols."""

"""Paired comparisons of detectors, within a run and between two."""

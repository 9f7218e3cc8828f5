"""Attacks: the worst outliers of detectors by search (Evaluation via Generation)."""

"""Detectors that learn from the unlabelled test stream, judged on schedules of it."""

"""Trainings of networks as runs: what was trained, how well it went, and the curves."""

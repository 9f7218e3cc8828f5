"""Figures of an evaluation, from its scores and measurements."""

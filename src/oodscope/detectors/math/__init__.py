"""Numerics that several detectors share."""

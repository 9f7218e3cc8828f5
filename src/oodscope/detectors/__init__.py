"""Detectors: activations in, scores out, larger = more OOD."""

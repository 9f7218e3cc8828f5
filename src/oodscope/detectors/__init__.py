"""Detectors: activations in, scores out, larger = more OOD."""

from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.offer import Offer
from oodscope.detectors.rectifier import Rectifier
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.detectors.saving import load_detector
from oodscope.detectors.tuning import Choice, tune

__all__ = [
    "DETECTORS",
    "Choice",
    "Cost",
    "Detector",
    "LogitScore",
    "Needs",
    "Offer",
    "Paper",
    "Rectifier",
    "create_detector",
    "load_detector",
    "tune",
]

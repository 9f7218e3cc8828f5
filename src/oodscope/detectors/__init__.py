"""Detectors: activations in, scores out, larger = more OOD."""

from oodscope.detectors.artefact import load
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.deploying import fit_scorer
from oodscope.detectors.function_scorer import FunctionScorer
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.offer import Offer
from oodscope.detectors.rectifier import Rectifier
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.detectors.saving import load_detector
from oodscope.detectors.scorer import Prediction, Scorer
from oodscope.detectors.tuning import Choice, tune

__all__ = [
    "DETECTORS",
    "Choice",
    "Cost",
    "Detector",
    "FunctionScorer",
    "LogitScore",
    "Needs",
    "Offer",
    "Paper",
    "Prediction",
    "Rectifier",
    "Scorer",
    "create_detector",
    "fit_scorer",
    "load",
    "load_detector",
    "tune",
]

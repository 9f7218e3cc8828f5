"""Activations: one pass per image, kept by content, read by every detector."""

from oodscope.activations.activations import Activations
from oodscope.activations.moments import Moments
from oodscope.activations.odin import PerturbedLogits
from oodscope.activations.probe import Probe
from oodscope.activations.store import PRECISION, ActivationStore

__all__ = ["PRECISION", "ActivationStore", "Activations", "Moments", "PerturbedLogits", "Probe"]

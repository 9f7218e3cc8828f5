"""Activations: one pass per image, kept by content, read by every detector."""

from oodscope.activations.activations import Activations
from oodscope.activations.moments import Moments
from oodscope.activations.passes import Passes
from oodscope.activations.perturbation import PerturbedFeatures, PerturbedLogits
from oodscope.activations.probe import Probe, Tap
from oodscope.activations.rank import RankReducedLogits
from oodscope.activations.store import PRECISION, ActivationStore
from oodscope.activations.taps import GramSums, MemberLogits, NegativeSums, PooledMaps

__all__ = [
    "PRECISION",
    "ActivationStore",
    "Activations",
    "GramSums",
    "MemberLogits",
    "Moments",
    "NegativeSums",
    "Passes",
    "PerturbedFeatures",
    "PerturbedLogits",
    "PooledMaps",
    "Probe",
    "RankReducedLogits",
    "Tap",
]

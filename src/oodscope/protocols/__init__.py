"""Protocols: from a benchmark's scores to measurements."""

from oodscope.protocols.adversarial import attack
from oodscope.protocols.classes import standard_errors
from oodscope.protocols.comparing import compare
from oodscope.protocols.exposure import find_exposure
from oodscope.protocols.human_options import HumanCentric, Prices
from oodscope.protocols.protocol import PROTOCOLS, Protocol, get_protocol
from oodscope.protocols.scoring import applicable, fit_scorers, score_benchmark

__all__ = [
    "PROTOCOLS",
    "HumanCentric",
    "Prices",
    "Protocol",
    "applicable",
    "attack",
    "compare",
    "find_exposure",
    "fit_scorers",
    "get_protocol",
    "score_benchmark",
    "standard_errors",
]

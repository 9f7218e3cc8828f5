"""Protocols: from a benchmark's scores to measurements."""

from oodscope.protocols.exposure import find_exposure
from oodscope.protocols.protocol import PROTOCOLS, Protocol, get_protocol
from oodscope.protocols.scoring import applicable, score_benchmark

__all__ = ["PROTOCOLS", "Protocol", "applicable", "find_exposure", "get_protocol", "score_benchmark"]

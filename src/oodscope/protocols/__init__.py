"""Protocols: from a benchmark's scores to measurements."""

from oodscope.protocols.protocol import PROTOCOLS, Protocol, get_protocol
from oodscope.protocols.scoring import applicable, score_benchmark

__all__ = ["PROTOCOLS", "Protocol", "applicable", "get_protocol", "score_benchmark"]

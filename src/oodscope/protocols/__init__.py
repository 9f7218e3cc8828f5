"""Protocols: from a benchmark's scores to measurements."""

from oodscope.protocols.classes import standard_errors
from oodscope.protocols.comparing import compare
from oodscope.protocols.protocol import PROTOCOLS, Protocol, get_protocol
from oodscope.protocols.scoring import applicable, score_benchmark

__all__ = ["PROTOCOLS", "Protocol", "applicable", "compare", "get_protocol", "score_benchmark", "standard_errors"]

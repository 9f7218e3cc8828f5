"""How work is carried out: progress and memory now; resumption and many machines build here."""

from oodscope.execution.lookahead import ahead, threads
from oodscope.execution.memory import PeakMemory
from oodscope.execution.progress import SILENT, Advance, Progress

__all__ = ["SILENT", "Advance", "PeakMemory", "Progress", "ahead", "threads"]

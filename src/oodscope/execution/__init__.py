"""How work is carried out: progress now; resumption and many machines build here."""

from oodscope.execution.progress import SILENT, Advance, Progress

__all__ = ["SILENT", "Advance", "Progress"]

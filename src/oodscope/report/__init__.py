"""Pages for people, computed from a result alone."""

from oodscope.report.page import write_report

__all__ = ["write_report"]

"""Pages for people, computed from a result alone."""

from oodscope.report.attack import write_attack
from oodscope.report.audit import write_audit
from oodscope.report.crossval import write_crossval
from oodscope.report.generated import write_generated_study
from oodscope.report.page import write_report

__all__ = ["write_attack", "write_audit", "write_crossval", "write_generated_study", "write_report"]

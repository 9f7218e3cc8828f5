"""The protocol of generated benchmarks: detectors and calibration on them, their sanity, their validity."""

from oodscope.protocols.generated.checking import GeneratedChecks
from oodscope.protocols.generated.judging import judge_generated

__all__ = ["GeneratedChecks", "judge_generated"]

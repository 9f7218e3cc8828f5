"""CopyScore: detectors that ask a score of logits of changed copies of an image."""

from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.detectors.base import Detector
from oodscope.detectors.logitscore import LogitScore
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.registry import create_detector


class CopyScore(Detector):
    """Subclasses name the copies by their probe and say what becomes of the scores.

    Parameters
    ----------
    detector : name of a score of logits.
    temperature : by which logits are divided before.
    """

    detector: str
    temperature: float

    def of_logits(self, logits: Tensor) -> Tensor:
        """The wrapped score, in float64: near 0 and 1, probabilities in float32 tie."""
        score = create_detector(self.detector)
        if not isinstance(score, LogitScore):
            raise DetectorError(
                f"{self.name}: detector must be a score of logits (msp, entropy, gen, ebo, mls), not {self.detector!r}"
            )
        return precise(score.of_logits(precise(logits) / self.temperature))

    @property
    def wrapped(self) -> str:
        """The wrapped score by its name, for the columns of probes."""
        return self.detector if self.temperature == 1 else f"{self.detector} at temperature {self.temperature:g}"

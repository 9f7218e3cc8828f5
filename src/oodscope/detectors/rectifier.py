"""Rectifier: detectors that change features on their way to the head and score the new logits."""

from typing import ClassVar

from sklearn.base import clone
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.ebo import EBO
from oodscope.detectors.logitscore import LogitScore
from oodscope.models.classifier.head import Head


class Rectifier(Detector):
    """Features are rectified, pass the head again, and any logit score judges the result.

    Subclasses give ``_rectify`` or, if they change the head instead, ``_logits``. They take ``logit_score`` as a
    parameter; ``create_detector("react+msp")`` fills it by name. ``None`` means the energy score, which the
    papers use.
    """

    needs: ClassVar[Needs] = Needs.FEATURES | Needs.HEAD
    cost: ClassVar[Cost] = Cost.HEAD
    logit_score: LogitScore | None

    @property
    def id(self) -> str:
        if self.logit_score is None:
            return super().id
        return f"{clone(self).set_params(logit_score=None).id}+{self.logit_score.id}"

    def _rectify(self, features: Tensor) -> Tensor:
        """The features that the head shall see."""
        return features

    def _score(self, batch: Activations) -> Tensor:
        assert batch.head is not None, "checked before scoring"
        return (self.logit_score or EBO()).of_logits(self._logits(batch.features, batch.head))

    def _logits(self, features: Tensor, head: Head) -> Tensor:
        return head.logits(self._rectify(features))

"""LogitScore: detectors that look at logits only, and can therefore sit behind any rectifier."""

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.detectors.base import Cost, Detector, Needs


class LogitScore(Detector):
    """A score of logits alone; nothing is fitted.

    Examples
    --------
    >>> class Largest(oods.LogitScore):
    ...     name = "largest"
    ...     def of_logits(self, logits): return -logits.amax(1)
    >>> oods.evaluate(clf, bench, [Largest()]).scores.detectors
    ['largest']
    """

    needs: ClassVar[Needs] = Needs.LOGITS
    cost: ClassVar[Cost] = Cost.LOGITS

    @abstractmethod
    def of_logits(self, logits: Tensor) -> Tensor:
        """Scores ``[N]`` of logits ``[N, C]`` in float32 or float64, larger = more OOD."""

    def _score(self, batch: Activations) -> Tensor:
        return self.of_logits(batch.logits)

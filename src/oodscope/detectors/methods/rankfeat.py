"""RankFeat: energy after the strongest direction was removed from the feature maps."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.rank import RankReducedLogits
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.ebo import EBO


class RankFeat(Detector):
    r"""Energy of the mean logits of two passes, each without the first singular part of one stage's map.

    .. math:: s(x) = -\log\sum_c \exp\tfrac12\bigl(z^{(L)}_c + z^{(L-1)}_c\bigr), \qquad
              z^{(l)} = \text{logits with } F_l \leftarrow F_l - \sigma_1 u_1 v_1^\top

    Outliers owe more of their over-confidence to that one direction. The paper alters the last two stages of a
    ResNet; here they are the last two resolutions of any convolutional network.
    """

    name = "rankfeat"
    paper = Paper(
        "RankFeat: Rank-1 Feature Removal for Out-of-distribution Detection", "Song, Sebe & Wang", "NeurIPS 2022"
    )
    needs = Needs.MAPS
    cost = Cost.PASSES

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (RankReducedLogits(),)

    def _score(self, batch: Activations) -> Tensor:
        return EBO().of_logits(precise(batch[self.probes[0].column]).mean(dim=1))

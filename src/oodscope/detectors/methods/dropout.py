"""MC dropout: doubt of the mean softmax when features drop out."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import on_host, precise
from oodscope.detectors.math.softmax import average
from oodscope.models.classifier.head import Head

LARGE = 32.0
"""Logits beyond this lose digits that count in float32 products; they are taken again in float64."""


class Dropout(Detector):
    r"""Some features vanish, others grow to make up for them; predictions that hang on few features change.

    .. math:: s(x) = 1 - \max_c \frac1M \sum_{m=1}^M \mathrm{softmax}_c
                     \Bigl(W\,\frac{\mathbf m_m \odot h}{1-\rho} + b\Bigr), \qquad
              \mathbf m_{mj} \sim \mathrm{Bernoulli}(1-\rho)

    The masks fall on the features before the head, not on the network's own dropout layers, so no further pass is
    needed; they are drawn once, so a score depends on the image alone. With shared masks OpenOOD's mean of logits would
    be one linear map of the features; the mean of probabilities, which is the paper's, keeps the members' disagreement.

    Parameters
    ----------
    passes : number of masks :math:`M`; 5 as in OpenOOD.
    drop : probability :math:`\rho` that a feature vanishes; 0.5 as there.
    seed : of the masks.
    """

    name = "dropout"
    paper = Paper(
        "Dropout as a Bayesian Approximation: Representing Model Uncertainty in Deep Learning",
        "Gal & Ghahramani",
        "ICML 2016",
    )
    needs = Needs.FEATURES | Needs.HEAD
    cost = Cost.HEAD

    def __init__(self, passes: int = 5, drop: float = 0.5, seed: int = 0) -> None:
        self.passes = passes
        self.drop = drop
        self.seed = seed

    def _score(self, batch: Activations) -> Tensor:
        assert batch.head is not None, "checked before scoring"
        masks = self._masks(batch.head.dim)
        if not on_host(batch.features):
            return _doubt(precise(batch.features), batch.head, masks)[0]
        scores, sizes = _doubt(batch.features, batch.head, masks)
        large = sizes > LARGE
        if large.any():
            scores[large], _ = _doubt(precise(batch.features[large]), batch.head, masks)
        return scores

    def _masks(self, width: int) -> Tensor:
        if self.passes < 1:
            raise DetectorError(f"dropout: passes must be at least 1, not {self.passes}")
        if not 0 <= self.drop < 1:
            raise DetectorError(f"dropout: drop must lie in [0, 1), not {self.drop}")
        chance = torch.rand(self.passes, width, generator=torch.Generator().manual_seed(self.seed))
        return precise((chance >= self.drop).to(self.device)) / (1 - self.drop)


def _doubt(features: Tensor, head: Head, masks: Tensor) -> tuple[Tensor, Tensor]:
    """The score, and the size of the largest logit behind it."""
    # masks on the weight's columns do what masks on the features would, in one product
    weights = masks.to(features).unsqueeze(1) * head.weight.to(features)
    logits = linear(features, weights.flatten(0, 1)).reshape(-1, len(masks), head.num_classes)
    logits += head.bias.to(features)
    return average(logits)[1], logits.abs().amax(dim=(1, 2))

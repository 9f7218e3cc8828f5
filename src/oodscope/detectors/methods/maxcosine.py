"""MaxCosine: how well a feature points along the best class of the head."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import unit


class MaxCosine(Detector):
    r"""Largest cosine between the feature and a class's weights: the largest logit without lengths and bias.

    .. math:: s(x) = -\max_c \cos(h, w_c), \qquad w_c \text{ the rows of the head's weight}

    A feature of zeros points nowhere: its cosines count as 0. (Cosines with class means of the training
    features, as others use the name, would need training images; Decoupling MaxLogit takes the head.)
    """

    name = "maxcosine"
    paper = Paper("Decoupling MaxLogit for Out-of-Distribution Detection", "Zhang & Xiang", "CVPR 2023")
    needs = Needs.FEATURES | Needs.HEAD
    cost = Cost.HEAD

    def _score(self, batch: Activations) -> Tensor:
        assert batch.head is not None, "checked before scoring"
        cosines = unit(batch.features) @ unit(batch.head.weight.to(batch.features.device)).T
        return -cosines.amax(dim=1)

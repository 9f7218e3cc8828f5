"""SHE: likeness to the stored pattern of the predicted class."""

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.bank import group_sums, means
from oodscope.detectors.math.numbers import precise, winners

METRICS = ("inner_product", "euclidean", "cosine")


class SHE(Detector):
    r"""A Hopfield memory with one pattern per class: how well does the feature fit that of its predicted class?

    .. math:: s(x) = -h^\top S_{\hat y}, \qquad
              S_c = \text{mean of } h_i \text{ over training images with } \hat y_i = y_i = c

    A class of which no training image was recognised takes the mean of all its training images; a class
    without any takes the mean of all recognised images (of all images, if none was recognised).

    Parameters
    ----------
    metric : ``inner_product`` as in the paper, ``euclidean`` for the distance :math:`\lVert h-S_{\hat y}\rVert`,
        ``cosine`` for minus the cosine.
    """

    name = "she"
    paper = Paper(
        "Out-of-Distribution Detection based on In-Distribution Data Patterns Memorization with Modern Hopfield Energy",
        "Zhang et al.",
        "ICLR 2023",
    )
    needs = Needs.LOGITS | Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS

    def __init__(self, metric: str = "inner_product") -> None:
        self.metric = metric

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.metric not in METRICS:
            raise DetectorError(f"she: metric must be one of {', '.join(METRICS)}, not {self.metric!r}")
        classes = train.num_classes

        def group(chunk: Activations) -> Tensor:
            """The recognised images of each class first, then the others."""
            return chunk.labels + classes * (winners(chunk.logits) != chunk.labels)

        sums, counts = group_sums(train, 2 * classes, group, self.device)
        recognised = slice(classes) if counts[:classes].any() else slice(None)
        common = sums[recognised].sum(dim=0) / counts[recognised].sum()
        others = means(sums[classes:], counts[classes:], common)
        self.patterns_ = means(sums[:classes], counts[:classes], others)

    def _score(self, batch: Activations) -> Tensor:
        prediction = winners(batch.logits)
        if self.metric == "inner_product":
            # as exact in float32 as the features themselves
            pattern = self.patterns_.to(batch.features).index_select(0, prediction)
            return -pattern.mul_(batch.features).sum(dim=1)
        features, pattern = precise(batch.features), self.patterns_.index_select(0, prediction)
        if self.metric == "euclidean":
            distances: Tensor = torch.linalg.vector_norm(features - pattern, dim=1)
            return distances
        return -cosine_similarity(features, pattern, dim=1)

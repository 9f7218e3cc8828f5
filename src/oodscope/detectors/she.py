"""SHE: likeness to the stored pattern of the predicted class."""

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from oodscope.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.precision import precise

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
        classes, width = train.num_classes, train.features.shape[1]
        # the recognised images of each class first, then the others
        sums = precise(torch.zeros(2 * classes, width, device=self.device))
        counts = precise(torch.zeros(2 * classes, 1, device=self.device))
        for chunk in train.chunks(device=self.device, only=("features", "labels", "logits")):
            group = chunk.labels + classes * (chunk.logits.argmax(dim=1) != chunk.labels)
            sums.index_add_(0, group, precise(chunk.features))
            counts.index_add_(0, group, torch.ones_like(counts[group]))
        right, wrong = sums.view(2, classes, width)
        n_right, n_wrong = counts.view(2, classes, 1)
        common = right.sum(dim=0) / n_right.sum() if n_right.any() else wrong.sum(dim=0) / n_wrong.sum()
        patterns = torch.where(n_wrong > 0, wrong / n_wrong.clamp(min=1), common)
        self.patterns_ = torch.where(n_right > 0, right / n_right.clamp(min=1), patterns)

    def _score(self, batch: Activations) -> Tensor:
        features, pattern = precise(batch.features), self.patterns_[batch.logits.argmax(dim=1)]
        if self.metric == "euclidean":
            distances: Tensor = torch.linalg.vector_norm(features - pattern, dim=1)
            return distances
        if self.metric == "cosine":
            return -cosine_similarity(features, pattern, dim=1)
        return -(features * pattern).sum(dim=1)

"""CADRef: error to the mean feature of the predicted class, split by what it does to the logit."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.bank import group_sums, means
from oodscope.detectors.math.numbers import precise, winners


class CADRef(Detector):
    r"""Deviation from the class mean counts; where it lifts the logit, the less the surer the network is.

    .. math:: s(x) = \frac{E_+(x)}{S(x)} + \frac{E_-(x)}{\bar S}, \qquad
              E_\pm(x) = \frac{1}{\lVert h\rVert_1}\sum_{i:\,\pm w_{\hat y i}(h_i-m_{\hat y i}) > 0} |h_i-m_{\hat y i}|

    with :math:`m_c` the mean feature of the training images *predicted* as c, :math:`S = \log\sum_c e^{z_c}` and
    :math:`\bar S` its mean over the training images.

    The energy shall be positive, as it is for networks with several classes and confident logits; the quotient
    is kept as the paper has it, and below zero it loses its meaning. A class that no training image was
    predicted as takes the mean of all; features that are all zero count as if their sum were 1e-12.
    """

    name = "cadref"
    paper = Paper(
        "CADRef: Robust Out-of-Distribution Detection via Class-Aware Decoupled Relative Feature Leveraging",
        "Ling et al.",
        "CVPR 2025",
    )
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HEAD | Needs.TRAIN
    cost = Cost.MOMENTS

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        confidence = 0.0

        def group(chunk: Activations) -> Tensor:
            nonlocal confidence
            confidence += float(precise(chunk.logits).logsumexp(dim=1).sum())
            return winners(chunk.logits)

        sums, counts = group_sums(train, train.num_classes, group, self.device)
        self.confidence_ = confidence / len(train)
        self.means_ = means(sums, counts, sums.sum(dim=0) / len(train))
        self.signs_ = precise(train.head.weight.to(self.device)).sign()

    def _score(self, batch: Activations) -> Tensor:
        features, prediction = precise(batch.features), winners(batch.logits)
        lift = (features - self.means_[prediction]) * self.signs_[prediction]
        length = features.abs().sum(dim=1).clamp(min=1e-12)
        lifting, lowering = lift.clamp(min=0).sum(dim=1), lift.clamp(max=0).sum(dim=1)
        confidence = precise(batch.logits).logsumexp(dim=1)
        return (lifting / confidence - lowering / self.confidence_) / length

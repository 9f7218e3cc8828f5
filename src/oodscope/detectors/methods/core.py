"""CORE: confidence, and how usual the part of a feature is that the head does not read."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import unit
from oodscope.detectors.math.numbers import precise


class CORE(Detector):
    r"""Energy plus the largest cosine of the residual with a class's mean residual, both standardised.

    .. math:: s(x) = -\frac{E - \bar E}{\sigma_E} - \frac{M - \bar M}{\sigma_M}, \qquad
              M = \max_c \cos(\rho, \nu_c), \quad \rho = (I - P)h, \quad E = \log\sum_c e^{z_c}

    with :math:`P` the projection on the row space of the head, :math:`\nu_c` the mean residual of class c, and means
    and standard deviations over the training images. The residual is what the *head* does not read; ViM's is what the
    *features* do not vary in. A residual of zero has the cosine 0; classes without images do not take part.

    The paper was known by its abstract when this was written: that the maximum runs over all classes, and that
    training images standardise both terms, are our reading.
    """

    name = "core"
    paper = Paper(
        "CORE: Robust Out-of-Distribution Detection via Confidence and Orthogonal Residual Scoring",
        "Yang, Kim & Bahk",
        "arXiv 2603.18290",
    )
    needs = Needs.LOGITS | Needs.FEATURES | Needs.HEAD | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS
    unverified_form = True

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        assert train.head is not None, "checked before fitting"
        weight = train.head.weight.double().cpu()
        _, singular, rows = torch.linalg.svd(weight, full_matrices=False)
        read = rows[singular > singular.max() * max(weight.shape) * torch.finfo(torch.float32).eps]
        if len(read) >= weight.shape[1]:
            raise DetectorError(
                f"core: the head of {weight.shape[0]} classes reads all {weight.shape[1]} features and leaves no "
                "residual; it needs fewer classes than features"
            )
        self.read_ = precise(read.to(self.device))
        moments = train.moments(self.device)
        means = precise(moments.means[moments.counts > 0].to(self.device))
        # the mean of the residuals is the residual of the mean
        self.usual_ = unit(self._residual(means))
        terms = train.per_row(self._terms, device=self.device, only=("logits", "features"))
        spread, centre = torch.std_mean(terms, dim=0, correction=0)
        self.centre_, self.spread_ = centre, torch.where(spread > 0, spread, torch.ones_like(spread))

    def _residual(self, features: Tensor) -> Tensor:
        return features - (features @ self.read_.T) @ self.read_

    def _terms(self, batch: Activations) -> Tensor:
        """Energy and cosine, ``[N, 2]``."""
        cosine = (unit(self._residual(precise(batch.features))) @ self.usual_.T).amax(dim=1)
        return torch.stack([precise(batch.logits).logsumexp(dim=1), cosine], dim=1)

    def _score(self, batch: Activations) -> Tensor:
        return -((self._terms(batch) - self.centre_) / self.spread_).sum(dim=1)

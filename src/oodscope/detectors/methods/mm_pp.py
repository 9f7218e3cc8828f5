"""MM++: Mahalanobis distance over several stages at once, those at which features become denser."""

import math

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import gather_moments
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import PooledMaps
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import unit
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import eigenbasis, whitening
from oodscope.detectors.methods.maha_free import shrunk


class MMPlusPlus(Detector):
    r"""Squared Mahalanobis distance to the nearest class, of the unit vectors of several stages side by side.

    .. math:: s(x) = \min_c (\varphi-\mu_c)^\top\Sigma^{+}(\varphi-\mu_c), \qquad
              \varphi = \bigl[\hat f_l\bigr]_{l\in S}, \quad
              S = \{l : \eta_l < \eta_{l-1}\}\cup\{L\}, \quad
              \eta_l = \frac{-\sum_i p_{li}\log p_{li}}{\log r_l}

    :math:`f_l` is the pooled map of stage l, :math:`p_{li}` the eigenvalues of the covariance of :math:`\hat f_l` over
    their sum, :math:`r_l` how many are positive: the entropy density falls where a stage gathers its variance in fewer
    directions. :math:`\Sigma` is one covariance around the class means, shrunk as Ledoit and Wolf (2004) do.

    The paper was known by its abstract when this was written; density and rule of choice are ours.
    """

    name = "mm_pp"
    paper = Paper(
        "MM++: Unsupervised Scale-Invariant Multilayer OOD Detection via Top-K Gated Feature Fusion",
        "Hossain et al.",
        "arXiv 2606.17352",
    )
    needs = Needs.MAPS | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS
    unverified_form = True

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (PooledMaps(),)

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        column = PooledMaps().column
        count = train.shape(column)[1]
        densities = [self._density(train, column, stage) for stage in range(count)]
        self.stages_ = [stage for stage in range(1, count) if densities[stage] < densities[stage - 1]]
        if count - 1 not in self.stages_:
            self.stages_.append(count - 1)

        def chunks() -> "list[tuple[Tensor, Tensor]]":
            return [
                (self._joined(chunk[column]), chunk.labels)
                for chunk in train.chunks(device=self.device, only=(column, "labels"))
            ]

        moments = gather_moments(chunks(), train.num_classes)
        means = precise(moments.means.to(self.device))
        fourth = sum(float((rows - means[owner]).square().sum(dim=1).square().sum()) for rows, owner in chunks())
        whiten = precise(whitening(shrunk(moments.within, moments.total, fourth)).to(self.device))
        self.origin_ = precise(moments.mean.to(self.device))
        self.whiten_ = whiten
        self.means_ = (means[(moments.counts > 0).to(self.device)] - self.origin_) @ whiten

    def _density(self, train: Activations, column: str, stage: int) -> float:
        chunks = train.chunks(device=self.device, only=(column,))
        moments = gather_moments(((unit(precise(chunk[column][:, stage])), None) for chunk in chunks), 1)
        values, _ = eigenbasis(moments.covariance)
        kept = values[values > values.amax() * len(values) * torch.finfo(values.dtype).eps]
        if len(kept) < 2:
            return 0.0
        shares = kept / kept.sum()
        return float(-(shares * shares.log()).sum()) / math.log(len(kept))

    def _joined(self, pooled: Tensor) -> Tensor:
        return torch.cat([unit(precise(pooled[:, stage])) for stage in self.stages_], dim=1)

    def _score(self, batch: Activations) -> Tensor:
        whitened = (self._joined(batch[PooledMaps().column]) - self.origin_) @ self.whiten_
        nearest = (self.means_.square().sum(dim=1) - 2 * whitened @ self.means_.T).amin(dim=1)
        return (whitened.square().sum(dim=1) + nearest).clamp(min=0)

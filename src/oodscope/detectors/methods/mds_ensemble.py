"""MDS ensemble: Mahalanobis distances at every stage of the network, weighted."""

from typing import Literal

import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import gather_moments
from oodscope.activations.probes.perturbation import SteppedMaps
from oodscope.activations.probes.probe import Probe
from oodscope.activations.probes.taps import PooledMaps
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import whitening


class MDSEnsemble(Detector):
    r"""A weighted sum of the distances to the nearest class Gaussian, one per stage.

    .. math:: s(x) = \sum_l \alpha_l\,d_l(x'_l), \qquad
              d_l(x) = \tfrac12\min_c (f_l-\mu_{lc})^\top\Sigma_l^{+}(f_l-\mu_{lc})

    :math:`f_l` is the pooled map of stage :math:`l`, :math:`x'_l` the image after a step towards the class that
    is nearest there (``SteppedMaps``). The weights are those of a logistic regression that separates validation
    outliers from held-out images by their :math:`d_l` (before the step); without such outliers each distance is
    divided by its standard deviation on held-out images.

    Parameters
    ----------
    stages : ``"all"``, as in the paper, or ``"first"``: one stage with the weight 1, as OpenOOD does.
    epsilon : length of the step, in pixels of [0, 1]; 0 spares its passes (one forward for all, then one
        backward and one forward per stage).
    """

    name = "mds_ensemble"
    paper = Paper(
        "A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial Attacks",
        "Lee et al.",
        "NeurIPS 2018",
    )
    needs = Needs.MAPS | Needs.GRADIENTS | Needs.TRAIN | Needs.LABELS
    cost = Cost.PASSES

    def __init__(self, stages: Literal["all", "first"] = "all", epsilon: float = 0.0014) -> None:
        self.stages = stages
        self.epsilon = epsilon

    @property
    def probes(self) -> tuple[Probe, ...]:
        if self.fitted and self.epsilon > 0:
            return (SteppedMaps(self.origin_, self.whiten_, self.means_, self.epsilon),)
        return (PooledMaps(),)

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        if self.stages not in ("all", "first"):
            raise DetectorError(f"mds_ensemble: stages must be 'all' or 'first', not {self.stages!r}")
        column = PooledMaps().column
        count = 1 if self.stages == "first" else train.shape(column)[1]
        gaussians = [self._gaussian(train, column, stage) for stage in range(count)]
        self.origin_, self.whiten_, self.means_ = (torch.stack(parts) for parts in zip(*gaussians))
        self.alpha_, self.level_ = torch.ones(1, dtype=self.origin_.dtype, device=self.device), 0.0
        if self.stages == "all":
            known = val.per_row(lambda chunk: self._distances(chunk[column]), device=self.device)
            outliers = None
            if ood_val is not None:
                outliers = ood_val.per_row(lambda chunk: self._distances(chunk[column]), device=self.device)
            weights, level = _weights(known.cpu(), None if outliers is None else outliers.cpu())
            self.alpha_, self.level_ = precise(weights.to(self.device)), level

    def _gaussian(self, train: Activations, column: str, stage: int) -> tuple[Tensor, Tensor, Tensor]:
        chunks = train.chunks(device=self.device, only=(column, "labels"))
        moments = gather_moments(((chunk[column][:, stage], chunk.labels) for chunk in chunks), train.num_classes)
        whiten = whitening(moments.within)
        # directions without variance are gone: fill up, so that stages of all widths stack
        whiten = torch.nn.functional.pad(whiten, (0, len(whiten) - whiten.shape[1]))
        present = moments.counts > 0
        # an absent class sits where some present one does, and so never changes a minimum
        owners = torch.where(present, torch.arange(len(present)), int(present.nonzero()[0]))
        means = (moments.means[owners] - moments.mean) @ whiten
        return tuple(precise(part.to(self.device)) for part in (moments.mean, whiten, means))  # type: ignore[return-value]

    def _score(self, batch: Activations) -> Tensor:
        return self._distances(batch[self.probes[0].column]) @ self.alpha_

    def _distances(self, pooled: Tensor) -> Tensor:
        found = []
        for stage, (origin, whiten, means) in enumerate(zip(self.origin_, self.whiten_, self.means_)):
            whitened = (precise(pooled[:, stage]) - origin) @ whiten
            nearest = (means.square().sum(dim=1) - 2 * whitened @ means.T).amin(dim=1)
            found.append((whitened.square().sum(dim=1) + nearest).clamp(min=0) / 2)
        return torch.stack(found, dim=1)


class MahalanobisLayers(MDSEnsemble):
    r"""Log-odds of a logistic regression on the distances of all stages, without a step of the image.

    .. math:: s(x) = \alpha_0 + \sum_l \alpha_l\,d_l(x)

    MD as EvG attacks it: ``mds_ensemble`` with weights learnt from validation outliers and ``epsilon`` 0, so that a
    score has a gradient. There the outliers come from the source of a test set. Without validation outliers each
    distance is divided by its standard deviation on held-out images.

    Parameters
    ----------
    parity : the probability :math:`\sigma(s)` in 32 bits, as EvG's evaluation scores it: all images beyond
        log-odds of 17 tie.
    """

    name = "mahalanobis_layers"
    needs = Needs.MAPS | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS

    def __init__(self, parity: bool = False) -> None:
        super().__init__("all", 0.0)
        self.parity = parity

    def _score(self, batch: Activations) -> Tensor:
        odds = super()._score(batch) + self.level_
        return precise(odds.float().sigmoid()) if self.parity else odds


def _weights(known: Tensor, outliers: Tensor | None) -> tuple[Tensor, float]:
    """One weight per column of distances, and what is added; a column that never varies weighs nothing."""
    spread = known.std(dim=0, correction=0)
    scale = torch.where(spread > 0, 1 / spread.clamp(min=torch.finfo(spread.dtype).tiny), torch.zeros(()))
    if outliers is None:
        return scale, 0.0
    rows = torch.cat([known, outliers]) * scale
    is_ood = torch.cat([torch.zeros(len(known)), torch.ones(len(outliers))])
    model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(rows.numpy(), is_ood.numpy())
    return torch.from_numpy(model.coef_[0]) * scale, float(model.intercept_[0])

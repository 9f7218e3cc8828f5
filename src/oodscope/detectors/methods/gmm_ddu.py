"""DDU: how unlikely a feature is under a Gaussian of each class, each with its own covariance."""

import math

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise

JITTERS = (0.0, 1e-6, 1e-4, 1e-2, 1.0)
"""Shares of the mean variance that are added to a covariance until it has a sound Cholesky factor."""

SOUND = 1e-8
"""The least square of a factor's diagonal, as a share of the mean variance: below it rounding made it positive."""


class ClassMixture(Detector):
    r"""Negative log-density of features under one Gaussian for each class with a full covariance of its own.

    .. math:: s(x) = -\log\sum_c \pi_c\,\mathcal N(h; \mu_c, \Sigma_c)

    with :math:`\pi_c` the share of the class among the training images. Classes of fewer images than features have a
    covariance without an inverse: a share of its mean variance is added to the diagonal, the least that helps. Meant
    for networks trained by the recipe ``ddu``, whose features keep distances. A class without images does not take
    part.
    """

    name = "gmm_ddu"
    paper = Paper("Deep Deterministic Uncertainty: A New Simple Baseline", "Mukhoti et al.", "CVPR 2023")
    needs = Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost = Cost.MOMENTS

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        moments = train.moments(self.device)
        width = moments.means.shape[1]
        scatters = torch.zeros(len(moments.counts), width, width, dtype=torch.float64)
        for chunk in train.chunks(device=self.device, only=("features", "labels")):
            features, labels = chunk.features.double().cpu(), chunk.labels.cpu()
            for label in labels.unique().tolist():
                if label >= 0:
                    centred = features[labels == label] - moments.means[label]
                    scatters[label] += centred.T @ centred
        present = (moments.counts > 0).nonzero().flatten()
        counts = moments.counts[present]
        factors = [_factor(scatters[label] / moments.counts[label]) for label in present]
        volumes = torch.stack([2 * factor.diagonal().log().sum() for factor in factors])
        eye = torch.eye(width, dtype=torch.float64)
        inverses = torch.stack([torch.linalg.solve_triangular(factor, eye, upper=False) for factor in factors])
        constants = (counts / counts.sum()).log() - (width * math.log(2 * math.pi) + volumes) / 2
        self.means_ = precise(moments.means[present].to(self.device))
        self.inverses_ = precise(inverses.to(self.device))
        self.constants_ = precise(constants.to(self.device))

    def _score(self, batch: Activations) -> Tensor:
        features = precise(batch.features)
        logs = []
        for mean, inverse, constant in zip(self.means_, self.inverses_, self.constants_):
            logs.append(constant - ((features - mean) @ inverse.T).square().sum(dim=1) / 2)
        return -torch.stack(logs, dim=1).logsumexp(dim=1)


def _factor(covariance: Tensor) -> Tensor:
    """The Cholesky factor of a covariance with as little added to its diagonal as it takes."""
    size = covariance.diagonal().mean().clamp(min=torch.finfo(torch.float64).tiny)
    for share in JITTERS:
        raised = covariance + share * size * torch.eye(len(covariance), dtype=covariance.dtype)
        factor, failed = torch.linalg.cholesky_ex(raised)
        if not failed and bool(factor.diagonal().square().min() > SOUND * size):
            return factor
    raise DetectorError("gmm_ddu: all training features of a class are equal, there is no density to fit")

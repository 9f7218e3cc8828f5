"""GMM: how unlikely a feature is under a mixture of Gaussians."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.detectors.bank import picked_rows, remembered
from oodscope.detectors.base import Cost, Detector, Needs, Paper
from oodscope.detectors.mixture import Mixture, fit_mixture, from_sums, starting_sums
from oodscope.detectors.precision import precise
from oodscope.detectors.spectrum import eigenbasis


class GMM(Detector):
    r"""Negative log-density of the feature's principal components under a Gaussian mixture; labels are not used.

    .. math:: s(x) = -\log\sum_{k=1}^K w_k\,\mathcal N(P^\top(h-\mu);\, m_k, \Sigma)

    :math:`P` holds the first ``dim`` principal axes of the training features, all components share the covariance
    :math:`\Sigma`. OpenOOD's defaults for the last layer are kept; its other two layers have weight 0 there.

    The mixture is fitted by expectation-maximisation from k-means++ seeds, until a step raises the mean
    log-density by less than ``tol`` or ``max_iter`` steps are done. A millionth of the mean variance is added to
    every variance.

    Parameters
    ----------
    components : :math:`K`; at most one per training image is used.
    dim : principal components kept; no more than there are directions in which features vary.
    rows : how many training images the mixture is fitted to, at most; the axes come from all of them.
    seed : which images, and which of them are seeds.
    """

    name = "gmm"
    paper = Paper("Full-Spectrum Out-of-Distribution Detection", "Yang, Zhou & Liu", "arXiv 2204.05306")
    needs = Needs.FEATURES | Needs.TRAIN
    cost = Cost.TRAINING

    def __init__(
        self,
        components: int = 50,
        dim: int = 50,
        rows: int = 50_000,
        tol: float = 1e-3,
        max_iter: int = 100,
        seed: int = 0,
    ) -> None:
        self.components = components
        self.dim = dim
        self.rows = rows
        self.tol = tol
        self.max_iter = max_iter
        self.seed = seed

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        for key in ("components", "dim", "rows", "max_iter"):
            if getattr(self, key) < 1:
                raise DetectorError(f"gmm: {key} must be at least 1, not {getattr(self, key)}")
        moments = train.moments(self.device)
        variances, axes = moments.derived("covariance", lambda: eigenbasis(moments.covariance))
        varying = int((variances > variances.max() * len(variances) * torch.finfo(torch.float64).eps).sum())
        if varying == 0:
            raise DetectorError("gmm: all training features are equal, there is no density to fit")
        dim = min(self.dim, varying)
        self.origin_ = precise(moments.mean.to(self.device))
        self.axes_ = precise(axes[:, :dim].to(self.device))
        chosen = picked_rows(self.name, train, min(1.0, self.rows / len(train)), self.seed)
        points = remembered(train, "features", chosen, self.device, self._project)
        floor = 1e-6 * float(variances[:dim].mean())
        generator = torch.Generator().manual_seed(self.seed)
        masses, sums = starting_sums(points, min(self.components, len(points)), generator)
        start = from_sums(masses, sums, points.T @ points, floor)
        mixture = fit_mixture(start, points, floor=floor, tol=self.tol, max_iter=self.max_iter)
        self.weights_, self.means_, self.covariance_ = mixture

    def _score(self, batch: Activations) -> Tensor:
        mixture = Mixture(self.weights_, self.means_, self.covariance_)
        return -mixture.log_densities(self._project(batch.features)).logsumexp(dim=1)

    def _project(self, features: Tensor) -> Tensor:
        return (precise(features) - self.origin_) @ self.axes_

"""RMDS and RMDS++: Mahalanobis distance to the nearest class, relative to that to all images."""

import torch
from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import Moments
from oodscope.base.paper import Paper
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import eigenbasis, whitening
from oodscope.detectors.methods.mds import ClassGaussians


class RMDS(ClassGaussians):
    r"""How much farther the nearest class is than the training images at large, in squared Mahalanobis distance.

    .. math:: s(x) = \min_c\,(h-\mu_c)^\top\Sigma^{+}(h-\mu_c) - (h-\mu)^\top\Sigma_0^{+}(h-\mu)

    with the class means :math:`\mu_c` and their common covariance :math:`\Sigma`, as in MDS, and the mean
    :math:`\mu` and covariance :math:`\Sigma_0` of all training images. What is unusual for every class alike
    cancels: only directions in which class means differ are left, at most C - 1 of them.

    Classes without training images do not take part.
    """

    name = "rmds"
    paper = Paper(
        "A Simple Fix to Mahalanobis Distance for Improving Near-OOD Detection", "Ren et al.", "arXiv 2106.09022"
    )

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        moments = self._moments(train)
        whiten = self._whitening(moments)
        offsets = (moments.means - moments.mean)[moments.counts > 0]
        shares = moments.counts[moments.counts > 0].unsqueeze(1) / moments.total
        if _inside(offsets, whiten):
            means = offsets @ whiten
            # in whitened coordinates the covariances are I and I + B: both distances differ by B (I + B)^-1 only,
            # so that two large numbers need not be subtracted
            spread, turn = eigenbasis(means.T @ (shares * means))
            kept = spread > spread.max() * len(spread) * torch.finfo(torch.float64).eps
            basis, means, curvature = whiten @ turn[:, kept], means @ turn[:, kept], spread[kept] / (1 + spread[kept])
        else:
            basis, means, curvature = _both(moments, whiten, offsets)
        self.origin_, self.basis_, self.means_, self.curvature_ = (
            precise(part.to(self.device)) for part in (moments.mean, basis, means, curvature)
        )

    def _score(self, batch: Activations) -> Tensor:
        turned = self._centred(batch) @ self.basis_
        to_means = self.means_.square().sum(dim=1) - 2 * (turned @ self.means_.T)
        return turned.square() @ self.curvature_ + to_means.amin(dim=1)


def _inside(offsets: Tensor, whiten: Tensor) -> bool:
    """Whether class means differ only where classes vary within, as they do unless images are fewer than features."""
    directions = whiten / torch.linalg.vector_norm(whiten, dim=0)
    outside = offsets - (offsets @ directions) @ directions.T
    return bool(outside.abs().max() <= 1e-8 * offsets.abs().max())


def _both(moments: Moments, whiten: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both distances side by side, the second counted negative."""
    apart = whitening(moments.covariance)
    means = torch.cat([offsets @ whiten, offsets.new_zeros(len(offsets), apart.shape[1])], dim=1)
    signs = torch.cat([apart.new_ones(whiten.shape[1]), -apart.new_ones(apart.shape[1])])
    return torch.cat([whiten, apart], dim=1), means, signs


class RMDSPP(RMDS):
    r"""RMDS of features of length one.

    .. math:: s(x) = \min_c\,(\hat h-\mu_c)^\top\Sigma^{+}(\hat h-\mu_c) - (\hat h-\mu)^\top\Sigma_0^{+}(\hat h-\mu),
              \qquad \hat h = h/\lVert h\rVert

    with all means and covariances of the normalised training features, as in ``mahalanobis_pp`` and ``rmds``. A
    feature of zeros stays zero. Classes without training images do not take part.
    """

    name = "rmds_pp"
    paper = Paper(
        "Mahalanobis++: Improving OOD Detection via Feature Normalization",
        "Müller & Hein",
        "ICML 2025",
    )
    normalised = True

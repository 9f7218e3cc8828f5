"""MDS: Mahalanobis distance to the nearest class."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.detectors.base import Paper
from oodscope.detectors.gaussian import ClassGaussians
from oodscope.detectors.precision import precise


class MDS(ClassGaussians):
    r"""Squared Mahalanobis distance to the nearest class mean, one covariance for all classes.

    .. math:: s(x) = \min_c\,(h-\mu_c)^\top\Sigma^{+}(h-\mu_c), \qquad
              \Sigma = \frac1N\sum_c\sum_{i:y_i=c}(h_i-\mu_c)(h_i-\mu_c)^\top

    Classes without training images do not take part.
    """

    name = "mds"
    paper = Paper(
        "A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial Attacks",
        "Lee et al.",
        "NeurIPS 2018",
    )

    def _fit(self, train: Activations, val: Activations, ood_val: Activations | None) -> None:
        moments = self._moments(train)
        whiten = self._whitening(moments)
        self.origin_ = precise(moments.mean.to(self.device))
        self.whiten_ = precise(whiten.to(self.device))
        means = moments.means[moments.counts > 0] - moments.mean
        self.means_ = precise((means @ whiten).to(self.device))

    def _score(self, batch: Activations) -> Tensor:
        whitened = self._centred(batch) @ self.whiten_
        # one product instead of torch.cdist, which copies both sides and lets memory pile up between chunks
        to_means = self.means_.square().sum(dim=1) - 2 * (whitened @ self.means_.T)
        return (whitened.square().sum(dim=1) + to_means.amin(dim=1)).clamp(min=0)

"""MDS, Mahalanobis++ and their family: Mahalanobis distance to the nearest class, of features of changed length."""

from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import Moments, gather_moments
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.neighbors import radial, unit
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.math.principal import whitening


class ClassGaussians(Detector):
    """Class means and one covariance for all classes, of the features as they are or ``normalised``.

    Subclasses learn from ``_moments`` and ``_whitening``, keep the common mean as ``origin_`` and score
    ``_centred`` rows: around the common mean, far-off features do not cancel in squared distances.
    """

    needs: ClassVar[Needs] = Needs.FEATURES | Needs.TRAIN | Needs.LABELS
    cost: ClassVar[Cost] = Cost.MOMENTS
    normalised: ClassVar[bool] = False
    origin_: Tensor

    def _moments(self, train: Activations) -> Moments:
        return train.moments(self.device, normalised=self.normalised)

    def _whitening(self, moments: Moments) -> Tensor:
        """Coordinates in which every class is round; decomposed once for all detectors of the family."""
        return moments.derived("within", lambda: whitening(moments.within))

    def _centred(self, batch: Activations) -> Tensor:
        features = precise(batch.features)
        return (unit(features) if self.normalised else features) - self.origin_


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


class MahalanobisPP(MDS):
    r"""MDS of features of length one: lengths vary too much between classes for one common Gaussian shape.

    .. math:: s(x) = \min_c\,(\hat h-\mu_c)^\top\Sigma^{+}(\hat h-\mu_c), \qquad \hat h = h/\lVert h\rVert

    with class means :math:`\mu_c` and common covariance :math:`\Sigma` of the normalised training features. A
    feature of zeros stays zero. Classes without training images do not take part.
    """

    name = "mahalanobis_pp"
    paper = Paper(
        "Mahalanobis++: Improving OOD Detection via Feature Normalization",
        "Müller & Hein",
        "ICML 2025",
    )
    normalised = True


class Mahalanobis(MDS):
    r"""Radially scaled MDS, an unverified form; the classical Mahalanobis detector is ``mds``.

    The lengths of features are drawn towards one as far as :math:`\beta` says:

    .. math:: s(x) = \min_c\,(\varphi-\mu_c)^\top\Sigma^{+}(\varphi-\mu_c), \qquad \varphi = h/\lVert h\rVert^\beta

    with class means :math:`\mu_c` and common covariance :math:`\Sigma` of the training images' :math:`\varphi`.
    :math:`\beta=0` is ``mds``, :math:`\beta=1` is ``mahalanobis_pp``. A feature of zeros stays zero.

    The paper was known by its abstract when this was written: it chooses :math:`\beta` from the geometry of ID
    features; here the tracks ``id_only`` and ``ood_val`` search it.

    Parameters
    ----------
    beta : 0 leaves the lengths of features, 1 makes them equal, more turns long ones into short ones.
    """

    name = "mahalanobis"
    paper = Paper(
        "A Geometry-Based View of Mahalanobis OOD Detection", "Janiak, Binkowski & Kajdanowicz", "arXiv 2510.15202"
    )
    unverified_form = True
    grid = {"beta": (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)}

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def _moments(self, train: Activations) -> Moments:
        if self.beta in (0, 1):
            # shared with the other detectors of the family
            return train.moments(self.device, normalised=self.beta == 1)
        chunks = train.chunks(device=self.device, only=("features", "labels"))
        return gather_moments(
            ((radial(precise(chunk.features), self.beta), chunk.labels) for chunk in chunks), train.num_classes
        )

    def _centred(self, batch: Activations) -> Tensor:
        return radial(precise(batch.features), self.beta) - self.origin_

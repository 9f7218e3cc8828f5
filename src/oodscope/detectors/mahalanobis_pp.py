"""Mahalanobis++: Mahalanobis distance of normalised features to the nearest class."""

from oodscope.detectors.base import Paper
from oodscope.detectors.mds import MDS


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

"""RMDS++: relative Mahalanobis distance of normalised features."""

from oodscope.detectors.base import Paper
from oodscope.detectors.rmds import RMDS


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

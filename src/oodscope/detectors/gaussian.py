"""ClassGaussians: detectors that see every class as a Gaussian, all of one shape."""

from typing import ClassVar

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.moments import Moments
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.neighbors import unit
from oodscope.detectors.precision import precise
from oodscope.detectors.spectrum import whitening


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

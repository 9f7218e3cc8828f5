"""MixedFeatures: what a network makes of an image blended with one of another class."""

from torch import Tensor

from oodscope.activations.probes.probe import SetProbe
from oodscope.base.errors import ActivationError
from oodscope.data.imageset import ImageSet
from oodscope.data.mixtures import SHARES, mixtures


class MixedFeatures(SetProbe):
    """Features of the mixtures of each image, ``[N, shares, D]``; see ``oodscope.data.mixtures``.

    Parameters
    ----------
    seed : which image of another class each is mixed with.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @property
    def column(self) -> str:
        return f"mixed_features(seed={self.seed})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset(f"mixture {share:g}, seed {self.seed}" for share in SHARES)

    def made_of(self, images: ImageSet) -> ImageSet:
        return mixtures(images, SHARES, self.seed)

    def of_made(self, logits: Tensor, features: Tensor | None) -> Tensor:
        if features is None:
            raise ActivationError("mixtures were to be compared by their features, and this network has none")
        return features.reshape(-1, len(SHARES), features.shape[1])

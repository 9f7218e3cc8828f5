"""Health: whether a trained generator may be used."""

import logging
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from oodscope.base.config import StrictModel
from oodscope.metrics.generated.frechet import Gaussian, frechet_distance

_LOG = logging.getLogger(__name__)
COLLAPSED = 0.5
"""Below this share of the real distance, most of the variety is gone."""


class Variety(StrictModel):
    """Mean distance between two drawn images, and between two real ones: root mean square over pixels in [0, 1]."""

    drawn: float
    real: float

    @property
    def share(self) -> float:
        """The one as a share of the other: near 1 for a generator with the variety of its training images."""
        return self.drawn / self.real if self.real > 0 else 1.0

    def warn(self) -> None:
        """Say so if the generator collapsed."""
        if self.share < COLLAPSED:
            _LOG.warning(
                "the generator has collapsed: two of its images differ by %.3f, two real ones by %.3f. Raise r1 "
                "tenfold, lower learning_rate, or train on more images",
                *(self.drawn, self.real),
            )


def measure_variety(drawn: Tensor, real: Tensor) -> Variety:
    """From some hundred images of each kind, ``[N, C, H, W]`` in [0, 1]."""
    return Variety(drawn=mean_distance(drawn), real=mean_distance(real))


def mean_distance(images: Tensor) -> float:
    """Between two of these images: root mean square over pixels."""
    flat = images.flatten(1).float()
    return float(torch.pdist(flat).mean() / flat.shape[1] ** 0.5)


_PAIRED = 512
"""Images of a class that are compared with each other; pairs grow with the square."""

Features = Callable[[Tensor], Tensor]
"""Images in [0, 1] to features ``[N, D]`` of a network that took no part in the training."""


class Health(StrictModel):
    """What reveals a collapsed generator.

    Parameters
    ----------
    variety : mean distance between two drawn images and between two real ones. Of a generator that knows classes, both
        of one class: a single image per class would look varied across classes.
    frechet : Fréchet distance of features between drawn and real images; ``None`` where no features were given.
    spread : the trace of the real features' covariance. A generator that always draws the mean of the features has just
        this distance, so one at or beyond it has learnt nothing about the images.
    """

    variety: Variety
    frechet: float | None = None
    spread: float | None = None

    @property
    def collapsed(self) -> str | None:
        """Why the generator is not to be used; ``None`` where it may be."""
        if self.variety.share < COLLAPSED:
            return f"two of its images differ by {self.variety.drawn:.3f}, two real ones by {self.variety.real:.3f}"
        if self.frechet is not None and self.spread is not None and self.frechet >= self.spread:
            return (
                f"its Fréchet distance to real images is {self.frechet:.4g}; always drawing their mean "
                f"would give {self.spread:.4g}"
            )
        return None

    def warn(self, what: str) -> None:
        """Say so if it collapsed."""
        if self.collapsed is not None:
            _LOG.warning("%s has collapsed and is not used: %s", what, self.collapsed)


def measure_health(
    drawn: Tensor,
    real: Tensor,
    classes: tuple[Tensor, Tensor] | None = None,
    features: Features | None = None,
    batch_size: int = 256,
) -> Health:
    """From some hundred images of each kind or more, ``[N, C, H, W]`` in [0, 1].

    Parameters
    ----------
    classes : of the drawn and of the real images, where the generator knows classes.
    """
    ours, theirs = (None, None) if classes is None else classes
    variety = Variety(drawn=_within(drawn, ours), real=_within(real, theirs))
    if features is None:
        return Health(variety=variety)
    seen = [Gaussian.of(_features(images, features, batch_size)) for images in (drawn, real)]
    return Health(variety=variety, frechet=frechet_distance(*seen), spread=float(np.trace(seen[1].covariance)))


def _within(images: Tensor, classes: Tensor | None) -> float:
    """The mean distance between two images of one class, averaged over classes."""
    groups = [images] if classes is None else [images[classes == each] for each in torch.unique(classes)]
    return float(np.mean([mean_distance(group[:_PAIRED]) for group in groups if len(group) > 1]))


@torch.no_grad()
def _features(images: Tensor, features: Features, batch_size: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return torch.cat([features(part).cpu() for part in torch.split(images, batch_size)]).double().numpy()

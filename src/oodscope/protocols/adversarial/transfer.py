"""Transfer: what every detector says of the images found against every other one."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from oodscope.generation.variations.base import Variation
from oodscope.metrics.scores import FloatArray
from oodscope.protocols.adversarial.attacked import Attacked
from oodscope.protocols.adversarial.frame import BATCH


def found_images(variation: Variation, points: Tensor, images: Tensor) -> Iterator[Tensor]:
    """The images that points stand for, some at a time, on the device of the variation's parameters."""
    for start in range(0, len(points), BATCH):
        part = slice(start, start + BATCH)
        own = images[part].to(points.device) if variation.conditional else None
        with torch.no_grad():
            yield variation(points[part], own)


def transfer(
    attacked: Sequence[Attacked], variation: Variation, points: Mapping[str, Tensor], images: Tensor
) -> dict[tuple[str, str], FloatArray]:
    """Scores by (judge, detector that the images were found against).

    Parameters
    ----------
    points : what each detector's own search found.
    """
    scores = {}
    for against in attacked:
        device = against.scorer.device
        pixels = list(found_images(variation.to(device), points[against.name].to(device), images))
        for judge in attacked:
            scores[judge.name, against.name] = judge.score(pixels)
    return scores

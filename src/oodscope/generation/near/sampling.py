"""Drawing from a generator of latents, the same images whenever they are asked for."""

import torch
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.data.imageset import UNLABELLED
from oodscope.generation.gan.real import unit_range
from oodscope.models.generators.saved import LatentGenerator
from oodscope.training.loop.randomness import generator as random_numbers


@torch.no_grad()
def sample(generator: LatentGenerator, count: int, seed: int, batch_size: int = 256) -> tuple[Tensor, Tensor]:
    """Images ``[count, C, H, W]`` in [0, 1] and the class that each was asked for, on the generator's device.

    Latents and classes are a function of ``seed`` and ``count``, the same on every device; an image does not depend on
    the others of its batch.

    Parameters
    ----------
    generator : ready to draw (``eval()``), as ``load_generator`` and a finished training give it. One that knows
        classes is asked for all in turn; otherwise all classes are -1.
    """
    if generator.training:
        raise ModelError("the generator is in training mode, in which images depend on their batch; call eval() first")
    device = next(generator.parameters()).device
    latents = torch.randn(count, generator.latent_dimension, generator=random_numbers("near sample", seed)).to(device)
    asked = torch.arange(count, device=device) % generator.classes if generator.classes else None
    classes = torch.full((count,), UNLABELLED, device=device) if asked is None else asked
    parts = [generator(*part) for part in zip(torch.split(latents, batch_size), torch.split(classes, batch_size))]
    return unit_range(torch.cat(parts)).clamp(0, 1), classes

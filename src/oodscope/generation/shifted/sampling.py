"""Redrawing images, the same way whenever it is asked for."""

import torch
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.generation.gan.real import unit_range
from oodscope.models.generators.pix2pix import UnetGenerator
from oodscope.training.loop.randomness import generator as random_numbers


@torch.no_grad()
def shift(generator: UnetGenerator, images: Tensor, seed: int, batch_size: int = 256) -> Tensor:
    """Images ``[N, C, H, W]`` in [0, 1], redrawn, on the generator's device; labels stay those of ``images``.

    Parameters
    ----------
    generator : ready to draw (``eval()``), as ``load_generator`` and a finished training give it. Its dropout stays on.
    seed : of the dropout; with ``images`` and ``batch_size`` it decides every pixel on a device.
    """
    if generator.training:
        raise ModelError("the generator is in training mode, in which images depend on their batch; call eval() first")
    device = next(generator.parameters()).device
    draws = random_numbers("shift", seed, device=device)
    parts = [generator(part.to(device) * 2 - 1, draws) for part in torch.split(images, batch_size)]
    return unit_range(torch.cat(parts)).clamp(0, 1)

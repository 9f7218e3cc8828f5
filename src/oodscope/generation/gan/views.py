r"""Differentiable views: what the discriminator is shown of an image, real or generated."""

import torch
from torch import Tensor

_SHIFT = 1 / 8
_COVER = 1 / 2


def view(images: Tensor, draws: torch.Generator, share: float) -> Tensor:
    """Some images in other colours, shifted and partly covered, each on its own terms; gradients pass through.

    If only real images were varied, the generator would learn the variations; as both are, it learns the images
    (Zhao et al., "Differentiable Augmentation for Data-Efficient GAN Training", NeurIPS 2020).

    Parameters
    ----------
    images : ``[N, C, H, W]``, black at -1 and white at 1.
    draws : on the images' device.
    share : of the images that are varied. Below .8 or so the generator cannot take the variations for part of the
        images (Karras et al., "Training Generative Adversarial Networks with Limited Data", NeurIPS 2020).
    """
    chance = torch.rand(8, len(images), 1, 1, 1, generator=draws, device=images.device)
    varied = covered(shifted(recoloured(images, *chance[:3]), *chance[3:5]), *chance[5:7])
    return torch.where(chance[7] < share, varied, images)


def recoloured(images: Tensor, brightness: Tensor, saturation: Tensor, contrast: Tensor) -> Tensor:
    """Brightness moved by up to a quarter of the range, saturation by a factor in [0, 2], contrast in [½, 1½].

    Each argument is uniform in [0, 1], ``[N, 1, 1, 1]``, and changes nothing at one half.
    """
    images = images + (brightness - 0.5)
    grey = images.mean(1, keepdim=True)
    images = torch.lerp(grey, images, 2 * saturation) if images.shape[1] > 1 else images
    return torch.lerp(images.mean((1, 2, 3), keepdim=True), images, contrast + 0.5)


def shifted(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Moved by up to an eighth of the side each way; what comes in is grey. Nothing moves at one half."""
    side = images.shape[2]
    reach = int(side * _SHIFT + 0.5)
    line = torch.arange(side, device=images.device)

    def selection(chance: Tensor) -> Tensor:
        # a product with a matrix of zeros and ones, because gathering has a slow gradient
        step = (chance * (2 * reach + 1)).floor().clamp(max=2 * reach) - reach
        return (line.view(-1, 1) - step == line).to(images.dtype)

    return selection(down) @ images @ selection(right).transpose(2, 3)


def covered(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """A grey square of half the side, its centre anywhere in the image."""
    side = images.shape[2]
    half = side * _COVER / 2
    line = torch.arange(side, device=images.device) + 0.5
    rows = (line.view(-1, 1) - down * side).abs() < half
    columns = (line.view(1, -1) - right * side).abs() < half
    return images * (~(rows & columns)).to(images.dtype)

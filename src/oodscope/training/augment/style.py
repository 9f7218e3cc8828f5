"""Style: the textures of another image in the place of an image's own, its shapes kept."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from oodscope.training.augment.base import Augmentation

_TINY = 1e-6


class StyleSwap(Augmentation):
    r"""The amplitudes of another image's Fourier transform with the phases of this one, its mean colours too.

    .. math:: \tilde x = \mathcal F^{-1}\bigl(((1-a)\lvert\hat x\rvert + a\lvert\hat t\rvert)\,
              e^{i\varphi(\hat x)}\bigr), \qquad a \sim U(.5, 1)

    then means and deviations of each channel are moved to those of :math:`t` by the same share. A stand-in for
    Stylized-ImageNet (Geirhos et al., ICLR 2019), which needs networks and paintings that are not here, and never
    called by that name. Textures are those of other images of the batch.

    Parameters
    ----------
    share : of the images that change: 1 is all, .5 half of each batch.
    """

    kind: ClassVar[str] = "style"

    share: float = Field(default=1.0, ge=0, le=1)

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        chance = torch.rand(3, len(pixels), generator=generator, device=generator.device).to(pixels.device)
        amount = (0.5 + 0.5 * chance[1]) * (chance[2] < self.share)
        images = pixels.float() / 255
        made = swapped(images, images[_others(chance[0])], amount.view(-1, 1, 1, 1))
        return (made * 255).round().to(torch.uint8)


def _others(chance: Tensor) -> Tensor:
    """The row of another image for each, from a random number of [0, 1)."""
    count = len(chance)
    ahead = 1 + (chance * (count - 1)).long()
    return (torch.arange(count, device=chance.device) + ahead) % count


def swapped(images: Tensor, other: Tensor, amount: Tensor) -> Tensor:
    """Images of [0, 1] with a share ``amount`` of the texture and colours of ``other``."""
    own, theirs = torch.fft.rfft2(images), torch.fft.rfft2(other)
    size = own.abs()
    mixed = own * (((1 - amount) * size + amount * theirs.abs()) / size.clamp(min=_TINY))
    made = torch.fft.irfft2(mixed, s=images.shape[2:])
    moments = [(each.mean(dim=(2, 3), keepdim=True), each.std(dim=(2, 3), keepdim=True)) for each in (images, other)]
    mean, deviation = ((1 - amount) * one + amount * two for one, two in zip(*moments))
    standard = (made - made.mean(dim=(2, 3), keepdim=True)) / made.std(dim=(2, 3), keepdim=True).clamp(min=_TINY)
    return torch.where(amount > 0, (standard * deviation + mean).clamp(0, 1), images)

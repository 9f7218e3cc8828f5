"""PixMix: images are mixed again and again with fractals and with varied copies of themselves."""

from typing import ClassVar, Literal

import torch
from pydantic import Field, PrivateAttr
from torch import Tensor

from oodscope.training.augment.base import Augmentation, Placement
from oodscope.training.augment.fractals import draw_fractals
from oodscope.training.augment.operations import OPERATIONS, apply_operations, by_operation

LEVELS = 10
MARGIN = 4
"""Pixels by which a mixing picture is larger than what is cut from it."""

ENHANCED = ("brightness", "color", "contrast", "sharpness")

_TINY = 1e-37


class PixMix(Augmentation):
    r"""Up to four rounds of adding or multiplying another picture.

    .. math:: \mathrm{add}: \tfrac12\bigl(a(2x-1) + b(2y-1) + 1\bigr), \qquad
              \mathrm{multiply}: \tfrac12 (2x)^a (2y)^b

    It starts from the image or a varied copy of it; each round takes a varied copy or the image's mixing picture, and
    is cut to [0, 1]. One time in two :math:`a \sim \mathrm{Beta}(\beta, 1)` and :math:`b \sim \mathrm{Beta}(1, \beta)`,
    otherwise :math:`a = 1 + \mathrm{Beta}(1, \beta)` and :math:`b = -\mathrm{Beta}(1, \beta)`. Hendrycks et al.,
    "PixMix: Dreamlike Pictures Comprehensively Improve Safety Measures", CVPR 2022, with severity 3 and
    :math:`\beta = 3` for CIFAR. The authors mix with 18,938 fractals and feature visualisations; here fractals are
    drawn from a seed, so rows of this augmentation do not reproduce the published ones, unless ``source`` is
    ``pictures`` and the training is given theirs.

    Parameters
    ----------
    source : what to mix with: ``fractals`` drawn here, or the ``pictures`` that the training is given.
    severity : the strongest level of the operations, of ten.
    beta : :math:`\beta`.
    rounds : the most rounds; each image draws how many, from none on.
    pictures : how many fractals to draw.
    seed : of the fractals.
    """

    kind: ClassVar[str] = "pixmix"

    source: Literal["fractals", "pictures"] = "fractals"
    severity: float = Field(default=3.0, gt=0.1, le=LEVELS)
    beta: float = Field(default=3.0, gt=0)
    rounds: int = Field(default=4, ge=0)
    pictures: int = Field(default=1000, gt=0)
    seed: int = Field(default=0, ge=0)

    _given: Tensor | None = PrivateAttr(default=None)

    @property
    def wants_pictures(self) -> bool:
        return self.source == "pictures"

    def placed(self, place: Placement) -> Augmentation:
        if not self.wants_pictures:
            return self
        made = self.model_copy()
        made._given = place.pictures
        return made

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        count, turns = len(pixels), self.rounds
        # all random numbers of a batch at once: a picture and its window, whether to begin with a copy, the copy, the
        # number of rounds; then in each round what it mixes with, a copy, two coefficients and two coins
        drawn = torch.rand(8 + 8 * turns, count, generator=generator, device=generator.device).to(pixels.device)
        first, later = drawn[:8], drawn[8:].view(turns, 8, count)
        chances = torch.cat([first[4:7].unsqueeze(0), later[:, 1:4]]).transpose(0, 1).reshape(3, -1)
        # every copy is one of the image itself, so that all are made together
        copies = self._varied(pixels.repeat(turns + 1, 1, 1, 1), chances).view(turns + 1, *pixels.shape)
        coins = (drawn < 0.5).view(*drawn.shape, 1, 1, 1)
        mixed = torch.where(coins[3], pixels, copies[0]).float() / 255
        repeated = (first[7].view(-1, 1, 1, 1) * (turns + 1)).floor()
        if turns:
            coins = coins[8:].view(turns, 8, count, 1, 1, 1)
            y = torch.where(coins[:, 0], copies[1:], self._mixing(pixels, first[:3])).float() / 255
            a, b = coefficients(later[:, 4:6].transpose(0, 1).reshape(2, turns, count, 1, 1, 1), coins[:, 6], self.beta)
        for place in range(turns):
            sum_, product = (mix(mixed, y[place], a[place], b[place]) for mix in (added, multiplied))
            combined = torch.where(coins[place, 7], sum_, product).clamp_(0, 1)
            mixed = torch.where(repeated > place, combined, mixed)
        return (255 * mixed).round_().to(torch.uint8)

    def _mixing(self, pixels: Tensor, chance: Tensor) -> Tensor:
        """A window of a random picture for each image."""
        channels, height, width = pixels.shape[1:]
        side = max(height, width) + MARGIN
        every = self._given
        if every is None:
            every = draw_fractals(self.pictures, side, self.seed, str(pixels.device))
        chosen = (chance[0] * len(every)).long()
        top = (chance[1] * (side - height + 1)).long().view(-1, 1) + torch.arange(height, device=pixels.device)
        left = (chance[2] * (side - width + 1)).long().view(-1, 1) + torch.arange(width, device=pixels.device)
        windows = every.permute(0, 2, 3, 1)[chosen.view(-1, 1, 1), top.unsqueeze(2), left.unsqueeze(1)]
        return windows.permute(0, 3, 1, 2)[:, :channels]

    def _varied(self, pixels: Tensor, chance: Tensor) -> Tensor:
        """One operation of thirteen on each image, at a level up to the severity."""
        operation = 1 + (chance[0] * (len(OPERATIONS) - 1)).long()
        level = (0.1 + chance[1] * (self.severity - 0.1)) / LEVELS
        height, width = pixels.shape[2:]
        slope = {"shear_x": 0.3, "shear_y": 0.3, "translate_x": width / 3, "translate_y": height / 3, "rotate": 30.0}
        slope |= {"posterize": 4.0, "solarize": 256.0, **dict.fromkeys(ENHANCED, 1.8)}
        whole = dict.fromkeys(("translate_x", "translate_y", "rotate", "posterize", "solarize"), 1.0)
        # factors of enhancements are absolute, and have no sign to draw
        offset = {"posterize": 4.0, "solarize": 256.0, **dict.fromkeys(ENHANCED, -0.9)}
        turned = {"posterize": -1.0, "solarize": -1.0, **dict.fromkeys(ENHANCED, 1.0)}
        there, back = ({**dict.fromkeys(slope, sign), **turned} for sign in (1.0, -1.0))
        constants = by_operation([slope, whole, offset, there, back], pixels.device)[:, operation]
        amount = constants[0] * level
        amount = torch.where(constants[1] > 0, amount.floor(), amount)
        direction = torch.where(chance[2] < 0.5, constants[3], constants[4])
        return apply_operations(pixels, operation, direction * amount + constants[2])


def added(x: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The sum of two pictures in [0, 1] about their middle grey."""
    return (a * (2 * x - 1) + b * (2 * y - 1) + 1) / 2


def multiplied(x: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The product of powers of two pictures in [0, 1]."""
    return (2 * x) ** a * (2 * y).clamp(min=_TINY) ** b / 2


def coefficients(chance: Tensor, averaging: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """``a`` and ``b`` from two uniform numbers, by inverting the distribution functions of Beta."""
    near_one, near_zero = chance[0] ** (1 / beta), 1 - chance[1] ** (1 / beta)
    a = torch.where(averaging, near_one, 2 - near_one)
    return a, torch.where(averaging, near_zero, -near_zero)

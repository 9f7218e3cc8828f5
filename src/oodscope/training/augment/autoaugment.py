"""AutoAugment: two operations with their own chances and strengths, by one of 25 learnt pairs."""

from typing import ClassVar

import torch
from torch import Tensor

from oodscope.training.augment.base import Augmentation
from oodscope.training.augment.operations import NUMBER, apply_operations, both_ways, constants

BINS = 10
"""Steps between no change and the strongest."""

POLICY = (
    ("invert .1 0", "contrast .2 6"), ("rotate .7 2", "translate_x .3 9"), ("sharpness .8 1", "sharpness .9 3"),
    ("shear_y .5 8", "translate_y .7 9"), ("autocontrast .5 0", "equalize .9 0"), ("shear_y .2 7", "posterize .3 7"),
    ("color .4 3", "brightness .6 7"), ("sharpness .3 9", "brightness .7 9"), ("equalize .6 0", "equalize .5 0"),
    ("contrast .6 7", "sharpness .6 5"), ("color .7 7", "translate_x .5 8"), ("equalize .3 0", "autocontrast .4 0"),
    ("translate_y .4 3", "sharpness .2 6"), ("brightness .9 6", "color .2 8"), ("solarize .5 2", "invert 0 0"),
    ("equalize .2 0", "autocontrast .6 0"), ("equalize .2 0", "equalize .6 0"), ("color .9 9", "equalize .6 0"),
    ("autocontrast .8 0", "solarize .2 8"), ("brightness .1 3", "color .7 0"), ("solarize .4 5", "autocontrast .9 0"),
    ("translate_y .9 9", "translate_y .7 9"), ("autocontrast .9 0", "solarize .8 3"), ("equalize .8 0", "invert .1 0"),
    ("translate_y .7 9", "autocontrast .9 0"),
)  # fmt: skip
"""The policy found on CIFAR-10: operation, probability and step of both places of each pair."""


class AutoAugment(Augmentation):
    """One of 25 pairs of operations for each image, every operation with its own probability and strength.

    Cubuk et al., "AutoAugment: Learning Augmentation Policies from Data", CVPR 2019: the policy that they found on
    CIFAR-10, with torchvision's ranges of magnitudes, bilinear interpolation and black edges. An inversion is a
    solarisation of all levels. The human-centric study's row is *Fast* AutoAugment, which has other policies.
    """

    kind: ClassVar[str] = "autoaugment"

    def __call__(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        chance = torch.rand(5, len(pixels), generator=generator, device=generator.device).to(pixels.device)
        pair = (chance[0] * len(POLICY)).long()
        for place in (0, 1):
            pixels = self._apply(pixels, place, pair, chance[1 + place], chance[3 + place] < 0.5)
        return pixels

    def _apply(self, pixels: Tensor, place: int, pair: Tensor, chance: Tensor, positive: Tensor) -> Tensor:
        parts = [each[place].split() for each in POLICY]
        inverted = [name == "invert" for name, _, _ in parts]
        numbers = [float(NUMBER["solarize" if name == "invert" else name]) for name, _, _ in parts]
        shares = [float(share) for _, share, _ in parts]
        # inversions have a step of their own, beyond the strongest
        steps = [float(BINS if whole else int(step)) for whole, (_, _, step) in zip(inverted, parts)]
        table = constants((tuple(numbers), tuple(shares), tuple(steps)), pixels.device)[:, pair]
        operation = torch.where(chance < table[1], table[0], float(NUMBER["identity"])).long()
        strength = self._strengths(pixels)[positive.long(), table[2].long(), operation]
        return apply_operations(pixels, operation, strength)

    def _strengths(self, pixels: Tensor) -> Tensor:
        height, width = pixels.shape[2:]
        amounts: list[dict[str, float]] = []
        for step in range(BINS):
            share = step / (BINS - 1)
            amounts.append(
                {
                    "shear_x": 0.3 * share,
                    "shear_y": 0.3 * share,
                    "translate_x": 150 / 331 * width * share,
                    "translate_y": 150 / 331 * height * share,
                    "rotate": 30 * share,
                    "brightness": 0.9 * share,
                    "color": 0.9 * share,
                    "contrast": 0.9 * share,
                    "sharpness": 0.9 * share,
                    "posterize": 8.0 - round(4 * share),
                    "solarize": 255 * (1 - share),
                }
            )
        return both_ways([*amounts, {"solarize": 0.0}], pixels.device)

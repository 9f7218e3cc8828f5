"""The fourteen operations that RandAugment and AugMix choose from, each image with an operation of its own."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample

OPERATIONS = (
    "identity", "shear_x", "shear_y", "translate_x", "translate_y", "rotate", "brightness", "color", "contrast",
    "sharpness", "posterize", "solarize", "autocontrast", "equalize",
)  # fmt: skip
"""Their names; an operation's number is its place."""

SIGNED = tuple(number for number, name in enumerate(OPERATIONS) if 1 <= number <= OPERATIONS.index("sharpness"))
"""Operations that go both ways: a negative magnitude shears, shifts, turns or fades to the other side."""


def apply_operations(pixels: Tensor, operation: Tensor, magnitude: Tensor) -> Tensor:
    """Vary each image by its operation, as torchvision does one by one with bilinear interpolation and black edges.

    Every operation is computed for all images and one is kept: small images are cheap, and nothing asks the host.

    Parameters
    ----------
    pixels : uint8 ``[B, C, H, W]``.
    operation : places in ``OPERATIONS``, ``[B]``.
    magnitude : ``[B]``; tangent of a shear, pixels of a shift, degrees of a turn, change of an enhancement's factor
        (0 changes nothing), bits kept, or the level from which on pixels are inverted.
    """
    number = {name: place for place, name in enumerate(OPERATIONS)}
    values = pixels.float()
    factor = (1 + magnitude).view(-1, 1, 1, 1)
    grey = _grey(values)
    varied = {
        "brightness": _blend(values, torch.zeros_like(values), factor),
        "color": _blend(values, grey, factor) if pixels.shape[1] == 3 else values,
        "contrast": _blend(values, grey.mean(dim=(1, 2, 3), keepdim=True), factor),
        "sharpness": _blend(values, _blurred(values), factor),
        "posterize": _posterized(pixels, magnitude).float(),
        "solarize": torch.where(values >= magnitude.view(-1, 1, 1, 1), 255 - values, values),
        "autocontrast": _stretched(values),
        "equalize": _equalized(pixels),
    }
    result = _warped(values, operation, magnitude)
    for name, each in varied.items():
        result = torch.where((operation == number[name]).view(-1, 1, 1, 1), each, result)
    return result.to(torch.uint8)


def strengths(operation: Tensor, positive: Tensor, amounts: Mapping[str, Tensor | float]) -> Tensor:
    """The magnitude of each image's operation: its amount, negative where it goes both ways and not ``positive``."""
    sign = 2.0 * positive - 1.0
    strength = torch.zeros(operation.shape, device=operation.device)
    for name, amount in amounts.items():
        number = OPERATIONS.index(name)
        strength = strength + (operation == number) * (amount * sign if number in SIGNED else amount)
    return strength


def _warped(values: Tensor, operation: Tensor, magnitude: Tensor) -> Tensor:
    """Shears about the upper left corner, shifts by whole pixels, turns about the centre; others stay in place."""
    height, width = values.shape[2:]

    def of(name: str, amount: Tensor) -> Tensor:
        return ((operation == OPERATIONS.index(name)) * amount).view(-1, 1, 1)

    angle = torch.deg2rad(of("rotate", magnitude))
    across = torch.arange(width, device=values.device).view(1, 1, -1) + 0.5
    down = torch.arange(height, device=values.device).view(1, -1, 1) + 0.5
    x, y = across - width / 2, down - height / 2
    source_x = angle.cos() * x - angle.sin() * y + of("shear_x", magnitude) * down
    source_y = angle.sin() * x + angle.cos() * y + of("shear_y", magnitude) * across
    source_x = source_x - of("translate_x", magnitude.trunc())
    source_y = source_y - of("translate_y", magnitude.trunc())
    grid = torch.stack([source_x / (width / 2), source_y / (height / 2)], dim=3)
    return grid_sample(values, grid, mode="bilinear", padding_mode="zeros", align_corners=False).round()


def _blend(values: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * values + (1 - factor) * other).clamp(0, 255).floor()


def _grey(values: Tensor) -> Tensor:
    if values.shape[1] != 3:
        return values
    return (0.2989 * values[:, :1] + 0.587 * values[:, 1:2] + 0.114 * values[:, 2:]).floor()


def _blurred(values: Tensor) -> Tensor:
    """Each pixel with a little of its neighbours; the edge stays as it is."""
    if min(values.shape[2:]) <= 2:
        return values
    channels = values.shape[1]
    kernel = torch.full((channels, 1, 3, 3), 1 / 13, device=values.device)
    kernel[:, :, 1, 1] = 5 / 13
    blurred = values.clone()
    blurred[:, :, 1:-1, 1:-1] = conv2d(values, kernel, groups=channels).round()
    return blurred


def _posterized(pixels: Tensor, bits: Tensor) -> Tensor:
    """The upper ``bits`` bits of each value."""
    step = torch.exp2(8 - bits.clamp(0, 8).round()).view(-1, 1, 1, 1)
    return (pixels.float() / step).floor() * step


def _stretched(values: Tensor) -> Tensor:
    """Each channel from black to white; one of a single value stays as it is."""
    low, high = values.amin(dim=(2, 3), keepdim=True), values.amax(dim=(2, 3), keepdim=True)
    scale = 255.0 / (high - low)
    stretched = ((values - low) * scale).clamp(0, 255).floor()
    return torch.where(high > low, stretched, values)


def _equalized(pixels: Tensor) -> Tensor:
    """Each channel with its levels spread evenly, by the table that Pillow makes of its histogram."""
    flat = pixels.flatten(2).long()
    counts = torch.zeros(*flat.shape[:2], 256, dtype=torch.long, device=pixels.device)
    counts = counts.scatter_add(2, flat, torch.ones_like(flat))
    brightest = counts.gather(2, flat.amax(dim=2, keepdim=True))
    step = (flat.shape[2] - brightest) // 255
    safe = step.clamp(min=1)
    table = ((counts.cumsum(dim=2) - counts + safe // 2) // safe).clamp(0, 255)
    spread = torch.where(step > 0, table.gather(2, flat), flat)
    return spread.view_as(pixels).float()

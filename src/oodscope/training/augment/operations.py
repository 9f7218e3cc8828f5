"""The fourteen operations that RandAugment and AugMix choose from, each image with an operation of its own.

A recorded step of a small network is made of many short kernels, and each launch costs more than what it computes. So
whatever is the same for many operations is done once: levels are changed through one table for each channel, blended
ones are blended with what was chosen before, moved ones are sampled together.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, grid_sample

OPERATIONS = (
    "identity", "shear_x", "shear_y", "translate_x", "translate_y", "rotate", "brightness", "color", "contrast",
    "sharpness", "posterize", "solarize", "autocontrast", "equalize",
)  # fmt: skip
"""Their names; an operation's number is its place."""

NUMBER = {name: place for place, name in enumerate(OPERATIONS)}

SIGNED = tuple(number for number, name in enumerate(OPERATIONS) if 1 <= number <= OPERATIONS.index("sharpness"))
"""Operations that go both ways: a negative magnitude shears, shifts, turns or fades to the other side."""

LEVELS = 256


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
    values, strength = pixels.float(), magnitude.view(-1, 1, 1, 1)
    # each image's operation against every one, so that a name is a mask
    masks = operation == constants(tuple((float(place),) for place in range(len(OPERATIONS))), pixels.device)
    is_one = {name: masks[place].view(-1, 1, 1, 1) for name, place in NUMBER.items()}
    grey = _grey(values)
    blended = _blend(values, torch.where(is_one["sharpness"], _blurred(values), grey), 1 + strength)
    changed = _by_table(pixels, is_one, strength, grey.mean(dim=(1, 2, 3), keepdim=True))
    others = torch.where(is_one["color"] | is_one["sharpness"], blended, changed)
    # what is left of a level after the point is cut off by the conversion to bytes
    moves = operation.view(-1, 1, 1, 1) <= NUMBER["rotate"]
    return torch.where(moves, _moved(values, operation, magnitude), others).to(torch.uint8)


_MOVES = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")


def _moved(values: Tensor, operation: Tensor, magnitude: Tensor) -> Tensor:
    """Shears about the upper left corner, shifts by whole pixels, turns about the centre; others stay in place.

    Coordinates are those of ``grid_sample``, from -1 to 1; each is the sum of a part that depends on the row and one
    that depends on the column.
    """
    height, width = values.shape[2:]
    scales = {"shear_x": 2 / width, "shear_y": 2 / height, "rotate": math.pi / 180}
    kinds = tuple(tuple(scales.get(name, 1.0) * (name == each) for each in OPERATIONS) for name in _MOVES)
    amounts = constants(kinds, values.device)[:, operation] * magnitude
    shear_x, shear_y, shift_x, shift_y, angle = amounts.view(len(_MOVES), -1, 1)
    across, x, x_turned = _middles(width, height, values.device)
    down, y, y_turned = _middles(height, width, values.device)
    cosine, sine = angle.cos(), angle.sin()
    columns = torch.stack([cosine * x, sine * x_turned + shear_y * across], dim=2)
    rows = torch.stack([shear_x * down - sine * y_turned, cosine * y], dim=2)
    shift = torch.stack([shift_x.trunc() * (2 / width), shift_y.trunc() * (2 / height)], dim=2)
    grid = columns.unsqueeze(1) + (rows - shift).unsqueeze(2)
    return grid_sample(values, grid, mode="bilinear", padding_mode="zeros", align_corners=False).round_()


def _middles(count: int, other: int, device: torch.device) -> Tensor:
    """Of each pixel of a side its middle, its distance from the centre, and that in halves of the other side."""
    middles = [place + 0.5 for place in range(count)]
    centred = [place - count / 2 for place in middles]
    rows = (middles, [2 * place / count for place in centred], [2 * place / other for place in centred])
    return constants(tuple(map(tuple, rows)), device)


def _blend(values: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * values).add_((1 - factor) * other).clamp_(0, 255)


def _grey(values: Tensor) -> Tensor:
    if values.shape[1] != 3:
        return values
    red, green, blue = values.unbind(dim=1)
    return (0.2989 * red).add_(green, alpha=0.587).add_(blue, alpha=0.114).floor_().unsqueeze(1)


def _blurred(values: Tensor) -> Tensor:
    """Each pixel with a little of its neighbours; the edge stays as it is."""
    if min(values.shape[2:]) <= 2:
        return values
    # the weights are 5 of 13 for the middle and 1 of 13 for each neighbour
    inner = (slice(None), slice(None), slice(1, -1), slice(1, -1))
    blurred = values.clone()
    sums = avg_pool2d(values, 3, stride=1, divisor_override=1)
    blurred[inner] = sums.add_(values[inner], alpha=4).div_(13).round_()
    return blurred


def _by_table(pixels: Tensor, is_one: Mapping[str, Tensor], strength: Tensor, middle: Tensor) -> Tensor:
    """What an operation that looks at one level at a time makes of each: ``[B, C, 256]``, then looked up.

    Parameters
    ----------
    middle : the mean grey of each image.
    """
    amount, flat = strength.view(-1, 1, 1), pixels.flatten(2).long()
    names = ("contrast", "posterize", "solarize", "autocontrast", "equalize")
    contrast, posterize, solarize, autocontrast, equalize = (is_one[name].view(-1, 1, 1) for name in names)
    every = tuple(float(level) for level in range(LEVELS))
    levels, inverted = constants((every, every[::-1]), pixels.device)
    low, high = flat.aminmax(dim=2, keepdim=True)
    table = _blend(levels, contrast * middle.view(-1, 1, 1), 1 + amount)
    step = (8 - amount).clamp_(0, 8).round_().exp2_()
    table = torch.where(posterize, levels - levels.remainder(step), table)
    table = torch.where(solarize, torch.where(levels >= amount, inverted, levels), table)
    table = torch.where(autocontrast, _stretched(levels, low, high), table)
    table = torch.where(equalize, _equalized(levels, flat, high), table)
    return table.gather(2, flat).view(pixels.shape)


def _stretched(levels: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Each channel from black to white; one of a single value stays as it is."""
    span = high - low
    return torch.where(span > 0, ((levels - low) * (255.0 / span)).clamp_(0, 255), levels)


def _equalized(levels: Tensor, flat: Tensor, high: Tensor) -> Tensor:
    """Each channel with its levels spread evenly, by the table that Pillow makes of its histogram."""
    counts = torch.zeros(*flat.shape[:2], LEVELS, dtype=torch.int32, device=flat.device)
    counts.scatter_add_(2, flat, constants(((1.0,),), flat.device, torch.int32).expand_as(flat))
    step = (flat.shape[2] - counts.gather(2, high)) // 255
    safe = step.clamp(min=1)
    spread = ((counts.cumsum(dim=2, dtype=torch.int32) - counts + safe // 2) // safe).clamp_(0, 255)
    return torch.where(step > 0, spread, levels)


@cache
def constants(rows: tuple[tuple[float, ...], ...], device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """A table on the device, brought there once in a process."""
    return torch.tensor(rows, device=device, dtype=dtype)


def by_operation(rows: Sequence[Mapping[str, float]], device: torch.device) -> Tensor:
    """Constants by row and operation, ``[S, 14]`` on the device; what is not named is 0."""
    return constants(tuple(tuple(each.get(name, 0.0) for name in OPERATIONS) for each in rows), device)


def both_ways(amounts: Sequence[Mapping[str, float]], device: torch.device) -> Tensor:
    """Magnitudes by sign, step and operation, ``[2, S, 14]``, of which the first half goes the other way.

    Parameters
    ----------
    amounts : of each step, by operation.
    """
    back = [{name: -each[name] if NUMBER[name] in SIGNED else each[name] for name in each} for each in amounts]
    return by_operation([*back, *amounts], device).view(2, len(amounts), -1)

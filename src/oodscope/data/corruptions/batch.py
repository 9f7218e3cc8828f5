"""Corrupt a batch of images, on whatever device it lies."""

import math
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from oodscope.base.errors import DataError
from oodscope.data.addressed import Draws
from oodscope.data.corruptions.catalog import CORRUPTIONS, Corruption
from oodscope.data.corruptions.levels import as_unit
from oodscope.data.corruptions.severities import WORST, scale_for

STEADY = (
    "gaussian_noise",
    "speckle_noise",
    "impulse_noise",
    "gaussian_blur",
    "fog",
    "brightness",
    "contrast",
    "pixelate",
)
"""Those that never wait for the device. The others choose their loops by numbers that lie there."""

_FUNCTIONS = {name: CORRUPTIONS[name].load() for name in STEADY}
_LADDERS = {name: CORRUPTIONS[name].ladder for name in STEADY}
"""Looked up here, because a step of a search is one graph, in which installed packages cannot be asked."""


def corrupt_steadily(images: Tensor, name: str, severity: Tensor, keys: Tensor, seed: int = 0) -> Tensor:
    """What ``corrupt_batch`` does, for one of ``STEADY``, without a look at the numbers.

    Parameters
    ----------
    images : ``[N, C, H, W]``, floating point in [0, 1].
    severity : ``[N]``, 0 to 5; at 0 an image is returned exactly.
    keys : int64 ``[N]``, one per image, that name its random numbers.
    """
    # as in corrupt_batch: Apple's GPUs have no float64
    home = torch.device("cpu") if images.device.type == "mps" else images.device
    strength = severity.to(home, torch.float64)
    rungs = _LADDERS[name].rungs(scale_for(*images.shape[2:]))
    constants = {constant: _between(values, strength) for constant, values in rungs.items()}
    corrupted = _FUNCTIONS[name](as_unit(images.to(home)), Draws(seed, name, keys.to(home)), **constants)
    corrupted = corrupted.clamp(0, 1).to(images.device, images.dtype)
    return torch.where((severity > 0)[:, None, None, None], corrupted, images)


def _between(rungs: tuple[float, ...], severity: Tensor) -> Tensor:
    """Linear between the rungs, as a sum of hats: a table to look them up in would have to be copied to the device."""
    hats = [value * (1 - (severity - number).abs()).clamp(min=0) for number, value in enumerate(rungs)]
    return torch.stack(hats).sum(dim=0)


Number = TypeVar("Number", np.float64, np.int64)

_VALUES = {"cpu": 2**18, "cuda": 2**24}
"""Values that are corrupted at a time: what fits the caches of a CPU, or fills a GPU and leaves it memory."""

_SMALLEST = 8


def corrupt_batch(
    images: "Tensor", name: str, severity: ArrayLike, seed: int = 0, keys: ArrayLike | None = None
) -> "Tensor":
    """The images under one corruption; same shape, type and device.

    What becomes of an image depends on its pixels, (``seed``, its key, ``name``) and its severity: not on the
    other images, their number or their order, nor, to within a level, on the device. An image whose severity
    changes keeps its random numbers, so a search over severity moves along a path.

    Parameters
    ----------
    images : ``[N, C, H, W]`` with one or three channels; uint8, or floating point in [0, 1]. Of floats the result is
        not rounded to levels, and gradients pass where ``oodscope list corruptions`` says so.
    name : of the corruption.
    severity : one number, or one per image, from 0 (nothing happens) to 5. Between two whole numbers the published
        constants are interpolated.
    keys : one integer per image that names its random numbers; by default its place in the batch.
    """
    import torch

    info = CORRUPTIONS[name]
    _check_images(images)
    severities = _one_each("severity", np.asarray(severity, np.float64), len(images))
    outside = severities[~((severities >= 0) & (severities <= WORST))]
    if len(outside):
        raise DataError(f"{name}: severity {outside[0]:g} is not between 0 and {WORST}")
    named = np.arange(len(images)) if keys is None else _one_each("key", np.asarray(keys, np.int64), len(images))
    # Apple's GPUs have no float64, on which agreement between batches and devices rests
    home = "cpu" if images.device.type == "mps" else images.device
    at_once = max(1, _VALUES.get(torch.device(home).type, 2**18) // math.prod(images.shape[1:]))
    corrupted = images.clone()
    changed = np.flatnonzero(severities > 0)
    for start in range(0, len(changed), at_once):
        rows = changed[start : start + at_once]
        chosen = torch.from_numpy(rows).to(images.device)
        part = _corrupt(images[chosen].to(home), name, info, severities[rows], seed, named[rows])
        corrupted[chosen] = part.to(images.device)
    return corrupted


def _corrupt(
    images: "Tensor", name: str, info: Corruption, severity: NDArray[np.float64], seed: int, keys: NDArray[np.int64]
) -> "Tensor":
    import torch

    from oodscope.data.addressed import Draws
    from oodscope.data.corruptions.levels import as_unit, cut

    constants = info.ladder.at(scale_for(*images.shape[2:]), severity)
    draws = Draws(seed, name, torch.from_numpy(keys).to(images.device))
    result = info.load()(
        as_unit(images), draws, **{each: torch.from_numpy(value).to(images.device) for each, value in constants.items()}
    )
    if images.dtype != torch.uint8:
        return result.clamp(0, 1).to(images.dtype)
    return cut(result).to(torch.uint8)


def _check_images(images: "Tensor") -> None:
    import torch

    if images.dim() != 4 or images.shape[1] not in (1, 3) or min(images.shape[2:]) < _SMALLEST:
        raise DataError(
            f"images to corrupt must be [N, C, H, W] with one or three channels and {_SMALLEST} pixels a side, "
            f"not {list(images.shape)}"
        )
    if images.dtype == torch.uint8:
        return
    if not images.is_floating_point():
        raise DataError(f"images to corrupt must be uint8 or floating point in [0, 1], not {images.dtype}")
    if len(images) and not bool(((images >= 0) & (images <= 1)).all()):
        raise DataError("images to corrupt must lie in [0, 1]; corrupt them before they are normalised")


def _one_each(what: str, values: NDArray[Number], count: int) -> NDArray[Number]:
    if values.shape not in ((), (count,)):
        raise DataError(f"{count} images need one {what} or {count}, not an array of shape {list(values.shape)}")
    return np.broadcast_to(values, count)

"""Corrupt inside a step of a search: severities stay on the device, and nothing is asked of it."""

import torch
from torch import Tensor

from oodscope.data.addressed import Draws
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.corruptions.levels import as_unit
from oodscope.data.corruptions.severities import LADDERS, scale_for

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
    rungs = LADDERS[name].rungs(scale_for(*images.shape[2:]))
    constants = {constant: _between(values, strength) for constant, values in rungs.items()}
    corrupted = _FUNCTIONS[name](as_unit(images.to(home)), Draws(seed, name, keys.to(home)), **constants)
    corrupted = corrupted.clamp(0, 1).to(images.device, images.dtype)
    return torch.where((severity > 0)[:, None, None, None], corrupted, images)


def _between(rungs: tuple[float, ...], severity: Tensor) -> Tensor:
    """Linear between the rungs, as a sum of hats: a table to look them up in would have to be copied to the device."""
    hats = [value * (1 - (severity - number).abs()).clamp(min=0) for number, value in enumerate(rungs)]
    return torch.stack(hats).sum(dim=0)

"""Random numbers by address: what an item of a batch draws depends on its key, not on its neighbours.

SplitMix64 (Steele, Lea & Flood, OOPSLA 2014) is a counter run through a mixing function, so the j-th number of a
stream is computed without the ones before it, for all items at once, with integer arithmetic that is the same on
every device.
"""

import hashlib
import math

import torch
from torch import Tensor

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed integer: 2^64 / golden ratio


class Draws:
    """The streams of a batch, one per item and purpose.

    Two purposes draw independent numbers, so whoever draws may take as many of each as it likes. The severity of a
    corruption is not part of the address: one image has one grain, which grows with severity.

    Parameters
    ----------
    seed, user : shared by the batch; ``user`` is who draws, such as the name of a corruption.
    keys : int64 ``[N]``, one per item: an image, a head to train.
    """

    def __init__(self, seed: int, user: str, keys: Tensor) -> None:
        self._streams = _mix(_mix(keys * _GOLDEN) + _number(f"{seed} {user}"))

    def uniform(self, purpose: str, *shape: int) -> Tensor:
        """float64 ``[N, *shape]``, strictly between 0 and 1."""
        high = self.bits(purpose, *shape) >> 12 & (1 << 52) - 1
        return (high.to(torch.float64) + 0.5) * 2.0**-52

    def normal(self, purpose: str, *shape: int) -> Tensor:
        """Standard normal, float64 ``[N, *shape]``: the quantile function of uniform numbers."""
        quantiles: Tensor = torch.special.ndtri(self.uniform(purpose, *shape))
        return quantiles

    def bits(self, purpose: str, *shape: int) -> Tensor:
        """int64 ``[N, *shape]``, all 64 bits random; the j-th does not depend on how many are asked for."""
        start = _mix(self._streams + _number(purpose))
        counter = torch.arange(1, math.prod(shape) + 1, device=start.device) * _GOLDEN
        return _mix(start[:, None] + counter).view(-1, *shape)


def _number(text: str) -> int:
    """A signed 64-bit number for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


# what torch.compiler.assume_constant_result sets: a graph holds the number, not the hash. The decorator itself would
# import the whole compiler, seconds of every first command
_number._dynamo_marked_constant = True  # type: ignore[attr-defined]


def content_keys(images: Tensor) -> Tensor:
    """int64 ``[N]``: a key for each float image ``[N, C, H, W]`` in [0, 1], made of its 256 levels.

    An image then draws the same numbers in whichever batch it stands. Images that came from bytes keep their levels in
    bfloat16 and float16, and so their keys.
    """
    levels = (images.float() * 255).round().long().flatten(1)
    places = _mix(torch.arange(1, levels.shape[1] + 1, device=images.device) * _GOLDEN)
    return (levels * places).sum(dim=1)


def _mix(z: Tensor) -> Tensor:
    """SplitMix64's finaliser; the masks make the arithmetic shift of signed integers a logical one."""
    z = (z ^ (z >> 30 & (1 << 34) - 1)) * -4658895280553007687
    z = (z ^ (z >> 27 & (1 << 37) - 1)) * -7723592293110705685
    return z ^ (z >> 31 & (1 << 33) - 1)

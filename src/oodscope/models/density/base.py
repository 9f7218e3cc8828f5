"""DensityModel: a network of its own, from pixels to one score per image."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from oodscope.base.config import StrictModel
from oodscope.base.errors import ModelError
from oodscope.base.hashing import fingerprint
from oodscope.models.classifier.fingerprint import weights_fingerprint

LEVELS = 256
"""Values that a stored pixel may have."""


class DensityShape(StrictModel):
    """What every density model must know of its images.

    Parameters
    ----------
    channels : 3 for colour, 1 for grey.
    size : side of the images.
    """

    channels: int = Field(default=3, ge=1)
    size: int = Field(default=32, ge=1)

    @property
    def dimension(self) -> int:
        """Numbers in one image."""
        return self.channels * self.size**2

    def halved(self, times: int, what: str) -> int:
        """The side after so many halvings; a side that is odd before the last of them is refused."""
        if self.size % 2**times:
            deepest = (self.size & -self.size).bit_length() - 1
            advice = f"it can be halved {deepest} times" if deepest else "it is odd and cannot be halved"
            raise ModelError(
                f"{what} halves its images {times} times, and {self.size} x {self.size} pixels do not allow that "
                f"({advice}); use fewer levels, or images whose side is a multiple of {2**times}"
            )
        return self.size // int(2**times)


class DensityModel(nn.Module, ABC):
    """Pixels in [0, 1] to one score per image, larger = more OOD.

    Class attributes
    ----------------
    likelihood : whether the score is a code length in bits per dimension, so that uniform noise costs at least 8 and
        scores can be subtracted from each other.

    Parameters
    ----------
    shape : everything that decides its layers.
    """

    likelihood: ClassVar[bool] = False

    def __init__(self, shape: DensityShape) -> None:
        super().__init__()
        self.shape = shape

    @property
    def kind(self) -> str:
        """Its name in files and messages."""
        kind: str = getattr(self.shape, "kind", type(self).__name__)
        return kind

    @property
    def fingerprint(self) -> str:
        """Of shape and weights; read from the weights each time."""
        return fingerprint("density", self.shape.model_dump(mode="json"), weights_fingerprint(self))

    def forward(self, pixels: Tensor) -> Tensor:
        """Scores ``[N]`` of images ``[N, C, H, W]``."""
        self.check(tuple(pixels.shape[1:]))
        return self.score(pixels)

    @abstractmethod
    def score(self, pixels: Tensor) -> Tensor:
        """Scores of images that have the right shape."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse images of another shape ``(C, H, W)``, in words."""
        if reason := self.mismatch(shape):
            raise ModelError(f"{self.kind}: {reason}")

    def mismatch(self, shape: tuple[int, ...]) -> str | None:
        """Why images of this shape cannot be scored; None if they can."""
        channels, side = self.shape.channels, self.shape.size
        if len(shape) != 3 or shape[0] != channels:
            words = {1: "grey images (1 channel)", 3: "colour images (3 channels)"}
            own = words.get(channels, f"images of {channels} channels")
            given = f"{shape[0]} channel{'s' * (shape[0] != 1)}" if len(shape) == 3 else f"shape {list(shape)}"
            return f"its network was trained on {own}, and these have {given}"
        if shape[1:] != (side, side):
            return f"its network was trained on {side} x {side} pixels, and these images have {shape[1]} x {shape[2]}"
        return None


def bits_per_dimension(log_likelihood: Tensor, dimension: int) -> Tensor:
    r"""A log-likelihood in nats as a code length, :math:`-\log p / (D \ln 2)`."""
    return -log_likelihood / (dimension * math.log(2))

"""FunctionScorer: any function from images to scores, where a scorer is asked for."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.base.errors import DetectorError
from oodscope.data.images.given import Given, GivenImages


class TensorScorer(Protocol):
    """What a search for a detector's worst images needs of it."""

    @property
    def device(self) -> torch.device: ...

    def score_tensor(self, images: Tensor) -> Tensor:
        """One score per image ``[N, C, H, W]`` of pixels in [0, 1], larger = more OOD."""
        ...


class FunctionScorer:
    """A function of yours as a scorer: no classifier, no head, nothing to save.

    Parameters
    ----------
    function : float pixels in [0, 1], ``[N, C, H, W]``, to ``[N]`` scores, larger = more OOD.
    device : where it wants its images.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], device: str | torch.device = "cpu") -> None:
        self.function = function
        self.device = torch.device(device)

    @property
    def name(self) -> str:
        """How results call it."""
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def score_tensor(self, images: Tensor) -> Tensor:
        """What the function says, checked for shape."""
        scores = self.function(images.to(self.device))
        if not isinstance(scores, Tensor) or scores.shape != images.shape[:1]:
            shape = list(getattr(scores, "shape", ())) or type(scores).__name__
            raise DetectorError(f"the function turns {len(images)} images into {shape}; needed: one score per image")
        return scores

    def score(self, images: GivenImages, *, batch_size: int = 256) -> NDArray[np.float64]:
        """Scores of uint8 arrays, Pillow pictures or paths, all of one size."""
        given, found = Given(images), []
        for start in range(0, len(given), batch_size):
            read = given.read(range(start, min(start + batch_size, len(given))))
            if len({image.shape for image in read}) > 1:
                raise DetectorError("images differ in size; a function of tensors needs images of one size")
            pixels = torch.from_numpy(np.stack([image.reshape(*image.shape[:2], -1) for image in read]))
            with torch.no_grad():
                found.append(self.score_tensor(pixels.permute(0, 3, 1, 2).float() / 255).double().cpu().numpy())
        return np.concatenate(found) if found else np.zeros(0)

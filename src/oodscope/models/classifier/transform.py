"""From pictures to a batch, through our own preprocessing or anybody's callable."""

import re
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.base.hashing import fingerprint
from oodscope.data.images.base import Picture
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.network import first_line
from oodscope.models.classifier.noise import noise_images

PictureTransform = Callable[[Image.Image], Tensor]

# torchvision prints its Lambda transforms without saying which function they hold
_HIDES_CODE = re.compile(r" at 0x[0-9a-fA-F]+|\bLambda\(")

_SIDE = 40
_REPEATS = 8


class PreparedBy:
    """A transform with an identity: turns uint8 images into a batch, and has a key for the store.

    Parameters
    ----------
    transform : a ``Preprocess``, or a callable from one Pillow image to one tensor.
    mode : Pillow's mode that a callable's pictures are converted to (``"RGB"``, ``"L"``), because a data
        set may hold grey images and a network see colours; ``None`` leaves them as they are.
    """

    def __init__(self, transform: Preprocess | PictureTransform, mode: str | None = None) -> None:
        if not callable(transform):
            raise ModelError(f"transform must turn a Pillow image into a tensor; {type(transform).__name__} cannot")
        self.transform = transform
        self.mode = mode
        self.key, self.uncached = self._identity()

    def __call__(self, images: Sequence[Picture]) -> Tensor:
        """A batch ``[N, ...]`` on the CPU."""
        if isinstance(self.transform, Preprocess):
            return self.transform(images)
        tensors: list[Any] = [self._apply(image) for image in images]
        if not all(isinstance(tensor, Tensor) for tensor in tensors):
            raise ModelError(f"the transform returns a {type(tensors[0]).__name__}; end it with ToTensor()")
        if len({tensor.shape for tensor in tensors}) > 1:
            raise ModelError("the transform gives tensors of different shapes; add Resize and CenterCrop")
        return torch.stack(tensors)

    def _apply(self, image: Picture) -> Any:
        picture = self._picture(image)
        try:
            return self.transform(picture)  # type: ignore[arg-type]  # a Preprocess was served above
        except Exception as error:
            kind = f"{picture.mode} picture of {picture.width}x{picture.height}"
            raise ModelError(f"the transform fails on a {kind}: {first_line(error)}") from error

    def _picture(self, image: Picture) -> Image.Image:
        if isinstance(image, np.ndarray):
            image = Image.fromarray(image.squeeze(2) if image.ndim == 3 and image.shape[2] == 1 else image)
        return image if self.mode in (None, image.mode) else image.convert(self.mode)

    def _identity(self) -> tuple[str, str]:
        """The key, and why it serves this object alone (empty if equal transforms share it).

        A text can hide what it describes (rounded tensors, attributes that are not printed), so the key
        also holds what the transform does to noise. A function shows neither its code nor what it
        refers to: it gets a random key, and nothing stored is ever served for it.
        """
        if isinstance(self.transform, Preprocess):
            return self.transform.key, ""
        text = repr(self.transform)
        if _HIDES_CODE.search(text):
            return secrets.token_hex(32), "it contains a function whose code cannot be compared"
        try:
            noise = noise_images(_SIDE, 1 if self.mode == "L" else 3)
            repeated = self(noise[:1] * _REPEATS)
            shown = [self([image]).float().numpy() for image in noise]
        except ModelError as error:
            return secrets.token_hex(32), f"it cannot be tried on noise ({error})"
        if not torch.equal(repeated, repeated[:1].expand_as(repeated)):
            return secrets.token_hex(32), "it is random: the same picture gives different tensors"
        return fingerprint("transform", text, self.mode, *shown), ""

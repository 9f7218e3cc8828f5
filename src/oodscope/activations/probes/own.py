"""Columns that come from pixels alone: the score of a network of a detector's own, the length of a compressed image."""

import io
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from oodscope.activations.probes.probe import Passes, Probe
from oodscope.base.hashing import fingerprint
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import weights_at_rest
from oodscope.models.classifier.pixels import pixel_scale
from oodscope.models.density.base import LEVELS, DensityModel

_OFF_LEVEL = 1e-3
"""Pixels nearer to a stored level than this, in levels, are that level: normalising and back only rounds."""


class PixelProbe(Probe):
    """A function of an image's pixels: the classifier's weights have no part in it, nor in its address."""

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    @abstractmethod
    def of_pixels(self, pixels: Tensor) -> Tensor:
        """One number per image ``[N, C, H, W]`` of pixels in [0, 1]."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """Equal only if the numbers are."""

    @property
    def key(self) -> str:
        return fingerprint([type(self).__module__, type(self).__qualname__, self.identity])

    def address(self, classifier: Classifier) -> list[str]:
        """What decides the column beside the images: who computes it, and how images are cut to size."""
        transform = classifier.transform
        if not isinstance(transform, Preprocess):
            return [self.identity, classifier.transform_key]
        cut = transform.model_dump(mode="json", exclude={"mean", "std"})
        return [self.identity, fingerprint(cut, len(transform.mean))]

    def __call__(self, passes: Passes) -> Tensor:
        return self.of_prepared(passes.classifier, passes.images)

    def of_prepared(self, classifier: Classifier, prepared: Tensor) -> Tensor:
        """The same of images that are prepared for the classifier, ``[N, 1]``."""
        scale = pixel_scale(classifier)
        pixels = (prepared.float() - scale.offset) / scale.scale
        levels = pixels.detach() * (LEVELS - 1)
        whole = levels.round()
        near = torch.where((levels - whole).abs() < _OFF_LEVEL, whole / (LEVELS - 1), pixels.detach())
        # the value of the level, the gradient of the pixel
        return self.of_pixels(pixels + (near - pixels.detach()))[:, None]


class OwnScore(PixelProbe):
    """What a network of a detector's own says of each image.

    Parameters
    ----------
    name : of the column.
    open_network : hands out the network; asked when the first image is scored.
    form : how the network is asked where it is not simply called; part of the column's address.
    score : asks it so, with the network and pixels.
    """

    differentiable: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        open_network: Callable[[], DensityModel],
        form: str = "",
        score: Callable[[Any, Tensor], Tensor] | None = None,
    ) -> None:
        self._name = f"{name}, {form}" if form else name
        self._open = open_network
        self._form, self._score = form, score

    @cached_property
    def network(self) -> DensityModel:
        return self._open()

    @property
    def column(self) -> str:
        return self._name

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset({self._name})

    @property
    def identity(self) -> str:
        return f"{self.network.fingerprint} {self._form}" if self._form else self.network.fingerprint

    def of_pixels(self, pixels: Tensor) -> Tensor:
        model = self.network.to(pixels.device).eval()
        with weights_at_rest(model), torch.autocast(pixels.device.type, enabled=False):
            scores: Tensor = model(pixels) if self._score is None else self._score(model, pixels)
        return scores


class CompressedLength(PixelProbe):
    r"""Bits per dimension of an image as a lossless file: :math:`8\,L(x)/D`.

    Parameters
    ----------
    compressor : ``png``, or ``jpeg2000`` without loss, as far as Pillow can write it.
    """

    def __init__(self, compressor: str = "png") -> None:
        self.compressor = compressor

    @property
    def column(self) -> str:
        return f"compressed_length({self.compressor})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset()

    @property
    def identity(self) -> str:
        return self.column

    def of_pixels(self, pixels: Tensor) -> Tensor:
        levels = (pixels.detach() * (LEVELS - 1)).round().clamp(0, LEVELS - 1).to(torch.uint8)
        pictures = levels.permute(0, 2, 3, 1).cpu().numpy()
        bits = [8 * self._length(picture) / picture.size for picture in pictures]
        return torch.tensor(bits, dtype=torch.float32, device=pixels.device)

    def _length(self, picture: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> int:
        content = io.BytesIO()
        image = Image.fromarray(picture.squeeze(2) if picture.shape[2] == 1 else picture)
        if self.compressor == "png":
            image.save(content, "PNG", optimize=True)
        else:
            image.save(content, "JPEG2000", irreversible=False)
        return content.tell()

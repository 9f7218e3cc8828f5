"""Affine: rotate, shift, scale and shear, each image by its own numbers."""

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.generation.variations.base import Range, Ranged, computed_in, wide

Interpolation = Literal["bilinear", "nearest"]


class Affine(Ranged):
    r"""Rotation, shift, scale and shear about the centre; what comes from outside the image is black.

    With angle :math:`\theta`, shear :math:`\phi`, scale :math:`k` and shift :math:`t`, a pixel at :math:`p` (from the
    centre, in pixels) shows the source at

    .. math:: A^{-1}(p - t), \qquad
        A = k \begin{pmatrix} \cos\theta & -\cos\theta\tan\phi - \sin\theta \\
                              \sin\theta & -\sin\theta\tan\phi + \cos\theta \end{pmatrix}

    which is what torchvision's ``affine`` does to one image. The ranges are those of Yoon et al. (NeurIPS 2022):
    angle ±45°, shift ±10 pixels of 32 (as large a share of other sides), scale 0.9 to 1.5, shear ±30° along x only.

    Parameters
    ----------
    image_shape : ``(C, H, W)`` of the images; fixes how many pixels a shift is.
    interpolation : ``bilinear`` changes smoothly with the parameters, so that a search can follow and gradients pass;
        ``nearest`` is what the tables of the paper used.
    """

    name = "affine"
    _INTERPOLATIONS: ClassVar[tuple[str, ...]] = ("bilinear", "nearest")

    def __init__(
        self, image_shape: tuple[int, int, int] = (3, 32, 32), interpolation: Interpolation = "bilinear"
    ) -> None:
        if interpolation not in self._INTERPOLATIONS:
            raise UnknownNameError("interpolation", interpolation, self._INTERPOLATIONS)
        self.image_shape = image_shape
        self.interpolation: Interpolation = interpolation

    @property
    def ranges(self) -> tuple[Range, ...]:
        _, height, width = self.image_shape
        right, down = width * 10 / 32, height * 10 / 32
        return (
            Range("angle (°)", -45, 45),
            Range("shift x (px)", -right, right),
            Range("shift y (px)", -down, down),
            Range("scale", 0.9, 1.5),
            Range("shear x (°)", -30, 30),
        )

    @property
    def identity(self) -> tuple[float, ...]:
        return (0.5, 0.5, 0.5, 1 / 6, 0.5)

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        assert images is not None, "it varies source images"
        if images.shape[2:] != self.image_shape[1:]:
            raise DataError(
                f"affine was made for images of {list(self.image_shape)}, not {list(images.shape[1:])}; "
                "create_variation takes their image_shape"
            )
        pixels = computed_in(images)
        height, width = pixels.shape[2:]
        tall, broad = _power_of_two(height), _power_of_two(width)
        if (tall, broad) != (height, width):
            pixels = torch.nn.functional.pad(pixels, (0, broad - width, 0, tall - height))
        grid = self._grid(points, tall, broad, pixels.dtype)
        varied = torch.nn.functional.grid_sample(pixels, grid, mode=self.interpolation, align_corners=False)
        return varied.to(images.dtype)

    def _grid(self, points: Tensor, tall: int, broad: int, dtype: torch.dtype) -> Tensor:
        """Where each pixel of the result looks: ``[N, H, W, 2]``; -1 to 1 span ``tall`` and ``broad`` pixels.

        Not by a matrix product, which a GPU may compute in TF32 or bfloat16: positions would be off by a tenth of a
        pixel. The one large tensor is the last sum.
        """
        _, height, width = self.image_shape
        angle, right, down, scale, shear = self.natural(points.to(wide(points.device))).unbind(1)
        cosine, sine = torch.cos(angle * (math.pi / 180)), torch.sin(angle * (math.pi / 180))
        slant = torch.tan(shear * (math.pi / 180))
        column = torch.arange(width, device=points.device) + (0.5 - width / 2) - right[:, None]
        row = torch.arange(height, device=points.device) + (0.5 - height / 2) - down[:, None]
        # the inverse of A, column by column; then from the centre of the image to that of the power of two
        x, y = 2 / (broad * scale), 2 / (tall * scale)
        of_column = torch.stack(
            [
                ((cosine - sine * slant) * x)[:, None] * column + (width / broad - 1),
                (-sine * y)[:, None] * column + (height / tall - 1),
            ],
            dim=-1,
        )
        of_row = torch.stack([((cosine * slant + sine) * x)[:, None] * row, (cosine * y)[:, None] * row], dim=-1)
        return of_column.to(dtype)[:, None, :] + of_row.to(dtype)[:, :, None]

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "image_shape": list(self.image_shape), "interpolation": self.interpolation}


def _power_of_two(side: int) -> int:
    """The side, filled with black, at which a position in float32 hits the centre of every pixel exactly."""
    return 1 << (side - 1).bit_length()

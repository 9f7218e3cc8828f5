"""A grid of images as one PNG."""

from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from oodscope.base.files import atomic_path

_GAP = 2


def write_grid(images: Tensor, path: Path, columns: int = 8, zoom: int = 2) -> None:
    """Tile images ``[N, C, H, W]`` in [0, 1], row by row, on white, each pixel ``zoom`` times as large."""
    pixels = images.mul(255).round().byte().permute(0, 2, 3, 1).repeat_interleave(zoom, 1).repeat_interleave(zoom, 2)
    tiles = pixels.cpu().numpy()
    count, height, width, channels = tiles.shape
    rows = -(-count // columns)
    sheet = np.full((rows * (height + _GAP) + _GAP, columns * (width + _GAP) + _GAP, channels), 255, dtype=np.uint8)
    for number, tile in enumerate(tiles):
        top, left = _GAP + number // columns * (height + _GAP), _GAP + number % columns * (width + _GAP)
        sheet[top : top + height, left : left + width] = tile
    with atomic_path(path) as temporary:
        Image.fromarray(sheet[:, :, 0] if channels == 1 else sheet).save(temporary, "PNG")

"""JPEG compression: baseline, 4:2:0, in the integer arithmetic of libjpeg, so that levels agree with Pillow's.

Integers travel in float64, where sums and products below 2^53 are exact on every device; ``floor(x / 2^n)`` is the
arithmetic shift of the C code.
"""

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from oodscope.data.addressed import Draws
from oodscope.data.corruptions.levels import nearest

# The 8 x 8 cosine transform of JPEG in 13-bit integers (Loeffler, Ligtenberg & Moschytz, ICASSP 1989).
#
# The algorithm shares products between outputs. Between two roundings it is linear, so one direction is a matrix of
# integers: each entry the sum of the rounded constants that the flow graph multiplies and adds. Their sums differ in
# the last bit from a rounded cosine, and levels agree with libjpeg's only if that bit does.


_BITS = 13
_EXTRA = 2
"""Fractional bits that are kept between rows and columns."""


def forward(blocks: Tensor) -> Tensor:
    """Eight times the orthonormal transform of ``blocks [..., 8, 8]``, rounded."""
    matrix = _matrix().to(blocks.device)
    rows = _shifted(blocks @ matrix.T, _BITS - _EXTRA)
    return _shifted(matrix @ rows, _BITS + _EXTRA)


def backward(coefficients: Tensor) -> Tensor:
    """The inverse of the orthonormal transform, rounded."""
    matrix = _matrix().to(coefficients.device)
    columns = _shifted(matrix.T @ coefficients, _BITS - _EXTRA)
    return _shifted(columns @ matrix, _BITS + _EXTRA + 3)


def _shifted(value: Tensor, bits: int) -> Tensor:
    return (value / (1 << bits) + 0.5).floor()


@cache
def _matrix() -> Tensor:
    """Rows are frequencies, columns pixels; 2^13 sqrt(8) times the orthonormal transform, but for the last bit."""
    c = [math.sqrt(2) * math.cos(k * math.pi / 16) for k in range(8)]

    def fixed(value: float) -> int:
        return math.floor(value * (1 << _BITS) + 0.5)

    one, turn = 1 << _BITS, fixed(c[6])
    even = {
        0: (one, one, one, one),
        4: (one, -one, -one, one),
        2: (turn + fixed(c[2] - c[6]), turn, -turn, -turn - fixed(c[2] - c[6])),
        6: (turn, turn - fixed(c[2] + c[6]), fixed(c[2] + c[6]) - turn, -turn),
    }
    shared = fixed(c[3])  # of all four odd inputs
    outer, inner = -fixed(c[3] - c[7]), -fixed(c[1] + c[3])
    first, second = shared - fixed(c[3] + c[5]), shared - fixed(c[3] - c[5])
    own = (
        fixed(c[1] + c[3] - c[5] - c[7]),
        fixed(c[1] + c[3] + c[5] - c[7]),
        fixed(c[1] + c[3] - c[5] + c[7]),
        fixed(-c[1] + c[3] + c[5] - c[7]),
    )
    odd = {
        1: (own[0] + outer + second, shared, second, outer + shared),
        3: (shared, own[1] + inner + first, inner + shared, first),
        5: (second, inner + shared, own[2] + inner + second, shared),
        7: (outer + shared, first, shared, own[3] + outer + first),
    }
    rows = [
        (*half, *(reversed(half) if k % 2 == 0 else (-value for value in reversed(half))))
        for k, half in sorted((even | odd).items())
    ]
    return torch.tensor(rows, dtype=torch.float64)


_LUMINANCE = (
    (16, 11, 10, 16, 24, 40, 51, 61), (12, 12, 14, 19, 26, 58, 60, 55), (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62), (18, 22, 37, 56, 68, 109, 103, 77), (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101), (72, 92, 95, 98, 112, 100, 103, 99),
)  # fmt: skip
_CHROMINANCE = (
    (17, 18, 24, 47, 99, 99, 99, 99), (18, 21, 26, 66, 99, 99, 99, 99), (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99), *((99,) * 8,) * 4,
)  # fmt: skip
"""The example tables of the standard (ITU-T T.81, annex K), which quality scales."""

_HALF = 2.0**15
_TO_YCC = ((0.299, 0.587, 0.114), (-0.16874, -0.33126, 0.5), (0.5, -0.41869, -0.08131))


def jpeg_compression(x: Tensor, draws: Draws, *, quality: Tensor) -> Tensor:
    """Encoded and decoded again; what entropy coding does is undone without loss and left out."""
    levels = nearest(x)
    height, width = x.shape[2:]
    if x.shape[1] == 1:
        return _coded(levels, _table(_LUMINANCE, quality))[:, :, :height, :width] / 255
    ycc = _to_ycc(levels)
    light = _coded(ycc[:, :1], _table(_LUMINANCE, quality))[:, :, :height, :width]
    chroma = _coded(_halved(ycc[:, 1:]), _table(_CHROMINANCE, quality))
    chroma = _doubled(chroma[:, :, : (height + 1) // 2, : (width + 1) // 2])[:, :, :height, :width]
    return _to_rgb(light, chroma - 128) / 255


def _table(base: tuple[tuple[int, ...], ...], quality: Tensor) -> Tensor:
    """Quantisation tables ``[N, 8, 8]`` for qualities from 1 to 100."""
    percent = torch.where(quality < 50, (5000 / quality).floor(), 200 - 2 * quality)
    return ((quality.new_tensor(base) * percent[:, None, None] + 50) / 100).floor().clamp(1, 255)


def _coded(plane: Tensor, table: Tensor) -> Tensor:
    """Planes ``[N, C, H, W]`` after transform, quantisation and the way back, filled up to whole blocks."""
    fill = (-plane.shape[3] % 8, -plane.shape[2] % 8)
    plane = pad(plane, (0, fill[0], 0, fill[1]), mode="replicate")
    count, channels, height, width = plane.shape
    blocks = plane.view(count, channels, height // 8, 8, width // 8, 8).transpose(3, 4) - 128
    steps = table[:, None, None, None]
    coefficients = forward(blocks)  # eight times too large
    quantised = coefficients.sign() * ((coefficients.abs() + 4 * steps) / (8 * steps)).floor()
    decoded = (backward(quantised * steps) + 128).clamp(0, 255)
    return decoded.transpose(3, 4).reshape(count, channels, height, width)


def _fixed(value: float) -> float:
    return float(int(abs(value) * 65536 + 0.5)) * (1 if value > 0 else -1)


def _to_ycc(levels: Tensor) -> Tensor:
    weights = levels.new_tensor([[_fixed(weight) for weight in row] for row in _TO_YCC])
    # chroma is centred at 128, and its half is one less so that 255.5 cannot come out
    offset = levels.new_tensor([_HALF, 128 * 65536 + _HALF - 1, 128 * 65536 + _HALF - 1])
    return ((torch.einsum("dc,nchw->ndhw", weights, levels) + offset.view(1, 3, 1, 1)) / 65536).floor()


def _to_rgb(light: Tensor, chroma: Tensor) -> Tensor:
    blue, red = chroma[:, :1], chroma[:, 1:]
    parts = (
        ((_fixed(1.402) * red + _HALF) / 65536).floor(),
        ((_fixed(-0.34414) * blue + _fixed(-0.71414) * red + _HALF) / 65536).floor(),
        ((_fixed(1.772) * blue + _HALF) / 65536).floor(),
    )
    return (light + torch.cat(parts, dim=1)).clamp(0, 255)


def _halved(chroma: Tensor) -> Tensor:
    """The means of 2 x 2 pixels, rounded down and up in turn along a row."""
    fill = -chroma.shape[3] % 16
    chroma = pad(chroma, (0, fill, 0, chroma.shape[2] % 2), mode="replicate")
    four = chroma[:, :, ::2, ::2] + chroma[:, :, ::2, 1::2] + chroma[:, :, 1::2, ::2] + chroma[:, :, 1::2, 1::2]
    bias = 1 + torch.arange(four.shape[3], device=four.device) % 2
    return ((four + bias) / 4).floor()


def _doubled(chroma: Tensor) -> Tensor:
    """Twice the size by a triangle filter: three parts of the nearer pixel, one of the farther, in each direction."""
    padded = pad(chroma, (0, 0, 1, 1), mode="replicate")
    rows = torch.stack([3 * chroma + padded[:, :, :-2], 3 * chroma + padded[:, :, 2:]], dim=3).flatten(2, 3)
    padded = pad(rows, (1, 1, 0, 0), mode="replicate")
    left = ((3 * rows + padded[..., :-2] + 8) / 16).floor()
    right = ((3 * rows + padded[..., 2:] + 7) / 16).floor()
    return torch.stack([left, right], dim=4).flatten(3)

"""The 8 x 8 cosine transform of JPEG in 13-bit integers (Loeffler, Ligtenberg & Moschytz, ICASSP 1989).

The algorithm shares products between outputs. Between two roundings it is linear, so one direction is a matrix of
integers: each entry the sum of the rounded constants that the flow graph multiplies and adds. Their sums differ in
the last bit from a rounded cosine, and levels agree with libjpeg's only if that bit does.
"""

import math
from functools import cache

import torch
from torch import Tensor

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

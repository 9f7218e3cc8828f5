"""The idx format of MNIST and its kin: a header that says how long the file must be."""

import math
import struct
from pathlib import Path


def idx_fault(path: Path) -> str | None:
    """What is wrong with the length of an idx file of bytes; nothing if header and size agree.

    The header is 0, 0, 8 (unsigned bytes), the number of dimensions, then each dimension in four bytes, big end first.
    """
    with path.open("rb") as stream:
        start = stream.read(4)
        if len(start) < 4 or start[:3] != b"\x00\x00\x08":
            return "no idx file of bytes"
        dimensions = stream.read(4 * start[3])
    if len(dimensions) < 4 * start[3]:
        return "cut off in its header"
    expected = 4 + len(dimensions) + math.prod(struct.unpack(f">{start[3]}I", dimensions))
    actual = path.stat().st_size
    return None if actual == expected else f"{actual:,} bytes, its header says {expected:,}"

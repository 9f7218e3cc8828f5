"""Packs: images as networks see them, decoded once and kept as bytes, for all that cut them alike."""

import os
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oodscope.activations.store.shards import ShardedColumn, column_folder
from oodscope.base.files import cache_root
from oodscope.base.hashing import fingerprint
from oodscope.base.place import is_url, open_place
from oodscope.data.images.base import ImageSource
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.lookahead import ahead

Rows = NDArray[np.int64]

VARIABLE = "OODSCOPE_PIXELS"
"""Of the environment: where packs are kept, a folder or a URL, if not in the cache."""

SCHEMA = 1
SHARD = 1024
"""Images of one file: 154 MB at 224 pixels."""

COLUMN = "pixels"


def pack_root() -> Path | str:
    """``$OODSCOPE_PIXELS``, else ``pixels`` in the cache."""
    named = os.environ.get(VARIABLE)
    return named if named and is_url(named) else Path(named or cache_root() / "pixels")


class Pack:
    """The pixels of a source under one way of cropping, as far as somebody has packed them.

    The address is a hash of the images' content and of what decides the crop (size, resize, interpolation, channels):
    a pack can never be served for other images. What a network gets is the same to the bit: packs hold the bytes that
    decoding and cropping give, before normalisation.

    Parameters
    ----------
    source : whose images.
    preprocess : how they are cut; mean and deviation do not matter.
    """

    def __init__(self, source: ImageSource, preprocess: Preprocess) -> None:
        home = fingerprint([SCHEMA, source.key, preprocess.crop_key])
        self.preprocess = preprocess
        self.column = ShardedColumn(
            open_place(pack_root()), column_folder(home, COLUMN), f"{home}/{COLUMN}", len(source)
        )

    def missing(self, rows: Rows) -> Rows:
        """Those of the rows of the source that are not packed."""
        return self.column.missing(rows)

    def read(self, rows: Rows) -> Tensor:
        """Bytes ``[N, size, size, C]`` of rows that are all packed; verified when they are first read."""
        # a copy: what is mapped cannot be written to, and torch knows no such tensors
        return torch.from_numpy(np.array(self.column[rows]))

    def batches(self, batches: Sequence[Rows], device: torch.device) -> Generator[Tensor, None, None]:
        """Prepared batches on a device, read ahead of the network."""
        with closing(ahead(batches, self.read, depth=2, workers=1)) as pieces:
            for piece in pieces:
                yield self.preprocess.normalise(piece.to(device))


def find_pack(images: ImageSet, preprocess: Preprocess, rows: Rows) -> Pack | None:
    """The pack that holds all of these rows of the source of a set; ``None`` where some are not packed."""
    root = pack_root()
    if isinstance(root, Path) and not root.is_dir():
        return None  # nobody ever packed: nothing need be hashed
    pack = Pack(images.source, preprocess)
    return None if len(pack.missing(rows)) else pack

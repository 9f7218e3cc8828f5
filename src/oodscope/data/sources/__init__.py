"""Where pixels come from: arrays, files, shards, tables, datasets, and other sources."""

from oodscope.data.sources.arrays import ArraySource
from oodscope.data.sources.base import ImageSource, Picture, Pictures
from oodscope.data.sources.dataset import DatasetSource
from oodscope.data.sources.encoded import EncodedSource
from oodscope.data.sources.files import FileSource
from oodscope.data.sources.joined import JoinedSource
from oodscope.data.sources.reframed import CroppedSource, Presized, PresizedSource
from oodscope.data.sources.rows import RowSource
from oodscope.data.sources.shards import ShardSource

__all__ = [
    "ArraySource",
    "CroppedSource",
    "DatasetSource",
    "EncodedSource",
    "FileSource",
    "ImageSource",
    "JoinedSource",
    "Picture",
    "Pictures",
    "Presized",
    "PresizedSource",
    "RowSource",
    "ShardSource",
]

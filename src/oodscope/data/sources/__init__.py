"""Where pixels come from: arrays, files, datasets, and other sources."""

from oodscope.data.sources.arrays import ArraySource
from oodscope.data.sources.base import ImageSource
from oodscope.data.sources.dataset import DatasetSource
from oodscope.data.sources.files import FileSource
from oodscope.data.sources.joined import JoinedSource
from oodscope.data.sources.reframed import CroppedSource, Presized, PresizedSource

__all__ = [
    "ArraySource",
    "CroppedSource",
    "DatasetSource",
    "FileSource",
    "ImageSource",
    "JoinedSource",
    "Presized",
    "PresizedSource",
]

"""Where pixels come from: arrays, files, datasets."""

from oodscope.data.sources.arrays import ArraySource
from oodscope.data.sources.base import ImageSource
from oodscope.data.sources.dataset import DatasetSource
from oodscope.data.sources.files import FileSource

__all__ = ["ArraySource", "DatasetSource", "FileSource", "ImageSource"]

"""Sets of a user's own in a benchmark's YAML: tables, Hugging Face datasets, tar shards."""

from pathlib import Path
from typing import Literal

from oodscope.data.images.csvlist import open_csv
from oodscope.data.images.huggingface import open_hf
from oodscope.data.images.sourcespec import SourceSpec
from oodscope.data.images.webdataset import open_webdataset
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress


class CsvSpec(SourceSpec):
    """Images named by a CSV or TSV file with a header, relative to ``images`` (default: the file's folder)."""

    source: Literal["csv"]
    path: str
    images: str | None = None

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_csv(name, root / self.path, None if self.images is None else root / self.images)


class WebDatasetSpec(SourceSpec):
    """Images in tar files; ``path`` may be a pattern, such as ``train-{000..009}.tar``."""

    source: Literal["webdataset"]
    path: str

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_webdataset(name, root / self.path, progress)


class HuggingFaceSpec(SourceSpec):
    """A Hugging Face dataset: ``path`` under the root if it is there, otherwise a name on the hub."""

    source: Literal["hf"]
    path: str
    split: str | None = None
    config: str | None = None
    image: str | None = None
    label: str | None = None

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        local = root / self.path
        found = local if local.exists() else self.path
        return open_hf(name, found, self.split, config=self.config, image=self.image, label=self.label)

"""SourceSpec: a set of images as a benchmark's YAML declares it, and the sources by name."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, get_args

from oodscope.base.config import StrictModel, parse_declared
from oodscope.base.registry import Collection
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.metric import Population


class SourceSpec(StrictModel):
    """One set of images: where it lies, and how it is opened.

    A subclass declares ``source``, by which YAML files name it, and its keys::

        class LmdbSpec(SourceSpec):
            source: Literal["lmdb"]
            path: str

            def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
                return ImageSet.from_arrays(name, *read_lmdb(root / self.path))

    Offered through the entry point group ``oodscope.sources``, it is ``{source: lmdb, path: ...}`` in a benchmark and
    ``lmdb:PATH`` wherever a set is named by one word.

    Parameters
    ----------
    classes : what the classes of an OOD set are: ``sampled`` from many more that could have been taken, ``exhaustive``,
        or ``none``. Unless said, classes that a set has count as sampled.
    """

    classes: Population | None = None

    @abstractmethod
    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        """The set called ``name``; paths are relative to ``root``."""

    @classmethod
    def from_place(cls, place: str) -> Self:
        """The declaration that ``SOURCE:PLACE`` stands for; unless a source reads more from it, its ``path``."""
        (name,) = get_args(cls.model_fields["source"].annotation)
        return parse_declared(cls, {"source": name, "path": place}, f"{name}:{place}")


def _own() -> Mapping[str, type[SourceSpec]]:
    from oodscope.data.manifest import OWN_SOURCES  # which knows every kind of file, some of which need torch

    return OWN_SOURCES


def _is_source(each: Any) -> bool:
    return isinstance(each, type) and issubclass(each, SourceSpec) and "source" in each.model_fields


SOURCES: Collection[type[SourceSpec]] = Collection(
    "source", "sources", _own, check=_is_source, expected="a SourceSpec that declares its source"
)
"""Every source of images by name."""

"""Benchmarks declared in YAML: strictly checked, versioned, with sets by role."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WrapValidator
from pydantic_core import PydanticCustomError

from oodscope.base.config import StrictModel, parse_declared, read_yaml
from oodscope.base.errors import DataError, OodscopeError, UnknownNameError, UsageError
from oodscope.base.files import plain_name
from oodscope.data.corruptions.sets import CorruptedSpec
from oodscope.data.generated.files import GeneratedSpec
from oodscope.data.glyphs.split import open_glyphs
from oodscope.data.images.folders import open_folder, open_list, open_npz
from oodscope.data.images.sourcespec import SOURCES, SourceSpec
from oodscope.data.images.specs import CsvSpec, HuggingFaceSpec, WebDatasetSpec
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.data.public.datasetspec import DatasetSpec
from oodscope.execution.progress import SILENT, Progress


class FolderSpec(SourceSpec):
    """Images under a folder; its subfolders are the classes, or the ``levels`` of a hierarchy (``open_folder``)."""

    source: Literal["folder"]
    path: str
    levels: list[str] = Field(default=["class"], min_length=1)

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_folder(name, root / self.path, self.levels)


class ListSpec(SourceSpec):
    """Images named by a text file of ``path label`` lines, relative to ``images`` (default: the list's folder)."""

    source: Literal["list"]
    path: str
    images: str | None = None

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_list(name, root / self.path, None if self.images is None else root / self.images)


class NpzSpec(SourceSpec):
    """Arrays of an npz file, by name."""

    source: Literal["npz"]
    path: str
    images: str = "images"
    labels: str = "labels"

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_npz(name, root / self.path, self.images, self.labels)


class TorchvisionSpec(SourceSpec):
    """A dataset of ``torchvision.datasets`` that already lies under ``path``; ``options`` go to its constructor."""

    source: Literal["torchvision"]
    dataset: str
    path: str = "."
    options: dict[str, str | bool | int] = {}

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        from torchvision import datasets

        if not hasattr(datasets, self.dataset):
            raise UsageError(f"set {name!r}: torchvision has no dataset {self.dataset!r}")
        try:
            opened = getattr(datasets, self.dataset)(str(root / self.path), **self.options)
        except (RuntimeError, TypeError, ValueError, FileNotFoundError) as error:
            raise DataError(f"set {name!r}: torchvision's {self.dataset}: {error}") from error
        return ImageSet.from_dataset(name, opened)


class GlyphsSpec(SourceSpec):
    """A generated split of the embedded glyphs."""

    source: Literal["glyphs"]
    split: str
    per_class: int = Field(gt=0)
    seed: int = 0

    def open(self, name: str, root: Path, progress: Progress = SILENT) -> ImageSet:
        return open_glyphs(name, self.split, per_class=self.per_class, seed=self.seed, progress=progress)


OWN_SOURCES: Mapping[str, type[SourceSpec]] = {
    "folder": FolderSpec,
    "list": ListSpec,
    "csv": CsvSpec,
    "npz": NpzSpec,
    "webdataset": WebDatasetSpec,
    "hf": HuggingFaceSpec,
    "torchvision": TorchvisionSpec,
    "generated": GeneratedSpec,
    "glyphs": GlyphsSpec,
}
"""The sources that come with the package; public datasets and corrupted sets are declared too, but open otherwise."""


def _of_others(declared: Any, own: Callable[[Any], Any]) -> Any:
    """A set from a source of an installed package or one registered in code; any other is one of ours."""
    if isinstance(declared, SourceSpec) and type(declared) not in OWN_SOURCES.values():
        return declared
    name = declared.get("source") if isinstance(declared, dict) else None
    known = (*OWN_SOURCES, "dataset", "corrupted")
    if not isinstance(name, str) or name in known:
        return own(declared)
    try:
        if name not in SOURCES:
            raise UnknownNameError("source", name, [*known, *SOURCES], "See: oodscope list sources")
        return parse_declared(SOURCES[name], declared, f"source {name}")
    except OodscopeError as error:
        # so that the file and the key are named too
        raise PydanticCustomError("source", "{problem}", {"problem": str(error)}) from error


SetSpec = Annotated[
    FolderSpec
    | ListSpec
    | NpzSpec
    | TorchvisionSpec
    | GlyphsSpec
    | GeneratedSpec
    | CsvSpec
    | HuggingFaceSpec
    | WebDatasetSpec
    | DatasetSpec
    | CorruptedSpec,
    Field(discriminator="source"),
    WrapValidator(_of_others),
]


class SetsSpec(StrictModel):
    """The roles; ``near``, ``far`` and ``csid`` hold several sets by name."""

    id_test: SetSpec
    id_train: SetSpec | None = None
    id_val: SetSpec | None = None
    near: dict[str, SetSpec] = {}
    far: dict[str, SetSpec] = {}
    csid: dict[str, SetSpec] = {}
    ood_val: SetSpec | None = None
    ood_train: SetSpec | None = None

    def by_role(self) -> Iterator[tuple[str, str, SetSpec]]:
        """Every set that is declared: its role, its name, its spec."""
        for role in type(self).model_fields:
            spec = getattr(self, role)
            if isinstance(spec, dict):
                yield from ((role, name, member) for name, member in spec.items())
            elif spec is not None:
                yield role, role, spec


def _file_name(name: str) -> str:
    """A benchmark's name begins the folder of every run on it."""
    try:
        return plain_name(name, "the benchmark's name")
    except DataError as error:
        raise ValueError(str(error)) from error


class Manifest(StrictModel):
    """A benchmark's declaration.

    Parameters
    ----------
    paper : who published it, to look it up.
    root : folder that all paths are relative to; itself relative to the YAML file.
    classes : the classifier's class names in the order of its logits, as a list or a text file with one per
        line; for in-distribution sets that hold some of its classes only. By default the classes of ``id_train``.
    """

    name: Annotated[str, AfterValidator(_file_name)]
    version: str
    description: str = ""
    paper: str = ""
    root: str = "."
    transform: Preprocess | None = None
    classes: str | list[str] | None = None
    sets: SetsSpec


def read_manifest(path: Path) -> Manifest:
    """A checked manifest, or one line that names the file, the key and the nearest known key."""
    return parse_declared(Manifest, read_yaml(path), str(path))

"""Load a benchmark by name or from a YAML file."""

from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from oodscope.base.catalog import catalog
from oodscope.base.errors import DataError, UnknownNameError
from oodscope.data.benchmark import Benchmark
from oodscope.data.corruptions.spec import CorruptedSpec
from oodscope.data.imageset import ImageSet
from oodscope.data.manifest import GlyphsSpec, Manifest, SetSpec, read_manifest
from oodscope.data.sources import FileSource
from oodscope.execution import SILENT, Progress

_GROUPS = ("near", "far", "csid")


def load_benchmark(
    name: str | Path,
    *,
    images_per_class: int | None = None,
    skip_unreadable: bool = False,
    progress: Progress = SILENT,
) -> Benchmark:
    """A benchmark that can be judged on.

    Parameters
    ----------
    name : of a built-in benchmark (``oodscope list benchmarks``), or the path of a YAML file.
    images_per_class : training images per class of a generated benchmark; its other sets keep their
        proportion. Sets that are not generated have the size they have.
    skip_unreadable : try to decode every image file first and leave out those that fail; without it,
        the first unreadable image stops the run. Each set lists what it lost in ``skipped``.
    """
    manifest, folder = _find(name)
    scale = None if images_per_class is None else _scale(manifest, images_per_class)
    roles: dict[str, Any] = {}

    def open_set(label: str, spec: SetSpec) -> ImageSet:
        if scale is not None and isinstance(spec, GlyphsSpec):
            spec = spec.model_copy(update={"per_class": max(1, round(spec.per_class * scale))})
        if isinstance(spec, CorruptedSpec):
            if spec.of not in roles:
                raise DataError(f"benchmark {manifest.name!r}: {spec.of} cannot be made by corrupting {spec.of}")
            return spec.derive(label, roles[spec.of])
        opened = spec.open(label, folder, progress)
        return readable(opened) if skip_unreadable else opened

    for role, spec in _filled(manifest):
        if role in _GROUPS:
            roles[role] = tuple(open_set(label, member) for label, member in spec.items())
        else:
            roles[role] = open_set(role, spec)
    return Benchmark(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        transform=manifest.transform,
        **roles,
    )


def readable(images: ImageSet) -> ImageSet:
    """The images of a set that can be decoded; the set itself if all can."""
    if not isinstance(images.source, FileSource):
        return images
    bad = set(images.source.unreadable())
    keep = [position for position, row in enumerate(images.rows) if int(row) not in bad]
    if len(keep) == len(images):
        return images
    kept = images.take(keep)
    kept.skipped = tuple(images.source.name(row) for row in sorted(bad))
    return kept


def _find(name: str | Path) -> tuple[Manifest, Path]:
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        manifest = read_manifest(path)
        return manifest, path.parent / manifest.root
    known = catalog("benchmarks")
    if str(name) not in known:
        raise UnknownNameError("benchmark", str(name), known, "See: oodscope list benchmarks (or give a YAML file)")
    with as_file(files("oodscope.data") / "benchmarks" / f"{name}.yaml") as packaged:
        return read_manifest(packaged), Path()


def _filled(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    for role in type(manifest.sets).model_fields:
        spec = getattr(manifest.sets, role)
        if spec:
            yield role, spec


def _scale(manifest: Manifest, images_per_class: int) -> float:
    if images_per_class < 1:
        raise DataError(f"images_per_class must be at least 1, not {images_per_class}")
    train = manifest.sets.id_train
    if not isinstance(train, GlyphsSpec):
        raise DataError(f"benchmark {manifest.name!r} is not generated: its sets have the size they have")
    return images_per_class / train.per_class

"""Load a benchmark by name or from a YAML file."""

from pathlib import Path
from typing import Any

from oodscope.base.errors import DataError, UnknownNameError, UsageError
from oodscope.data.benchmark import Benchmark
from oodscope.data.corruptions.sets import CorruptedSpec
from oodscope.data.images.labels import read_class_names
from oodscope.data.images.readability import usable
from oodscope.data.imageset import ImageSet
from oodscope.data.manifest import GlyphsSpec, Manifest, SetSpec, read_manifest
from oodscope.data.packaged import BENCHMARKS
from oodscope.data.public.datasetspec import DatasetSpec
from oodscope.data.public.root import DatasetRoot, data_root
from oodscope.execution.progress import SILENT, Progress
from oodscope.metrics.metric import Population

_GROUPS = ("near", "far", "csid")


def load_benchmark(
    name: str | Path,
    *,
    root: Path | str | None = None,
    images_per_class: int | None = None,
    skip_unreadable: bool = False,
    progress: Progress = SILENT,
) -> Benchmark:
    """A benchmark that can be judged on.

    Parameters
    ----------
    name : of a benchmark (``oodscope list benchmarks``), or the path of a YAML file.
    root : folder of public datasets (``oodscope data prepare``); by default the environment variable
        ``OODSCOPE_ROOT``, or ``data`` in the cache. They must have been verified there.
    images_per_class : training images per class of a generated benchmark; its other sets keep their
        proportion. Sets that are not generated have the size they have.
    skip_unreadable : try to decode every image file first and leave out those that fail; without it,
        the first unreadable image stops the run. Each set lists what it lost in ``skipped``. Public datasets
        are then taken as they are, verified or not.

    Examples
    --------
    >>> oods.load_benchmark("glyphs", images_per_class=2).name
    'glyphs'
    """
    manifest, folder = find_manifest(name)
    scale = None if images_per_class is None else _scale(manifest, images_per_class)
    packaged = manifest.name if folder is None else None
    datasets = DatasetRoot(data_root(root), lenient=skip_unreadable, benchmark=packaged)
    roles: dict[str, Any] = {}
    notes: list[str] = []

    def open_set(label: str, spec: SetSpec) -> ImageSet:
        if scale is not None and isinstance(spec, GlyphsSpec):
            spec = spec.model_copy(update={"per_class": max(1, round(spec.per_class * scale))})
        if isinstance(spec, CorruptedSpec):
            if spec.of not in roles:
                raise DataError(f"benchmark {manifest.name!r}: {spec.of} cannot be made by corrupting {spec.of}")
            return spec.derive(label, roles[spec.of])
        if isinstance(spec, DatasetSpec):
            opened = spec.open_from(datasets, label)
        else:
            opened = spec.open(label, folder or Path(), progress)
        return usable(opened, skip_unreadable=skip_unreadable)

    for role, label, spec in manifest.sets.by_role():
        if isinstance(spec, DatasetSpec) and spec.optional and spec.absent(datasets):
            notes.append(f"{role} left out: {spec.dataset} is not under {datasets.root}")
        elif role in _GROUPS:
            roles[role] = (*roles.get(role, ()), open_set(label, spec))
        else:
            roles[role] = open_set(label, spec)
    benchmark = Benchmark(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        transform=manifest.transform,
        notes=tuple(notes),
        populations=_populations(manifest),
        **roles,
    )
    if manifest.classes is None:
        return benchmark
    listed = manifest.classes
    return benchmark.in_classes(read_class_names((folder or Path()) / listed) if isinstance(listed, str) else listed)


def _populations(manifest: Manifest) -> dict[str, Population]:
    """What the classes of each OOD set are, where its declaration or its card says so."""
    found: dict[str, Population] = {}
    for role, label, spec in manifest.sets.by_role():
        if role in ("near", "far") and not isinstance(spec, CorruptedSpec):
            said = spec.population if isinstance(spec, DatasetSpec) else spec.classes
            if said is not None:
                found[label] = said
    return found


def find_manifest(name: str | Path) -> tuple[Manifest, Path | None]:
    """The manifest, and the folder its paths are relative to; none if it comes with the package."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        manifest = read_manifest(path)
        return manifest, path.parent / manifest.root
    if str(name) not in BENCHMARKS:
        hint = "See: oodscope list benchmarks (or give a YAML file)"
        raise UnknownNameError("benchmark", str(name), BENCHMARKS, hint)
    found = BENCHMARKS[str(name)]
    manifest = read_manifest(found)
    return manifest, found.parent / manifest.root if str(name) in BENCHMARKS.others() else None


def _scale(manifest: Manifest, images_per_class: int) -> float:
    if images_per_class < 1:
        raise UsageError(f"images_per_class must be at least 1, not {images_per_class}")
    train = manifest.sets.id_train
    if not isinstance(train, GlyphsSpec):
        raise UsageError(f"benchmark {manifest.name!r} is not generated: its sets have the size they have")
    return images_per_class / train.per_class

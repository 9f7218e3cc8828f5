"""What is wrong with the declaration of a benchmark, all of it at once, before anybody computes on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np

from oodscope.base.errors import OodscopeError
from oodscope.data.benchmark import ID_ROLES, Benchmark
from oodscope.data.corruptions.sets import CorruptedSpec
from oodscope.data.loading import find_manifest, load_benchmark
from oodscope.data.manifest import Manifest, SetSpec
from oodscope.data.public.cards import load_card
from oodscope.data.public.datasetspec import DatasetSpec
from oodscope.data.similarity.classnames import clashing_names
from oodscope.data.similarity.duplicates import find_duplicates
from oodscope.execution.progress import SILENT, Progress

Level = Literal["error", "warning"]

FEW = 100
"""Images of a test set below which intervals are too wide to rank detectors."""
_TUNED, _TESTED = ("id_train", "id_val", "ood_val", "ood_train"), ("id_test", "near", "far", "csid")


@dataclass(frozen=True)
class Finding:
    """One thing to mend.

    Parameters
    ----------
    level : an ``error`` makes numbers wrong or impossible, a ``warning`` makes them weaker or harder to repeat.
    where : the key of the YAML file, such as ``sets.near.birds``.
    """

    level: Level
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.text}"


def lint(
    name: str | Path, *, root: Path | str | None = None, images: bool = True, progress: Progress = SILENT
) -> list[Finding]:
    """Everything that is wrong with a benchmark, errors first.

    Parameters
    ----------
    name : of a benchmark, or the path of its YAML file.
    root : folder of public datasets; see ``load_benchmark``.
    images : whether the sets are opened too: counts, classes, labels, images that occur twice.
    """
    try:
        manifest, folder = find_manifest(name)
    except OodscopeError as error:
        return [Finding("error", str(name), str(error))]
    findings = [*_declaration(manifest), *_sets(manifest)]
    if folder is not None and Path(name).stem != manifest.name:
        text = f"the file is called {Path(name).name!r}; call both the same, so that runs can be traced to it"
        findings.append(Finding("warning", "name", text))
    if images and not any(each.level == "error" for each in findings):
        findings += _opened(name, root, progress)
    return sorted(findings, key=lambda each: each.level)


def _declaration(manifest: Manifest) -> Iterator[Finding]:
    sets = manifest.sets
    if not manifest.description:
        yield Finding("warning", "description", "is missing: one line that says what is judged")
    if not (sets.near or sets.far):
        yield Finding("error", "sets", "has no near and no far set: there is nothing to detect")
    if sets.id_train is None:
        yield Finding("warning", "sets.id_train", "is missing: detectors that learn from training images do not apply")
    if sets.id_val is None:
        text = "is missing: no threshold on held-out images, no search of parameters"
        yield Finding("warning", "sets.id_val", text)
    if sets.ood_val is None:
        text = "is missing: the tuning track ood_val cannot be run (id_only can, with id_val)"
        yield Finding("warning", "sets.ood_val", text)
    if manifest.transform is None:
        text = "is missing: networks that bring no preprocessing are refused; state size, mean and std"
        yield Finding("warning", "transform", text)


def _sets(manifest: Manifest) -> Iterator[Finding]:
    seen: dict[str, tuple[str, str]] = {}
    for role, label, spec in manifest.sets.by_role():
        where = f"sets.{role}" if role == label else f"sets.{role}.{label}"
        if isinstance(spec, CorruptedSpec):
            continue
        if isinstance(spec, DatasetSpec):
            yield from _public(where, spec)
        else:
            yield from _own(where, role, spec)
        key = repr(sorted(_place(spec).items()))
        if key in seen and _mixes(seen[key][0], role):
            yield Finding("error", where, f"has the same images as {seen[key][1]}: what is tuned on must not be judged")
        seen.setdefault(key, (role, where))


def _place(spec: SetSpec) -> dict[str, Any]:
    """Which images a set has, whatever is said about them."""
    return {key: repr(value) for key, value in spec.model_dump(exclude={"count", "optional", "classes"}).items()} | {
        "kept": repr(getattr(spec, "classes", None)) if isinstance(spec, DatasetSpec) else ""
    }


def _mixes(one: str, two: str) -> bool:
    return (one in _TUNED and two in _TESTED) or (one in _TESTED and two in _TUNED)


def _public(where: str, spec: DatasetSpec) -> Iterator[Finding]:
    try:
        card = load_card(spec.dataset)
        unverified = [split for split in spec.splits if not card.has_checksums(split)]
    except OodscopeError as error:
        yield Finding("error", where, str(error))
        return
    if spec.count is None:
        yield Finding("warning", where, "has no count: state how many images it must have, so that a loss is seen")
    if unverified and spec.count is None and any(card.split(split).count is None for split in unverified):
        yield Finding("warning", where, "has neither checksum nor count: nothing shows that a copy is whole")


def _own(where: str, role: str, spec: Any) -> Iterator[Finding]:
    path = getattr(spec, "path", None)
    if isinstance(path, str) and PurePath(path).is_absolute():
        yield Finding("warning", where, f"{path} is a place of this machine; use a path relative to the file")
    if role in ("near", "far") and getattr(spec, "classes", None) is None:
        text = "does not say what its classes are (classes: sampled, exhaustive or none); sampled is assumed"
        yield Finding("warning", where, text)


def _opened(name: str | Path, root: Path | str | None, progress: Progress) -> Iterator[Finding]:
    try:
        benchmark = load_benchmark(name, root=root, progress=progress)
    except OodscopeError as error:
        yield Finding("error", "sets", str(error))
        return
    if all(each.isdecimal() for each in benchmark.class_names):
        text = "are numbers: vision-language networks need words; give classes: a list, or a file with one per line"
        yield Finding("warning", "classes", text)
    yield from _sizes(benchmark)
    for role, images, names in clashing_names(benchmark):
        shown = ", ".join(map(repr, names[:3])) + ", ..." * (len(names) > 3)
        text = f"has the name of an ID class: {shown}; remove these images if they show that class"
        yield Finding("error", f"sets.{role}.{images.name}", text)
    try:
        notes = find_duplicates(benchmark).notes()
    except OodscopeError as error:
        yield Finding("error", "sets", str(error))
        return
    yield from (Finding("warning", "sets", note) for note in notes)


def _sizes(benchmark: Benchmark) -> Iterator[Finding]:
    for role, images in benchmark.members():
        where = f"sets.{role}" if role == images.name else f"sets.{role}.{images.name}"
        if role in _TESTED and len(images) < FEW:
            yield Finding("warning", where, f"has {len(images)} images: fewer than {FEW} rank no detectors")
        if role in ID_ROLES and role != "csid":
            counts = np.bincount(images.labels, minlength=len(images.class_names))
            empty = [images.class_names[place] for place in np.flatnonzero(counts == 0)]
            if empty:
                shown = ", ".join(map(repr, empty[:3])) + ", ..." * (len(empty) > 3)
                yield Finding("warning", where, f"has no image of {len(empty)} of its classes: {shown}")

"""A benchmark of one's own, from the places where the images lie."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from oodscope.base.errors import UsageError
from oodscope.base.hashing import fingerprint
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.locating import locate, stem_of
from oodscope.data.images.readability import usable
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import SILENT, Progress

Place = str | Path | ImageSet
"""Where a set comes from: a path or name as on the command line, or a set that is already open."""

Places = Mapping[str, Place] | Iterable[Place]
"""Several of them; a mapping gives them their names."""

_SINGLE = ("id_train", "id_val", "id_test", "ood_val")


def own_benchmark(
    *,
    id_test: Place,
    id_train: Place | None = None,
    id_val: Place | None = None,
    near: Places = (),
    far: Places = (),
    csid: Places = (),
    ood_val: Place | None = None,
    transform: Preprocess | None = None,
    name: str = "own",
    skip_unreadable: bool = False,
    progress: Progress = SILENT,
) -> Benchmark:
    """A benchmark from folders, lists, archives or open sets, without a YAML file.

    ``own_benchmark(id_train="train", id_test="test", near=["lookalikes"], far={"noise": "data/n.npz"})``. A set is
    called like its folder or file; of two with one name, each takes its parent's name along. The version is a
    hash of what the sets hold, so that numbers of changed data never pass for the old ones. No set is cut from
    another: without ``id_val`` nothing can be tuned, and detectors that want held-out images learn from ``id_train``.

    Parameters
    ----------
    id_test, id_train, id_val, near, far, csid, ood_val : see ``Benchmark``; each a path, ``hf:NAME[:SPLIT]``,
        ``torchvision:CLASS[:SPLIT]`` or an ``ImageSet``.
    transform : preprocessing for classifiers that bring none.
    name : of the benchmark.
    skip_unreadable : leave out images that cannot be decoded; without it, the first stops the run.

    Examples
    --------
    >>> own = oods.own_benchmark(id_test=bench.id_test, near={"static": bench.near[0]})
    >>> own.near[0].name
    'static'
    """
    single = {"id_train": id_train, "id_val": id_val, "id_test": id_test, "ood_val": ood_val}
    groups = {"near": near, "far": far, "csid": csid}

    def open_set(label: str, place: Place) -> ImageSet:
        opened = place if isinstance(place, ImageSet) else locate(str(place)).open(label, Path(), progress)
        return usable(opened, skip_unreadable=skip_unreadable)

    named = _named(groups)
    benchmark = Benchmark(
        name=name,
        version="",
        transform=transform,
        **{role: None if place is None else open_set(role, place) for role, place in single.items()},  # type: ignore[arg-type]
        **{role: tuple(open_set(label, place) for label, place in named[role]) for role in groups},  # type: ignore[arg-type]
    )
    held = [[role, images.name, images.fingerprint] for role, images in benchmark.members()]
    return replace(benchmark, version=fingerprint(held)[:12])


def _named(groups: Mapping[str, Places]) -> dict[str, list[tuple[str, Place]]]:
    """Every set of the groups with its name: the one given, or one made from where it lies."""
    entries: list[tuple[str, str | None, Place]] = []
    for role, places in groups.items():
        if isinstance(places, Mapping):
            entries += [(role, label, place) for label, place in places.items()]
        elif isinstance(places, str | Path | ImageSet):
            raise UsageError(f"{role} takes several sets: write {role}=[...], or a mapping from names to places")
        else:
            entries += [(role, place.name if isinstance(place, ImageSet) else None, place) for place in places]
    stems = [stem_of(str(place)) for _, label, place in entries if label is None]
    taken = {*_SINGLE, *(label for _, label, _ in entries if label is not None)}
    named: dict[str, list[tuple[str, Place]]] = {role: [] for role in groups}
    for role, label, place in entries:
        if label is None:
            label = _free_name(str(place), stems, taken)
            taken.add(label)
        named[role].append((label, place))
    return named


def _free_name(place: str, stems: list[str], taken: set[str]) -> str:
    name = stem_of(place)
    if stems.count(name) > 1 or name in taken:
        parent = Path(place).absolute().parent.name
        name = f"{parent}_{name}" if parent else name
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free

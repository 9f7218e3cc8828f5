"""OwnSets: a benchmark given as places instead of a name."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from oodscope.base.catalog import catalog
from oodscope.base.config import StrictModel
from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.data.benchmark import Benchmark
from oodscope.data.images.locating import locate, stem_of
from oodscope.data.images.readability import usable
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.own import own_benchmark
from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Progress
from oodscope.training.loop.randomness import generator as random_numbers


def open_one(text: str, root: Path | None, progress: Progress) -> ImageSet:
    """The set that ``text`` names: a place of one's own, or ``BENCHMARK:SET``.

    Parameters
    ----------
    text : what ``locate`` reads, or a benchmark (a name of ``oodscope list benchmarks``, or a YAML file), a colon, and
        the name of one of its sets.
    root : folder of public datasets.
    """
    benchmark, colon, name = text.rpartition(":")
    if colon and (benchmark in catalog("benchmarks") or Path(benchmark).suffix in (".yaml", ".yml")):
        sets = {images.name: images for _, images in load_benchmark(benchmark, root=root, progress=progress).members()}
        if name not in sets:
            raise UnknownNameError(f"set of {benchmark}", name, sets, f"It has: {', '.join(sets)}")
        return sets[name]
    return usable(locate(text).open(stem_of(text), Path(), progress), skip_unreadable=False)


HELD_OUT = 5
"""Without a validation set, one image of so many is held out for it."""


class IdSets(NamedTuple):
    """Images to learn from, images to compare with, and those that a set stands beside in a test."""

    train: ImageSet
    val: ImageSet
    test: ImageSet


def open_id(text: str, val: str | None, root: Path | None, seed: int, progress: Progress) -> IdSets:
    """The images that ``text`` names.

    Parameters
    ----------
    text : a benchmark (a name of ``oodscope list benchmarks``, or a YAML file), which brings ``id_train``, ``id_val``
        and ``id_test``; or one set, as ``open_one`` reads it.
    val : the validation images of one set; without them, a random fifth of its images. They stand for the test images.
    root : folder of public datasets.
    seed : of the images held out.
    """
    if text in catalog("benchmarks") or Path(text).suffix in (".yaml", ".yml"):
        benchmark = load_benchmark(text, root=root, progress=progress)
        held = open_one(val, root, progress) if val else benchmark.id_val
        if benchmark.id_train is None or held is None:
            missing = "id_train" if benchmark.id_train is None else "id_val"
            raise DataError(f"benchmark {benchmark.name!r} has no {missing}; name one set with --id and one with --val")
        return IdSets(benchmark.id_train, held, benchmark.id_test)
    images = open_one(text, root, progress)
    if val:
        held = open_one(val, root, progress)
        return IdSets(images, held, held)
    order = torch.randperm(len(images), generator=random_numbers("held out", seed)).numpy()
    cut = len(images) // HELD_OUT
    if not cut:
        raise DataError(f"set {images.name!r}: {len(images)} images are too few to hold some out; name others by --val")
    held = images.take(sorted(order[:cut]))
    return IdSets(images.take(sorted(order[cut:])), held, held)


Places = list[str] | dict[str, str]


class OwnSets(StrictModel):
    """Where the sets lie, by role: paths, ``hf:NAME[:SPLIT]`` or ``torchvision:CLASS[:SPLIT]``.

    ``near``, ``far`` and ``csid`` hold several, as a list or by name.
    """

    id_test: str
    id_train: str | None = None
    id_val: str | None = None
    near: Places = []
    far: Places = []
    csid: Places = []
    ood_val: str | None = None
    transform: Preprocess | None = None

    def found_from(self, folder: Path) -> "OwnSets":
        """The same with paths relative to ``folder``."""

        def moved(place: Any) -> Any:
            if isinstance(place, dict):
                return {name: moved(each) for name, each in place.items()}
            if isinstance(place, list):
                return [moved(each) for each in place]
            named = not isinstance(place, str) or place.startswith(("hf:", "torchvision:"))
            return place if named else str(folder / place)

        return self.model_copy(update={role: moved(getattr(self, role)) for role in type(self).model_fields})

    def open(self, *, skip_unreadable: bool, progress: Progress) -> Benchmark:
        """The benchmark itself."""
        places = {role: getattr(self, role) for role in type(self).model_fields}
        return own_benchmark(**places, skip_unreadable=skip_unreadable, progress=progress)


def named_places(option: str, given: list[str]) -> Places:
    """Places of a repeated option; ``NAME=PLACE`` gives a set its name, and then all of that option need one."""
    pairs = [_split(each) for each in given]
    named = {name: place for name, place in pairs if name}
    if not named:
        return [place for _, place in pairs]
    if len(named) < len(pairs):
        raise OodscopeError(f"{option}: give each of its sets a name of its own (NAME=PLACE), or none")
    return named


def _split(text: str) -> tuple[str, str]:
    """``NAME=PLACE`` in its parts; a path that exists as it stands is a path, whatever signs it holds."""
    name, sign, place = text.partition("=")
    plain = not sign or not name or "/" in name or Path(text).exists()
    return ("", text) if plain else (name, place)

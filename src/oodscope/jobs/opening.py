"""Sets that one word names: a place of one's own, a benchmark, or one set of a benchmark."""

from pathlib import Path
from typing import NamedTuple

import torch

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.data.images.locating import locate, stem_of
from oodscope.data.images.readability import usable
from oodscope.data.imageset import ImageSet
from oodscope.data.loading import load_benchmark
from oodscope.data.packaged import BENCHMARKS
from oodscope.execution.progress import Progress
from oodscope.jobs.sets import set_of_benchmark
from oodscope.training.loop.randomness import generator as random_numbers


def open_one(
    text: str, root: Path | None, progress: Progress, *, name: str = "", skip_unreadable: bool = False
) -> ImageSet:
    """The set that ``text`` names: a place of one's own, or ``BENCHMARK:SET``.

    Parameters
    ----------
    text : what ``locate`` reads, or a benchmark (a name of ``oodscope list benchmarks``, or a YAML file), a colon, and
        the name of one of its sets.
    root : folder of public datasets.
    name : of a place's set; made from the place unless given.
    skip_unreadable : leave out images of a place that cannot be decoded.
    """
    if found := set_of_benchmark(text):
        benchmark, wanted = found
        sets = {images.name: images for _, images in load_benchmark(benchmark, root=root, progress=progress).members()}
        if wanted not in sets:
            raise UnknownNameError(f"set of {benchmark}", wanted, sets, f"It has: {', '.join(sets)}")
        return sets[wanted]
    return usable(locate(text).open(name or stem_of(text), Path(), progress), skip_unreadable=skip_unreadable)


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
    if text in BENCHMARKS or Path(text).suffix in (".yaml", ".yml"):
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

"""WebDataset: images and labels side by side in tar files."""

import json
import re
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from oodscope.base.errors import DataError
from oodscope.data.imageset import ImageSet
from oodscope.data.labels import read_labels
from oodscope.data.shardindex import Sample, index_shard
from oodscope.data.sources.shards import ShardSource
from oodscope.execution.progress import SILENT, Progress

_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST_SHARDS = 100_000


def open_webdataset(name: str, pattern: Path | str, progress: Progress = SILENT) -> ImageSet:
    """Images inside one or more uncompressed tar files, which are read in place and never extracted.

    A sample is the files that share a name up to the first dot: an image (``.jpg``, ``.png``, ``.webp``, ...) and,
    for labelled sets, its label: ``.cls`` holds a number or the name of a class, ``.json`` has it as ``label`` or
    ``class``. Where each image lies, and its digest, is found in one pass over each shard and kept in the cache.

    Parameters
    ----------
    name : of the set.
    pattern : a tar file, or several: ``train-{000..009}.tar``, ``{a,b}.tar``, ``train-*.tar``.
    """
    shards = expand(name, str(pattern))
    samples: list[Sample] = []
    with progress.stage(f"index {name}", len(shards)) as advance:
        for shard in shards:
            samples += index_shard(shard)
            advance(1)
    if not samples:
        raise DataError(f"set {name!r}: no image in {pattern}")
    labels, names = _labels(name, samples)
    return ImageSet(name, ShardSource([sample.image for sample in samples]), labels, names)


def expand(name: str, pattern: str) -> list[Path]:
    """The shards that a pattern names, in order; each must exist."""
    braced = [pattern] if Path(pattern).exists() else _unbraced(pattern)
    found: list[str] = []
    for each in braced:
        found += sorted(glob(each)) if has_magic(each) and not Path(each).exists() else [each]  # noqa: PTH207  # as typed, absolute or not
    shards = [Path(each) for each in dict.fromkeys(found)]
    missing = [shard for shard in shards if not shard.is_file()]
    if missing:
        raise DataError(
            f"set {name!r}: {len(missing)} of {len(shards)} shards {'is' if len(missing) == 1 else 'are'} missing, "
            f"the first: {missing[0]}"
        )
    if not shards:
        raise DataError(f"set {name!r}: no file matches {pattern}")
    return shards


def _unbraced(pattern: str) -> list[str]:
    """``a{08..10}`` is ``a08, a09, a10``; ``{x,y}`` is ``x, y``; several braces are combined."""
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    inside = braces[1]
    bounds = re.fullmatch(r"(\d+)\.\.(\d+)", inside)
    if bounds:
        first, last = int(bounds[1]), int(bounds[2])
        if not 0 <= last - first < _MOST_SHARDS:
            raise DataError(f"{pattern}: {{{inside}}} does not count upwards, or too far")
        # a leading zero means: all numbers as wide as this one
        choices = [str(number).zfill(len(bounds[1])) for number in range(first, last + 1)]
    else:
        choices = inside.split(",")
    head, tail = pattern[: braces.start()], pattern[braces.end() :]
    return [head + choice + rest for choice in choices for rest in _unbraced(tail)]


def _labels(name: str, samples: list[Sample]) -> tuple[list[int] | None, list[str]]:
    without = [sample for sample in samples if not sample.kind]
    if len(without) == len(samples):
        return None, []
    if without:
        first = without[0].image
        raise DataError(
            f"set {name!r}: {len(without)} of {len(samples)} images have no label (.cls or .json), the first: "
            f"{first.name!r} in {first.shard}"
        )
    places = [f"{sample.image.shard}, {sample.image.name!r}" for sample in samples]
    texts = [_text(sample, place) for sample, place in zip(samples, places)]
    return read_labels(texts, places)


def _text(sample: Sample, place: str) -> str:
    if sample.kind == "cls":
        return sample.label
    try:
        content: Any = json.loads(sample.label)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: its .json is not valid JSON: {error}") from error
    for key in ("label", "class"):
        if isinstance(content, dict) and isinstance(content.get(key), str | int):
            return str(content[key])
    raise DataError(f"{place}: its .json has no 'label' or 'class' that is a number or a name")

"""``render_split``: any set of the benchmark, any size, from a seed."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.glyphs.characters import ID, NEAR, OOD_TRAIN, OOD_VAL, character_source
from oodscope.data.glyphs.digits import DIGITS
from oodscope.data.glyphs.photographs import PHOTOGRAPHS
from oodscope.data.glyphs.source import Drawn, Source, streams
from oodscope.data.glyphs.textures import TEXTURES
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress

_SOURCES: dict[str, Source] = {
    "id_train": character_source(ID),
    "id_val": character_source(ID),
    "id_test": character_source(ID),
    "near_letters": character_source(NEAR),
    "photographs": PHOTOGRAPHS,
    "digits": DIGITS,
    "textures": TEXTURES,
    "unseen_fonts": character_source(ID, unseen=True),
    "corrupted": character_source(ID, corrupted=True),
    "ood_val": character_source(OOD_VAL),
    "ood_train": character_source(OOD_TRAIN),
}

SPLITS = tuple(_SOURCES)
"""Every name that ``render_split`` accepts."""


@dataclass(frozen=True)
class GlyphSplit:
    """One rendered set, ordered by class.

    ``labels`` index ``class_names``; the sets that show ID characters share the classes of ``id_train``, every
    other set has its own. ``hierarchy`` holds, for each image, its place on three levels from the coarsest to
    the finest: ``script``, ``character``, ``font``. Where nothing is written the levels keep their meaning of
    group, class and variant: a stripe is texture > stripes > stripes.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    hierarchy: dict[str, NDArray[np.str_]]


def count_classes(name: str) -> int:
    """How many classes the set ``name`` has."""
    return len(_source(name).groups)


def render_split(
    name: str, *, per_class: int, seed: int = 0, progress: Callable[[int], None] | None = None
) -> GlyphSplit:
    """Draw ``per_class`` images [32, 32, 3] of every class of the set ``name``.

    An image depends only on (seed, set, class, index): a smaller ``per_class`` gives the first images of a
    larger one, and no two sets share an image. ``progress`` receives how many images each finished class added.
    """
    source = _source(name)
    if per_class < 1:
        raise DataError(f"glyphs: per_class is {per_class}; at least one image per class is needed")
    if seed < 0:
        raise DataError(f"glyphs: seed is {seed}; it must not be negative")
    drawn: list[Drawn] = []
    for class_name in source.groups:
        drawn.append(source.draw(class_name, per_class, streams(seed, name, class_name)))
        if progress is not None:
            progress(per_class)
    return _assemble(source, drawn, per_class)


def _source(name: str) -> Source:
    if name not in _SOURCES:
        raise UnknownNameError("glyphs split", name, SPLITS)
    return _SOURCES[name]


def _assemble(source: Source, drawn: list[Drawn], per_class: int) -> GlyphSplit:
    names = tuple(source.groups)
    return GlyphSplit(
        images=np.concatenate([d.images for d in drawn]),
        labels=np.repeat(np.arange(len(names)), per_class),
        class_names=names,
        hierarchy={
            "script": np.repeat(np.array(list(source.groups.values())), per_class),
            "character": np.repeat(np.array(names), per_class),
            "font": np.concatenate([d.leaves for d in drawn]),
        },
    )


RENDERING = 1
"""Raised whenever the same seed draws other pixels, so that no cache serves the old ones."""


def open_glyphs(name: str, split: str, *, per_class: int, seed: int = 0, progress: Progress = SILENT) -> ImageSet:
    """One split of the glyphs benchmark; see ``oodscope.data.glyphs.split.render_split`` for the parameters."""
    drawn = _cached(split, per_class, seed, progress)
    return ImageSet.from_arrays(name, drawn.images, drawn.labels, drawn.class_names, drawn.hierarchy)


def _cached(split: str, per_class: int, seed: int, progress: Progress) -> GlyphSplit:
    # the fonts come with matplotlib and the rasteriser with Pillow: another version may draw other pixels
    recipe = [RENDERING, split, per_class, seed, version("matplotlib"), version("pillow")]
    path = cache_root() / "glyphs" / f"{split}-{fingerprint(recipe)[:16]}.npz"
    if (kept := _read(path)) is not None:
        return kept
    with progress.stage(f"draw {split}", per_class * count_classes(split)) as advance:
        drawn = render_split(split, per_class=per_class, seed=seed, progress=advance)
    levels = {f"level:{level}": column for level, column in drawn.hierarchy.items()}
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        names = np.array(drawn.class_names)
        np.savez(stream, images=drawn.images, labels=drawn.labels, class_names=names, **levels)  # type: ignore[arg-type]
    return drawn


def _read(path: Path) -> GlyphSplit | None:
    try:
        with np.load(path, allow_pickle=False) as kept:
            levels = {key.removeprefix("level:"): kept[key] for key in kept.files if key.startswith("level:")}
            return GlyphSplit(kept["images"], kept["labels"], tuple(map(str, kept["class_names"])), levels)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        # absent or broken: drawing anew is cheaper than any repair
        return None

"""The embedded glyphs as image sets, rendered once and kept in the cache."""

import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from oodscope.base.files import atomic_path, cache_root
from oodscope.base.hashing import fingerprint
from oodscope.data.glyphs.split import GlyphSplit, count_classes, render_split
from oodscope.data.imageset import ImageSet
from oodscope.execution.progress import SILENT, Progress

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

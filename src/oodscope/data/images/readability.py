"""Sets with images that are missing or damaged: refused as a whole, or reduced to what can be read."""

from oodscope.base.errors import DataError
from oodscope.data.images.encoded import EncodedSource
from oodscope.data.images.files import FileSource
from oodscope.data.imageset import ImageSet


def usable(images: ImageSet, *, skip_unreadable: bool) -> ImageSet:
    """The set as a run may use it: without the images that cannot be read, or whole."""
    return readable(images) if skip_unreadable else complete(images)


def complete(images: ImageSet) -> ImageSet:
    """The set itself, once every file it names is there: a gap should stop a run before it starts."""
    if isinstance(images.source, FileSource):
        images.source.require_all()
    return images


def readable(images: ImageSet) -> ImageSet:
    """The images of a set that can be decoded; the set itself if all can."""
    source = images.source
    if not isinstance(source, EncodedSource):
        return _without(images, set(source.unreadable()))
    missing = set(source.missing())
    there = [row for row in range(len(source)) if row not in missing]
    if not there:
        raise DataError(f"set {images.name!r}: none of its {len(images)} images is there")
    present = source.keeping(there) if missing else source
    bad = missing | {there[row] for row in present.unreadable()}
    keep = [position for position, row in enumerate(images.rows) if int(row) not in bad]
    if len(keep) == len(images):
        return images
    if not keep:
        raise DataError(f"set {images.name!r}: none of its {len(images)} images can be decoded")
    kept = ImageSet(
        images.name,
        source.keeping([int(images.rows[position]) for position in keep]),
        images.labels[keep],
        images.class_names,
        hierarchy={level: column[keep] for level, column in images.hierarchy.items()},
    )
    kept.skipped = tuple(source.name(row) for row in sorted(bad & set(images.rows.tolist())))
    return kept


def _without(images: ImageSet, bad: set[int]) -> ImageSet:
    """The set without some rows of its source."""
    if not bad.intersection(images.rows.tolist()):
        return images
    kept = images.take([position for position, row in enumerate(images.rows) if int(row) not in bad])
    kept.skipped = tuple(images.source.name(row) for row in sorted(bad.intersection(images.rows.tolist())))
    return kept

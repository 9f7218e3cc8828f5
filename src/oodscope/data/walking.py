"""Every image file below a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from oodscope.base.errors import DataError
from oodscope.data.sources.decoding import EXTENSIONS


def images_under(root: Path, above: frozenset[tuple[int, int]] = frozenset(), prefix: str = "") -> Iterator[str]:
    """Paths relative to ``root``, with ``/`` between the parts.

    Links to folders are followed, except back to a folder that they lie in. A link that leads nowhere counts:
    whoever reads it says so, where leaving it out would lose an image without a word.
    """
    try:
        status = root.stat()
        entries = list(os.scandir(root))
    except OSError as error:
        raise DataError(f"cannot look into {root}: {error.strerror}") from error
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    for entry in entries:
        if entry.is_dir():
            yield from images_under(Path(entry.path), above | {here}, f"{prefix}{entry.name}/")
        elif os.path.splitext(entry.name)[1].lower() in EXTENSIONS and (entry.is_file() or entry.is_symlink()):  # noqa: PTH122
            yield f"{prefix}{entry.name}"

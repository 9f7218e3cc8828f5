"""Building: every page of the board, from the folder of entries."""

from pathlib import Path

BUILD_SECONDS = 1800.0
"""Longer than verifying a few thousand entries takes; who passes it hangs."""


def build(entries: Path) -> dict[str, bytes]:
    """The pages of the site and the answers of the interface for programs, by path. Runs in a process of its own."""
    raise NotImplementedError


def state(entries: Path) -> tuple[tuple[str, int, int], ...]:
    """What tells one state of the folder from another without reading it: names, sizes and times of its files.

    Hidden files and folders do not count; a folder takes its place whole, so a state never shows half of one.
    """
    found = []
    for place in sorted(entries.iterdir()) if entries.is_dir() else []:
        if place.name.startswith("."):
            continue
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            known = path.stat()
            found.append((path.relative_to(entries).as_posix(), known.st_size, known.st_mtime_ns))
    return tuple(found)

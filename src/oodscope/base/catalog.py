"""The committed catalogue of what the package offers, readable without importing torch.

``oodscope list`` must answer at once, and importing every detector to ask its name takes seconds.
``make catalog`` writes ``catalog.json`` from the classes; a test compares the two.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any


def catalog(section: str) -> dict[str, dict[str, Any]]:
    """The entries of one section: ``detectors``, ``benchmarks``, ``models`` and what else has names."""
    entries: dict[str, dict[str, Any]] = _load()[section]
    return entries


def plugins(section: str) -> dict[str, str]:
    """What installed packages provide through the entry point group ``oodscope.<section>``: name and target."""
    return _offered(section, tuple(sys.path))


@cache
def _offered(section: str, path: tuple[str, ...]) -> dict[str, str]:
    # reading the metadata of every installed package takes tens of milliseconds, and tables ask once for each number;
    # importing what reads them takes as long, and help needs none of it
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=f"oodscope.{section}")}


@cache
def _load() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(__file__).parent.parent / "catalog.json").read_text(encoding="utf-8"))
    return content

"""Processor time of each tutorial while the gallery runs them, for benchmarks/site_build.py."""

import json
import os
from pathlib import Path

FILE = "OODSCOPE_DOCS_TIMES"
"""The variable that names the file to which times are written; without it nothing is."""

_before: dict[str, float] = {}


def clock(gallery_conf, fname, when):
    """Called before and after each tutorial; commands that it ran count too."""
    if FILE not in os.environ:
        return
    now, name = sum(os.times()[:4]), Path(fname).stem
    if when == "before":
        _before[name] = now
        return
    place = Path(os.environ[FILE])
    times = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
    place.write_text(json.dumps(times | {name: now - _before[name]}), encoding="utf-8")

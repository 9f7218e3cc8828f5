"""Where datasets lie."""

import os
from pathlib import Path

from oodscope.base.files import cache_root


def data_root(explicit: Path | str | None = None) -> Path:
    """The folder of datasets: the one given, else ``OODSCOPE_ROOT``, else ``data`` in the cache."""
    if explicit is not None:
        return Path(explicit).expanduser()
    named = os.environ.get("OODSCOPE_ROOT")
    return Path(named).expanduser() if named else cache_root() / "data"

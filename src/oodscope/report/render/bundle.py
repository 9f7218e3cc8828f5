"""The one script of a page that is not ours: plotly's own bundle, kept in the package, so that no network is asked."""

from hashlib import sha256
from importlib.resources import files

from oodscope.base.errors import StorageError

VERSION = "4.1.1"
SHA256 = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"
"""Of the script as published on npm (``plotly.js-cartesian-dist-min``)."""

_FOLDER = files("oodscope.report") / "vendor"


def script() -> str:
    """The bundle as text that can stand inside a ``<script>`` element.

    A page allows scripts by their hash and nothing else may run, so a changed file stops here rather than in a browser.
    """
    content = (_FOLDER / "plotly-cartesian.min.js").read_bytes()
    if sha256(content).hexdigest() != SHA256:
        raise StorageError(f"plotly-cartesian.min.js is not the published bundle {VERSION}; install oodscope again")
    return content.decode("utf-8")


def licence() -> str:
    """The licence of the bundle, which travels with every copy of it."""
    return (_FOLDER / "plotly-LICENSE.txt").read_text(encoding="utf-8")

"""How every page is filled in: escaped by default, a name that is missing stops the page, and only our scripts run."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from gzip import compress
from hashlib import sha256
from io import BytesIO
from types import MappingProxyType
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from oodscope.base.hashing import canonical_json
from oodscope.data.images.decoding import as_rgb
from oodscope.document.claim import claims_verdict, count_claims
from oodscope.document.html import bare, number_facts
from oodscope.document.methods import method_name, method_paper
from oodscope.document.table import Table
from oodscope.report.render import bundle
from oodscope.report.render.plotly import plotly_json

SIDE = 96
"""The largest side of a picture in pixels."""


def data_uri(pixels: NDArray[np.uint8]) -> str:
    """An image as a PNG in a data URI: pixels kept if it is small, shrunk if it is not."""
    picture = Image.fromarray(as_rgb(pixels))
    picture.thumbnail((SIDE, SIDE))
    stream = BytesIO()
    picture.save(stream, "PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(stream.getvalue()).decode()}"


EVERYWHERE = ("theme.js", "scroll.js")
"""Scripts of every page: light or dark, and tables wider than the page."""


def _markup(table: Table, kind: str = "sheet") -> Markup:
    """A table of a page; its title and notes stand in the template."""
    return Markup(bare(table, kind))


def page_environment() -> Environment:
    """The templates of this package; a page adds filters of its own."""
    environment = Environment(
        loader=PackageLoader("oodscope.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "concluded": claims_verdict,
        "counted": count_claims,
        "method": method_name,
        "paper": method_paper,
        "facts": lambda number: Markup(number_facts(number)),
        "json": canonical_json,
        "markup": _markup,
        "plotly": lambda figure: Markup(plotly_json(figure)),
    }
    environment.globals["side"] = SIDE
    return environment


def render_page(
    template: str,
    scripts: dict[str, str] | None = None,
    packed: str = "",
    filters: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    **context: Any,
) -> str:
    """A page whose policy lets nothing run but the scripts given here, and asks no network for anything.

    Parameters
    ----------
    template : one that extends ``layout.html``.
    scripts : text by name, in the order in which they run; every page has the one that switches between light and dark.
    packed : a script that another one unpacks: it may run, and the template finds it, compressed, as ``packed``.
    """
    environment = page_environment()
    environment.filters |= filters
    named_scripts = own_scripts(*EVERYWHERE) | (scripts or {})
    return environment.get_template(template).render(
        **context,
        policy=content_policy([*named_scripts.values(), packed]),
        scripts={name: Markup(text) for name, text in named_scripts.items()},
        packed=b64encode(compress(packed.encode(), mtime=0)).decode() if packed else "",
    )


def render_plotted(
    template: str, *scripts: str, filters: Mapping[str, Callable[..., Any]] = MappingProxyType({}), **context: Any
) -> str:
    """A page with figures: as :func:`render_page`, with the scripts that draw and the licence of the one not ours.

    Parameters
    ----------
    scripts : names of further scripts that lie beside the templates.
    """
    own = own_scripts("unpack.js", "plots.js", *scripts)
    return render_page(template, own, bundle.script(), filters, licence=bundle.licence(), **context)


def own_scripts(*names: str) -> dict[str, str]:
    """The text of scripts that lie beside the templates, by name."""
    environment = page_environment()
    return {name: environment.get_template(name).render() for name in names}


def content_policy(scripts: Iterable[str]) -> str:
    """What a browser may do with the page: its own styles, pictures inside it, and these scripts, by their hash."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts if text)
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}"

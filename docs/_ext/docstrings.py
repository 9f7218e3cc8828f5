"""Parameters of docstrings as sentences.

Our docstrings say ``name : what it is``; the tools of others take what follows the colon for a type. Moving it below
the name makes it the description, without a change of any docstring.
"""

import re

from sphinx.application import Sphinx

_SECTIONS = ("Parameters", "Attributes", "Returns")
_NAMED = re.compile(r"^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*) : (\S.*)$")


def described(lines: list[str]) -> list[str]:
    """The lines of a docstring with every parameter's text below its name."""
    made: list[str] = []
    inside = False
    lines = [line.replace("Class attributes", "Attributes") for line in lines]  # a section that napoleon knows
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}", below.strip()) and line.strip():
            inside = line.strip() in _SECTIONS
        found = _NAMED.match(line) if inside else None
        made += [found[1], f"    {found[2]}"] if found else [line]
    return made


def _process(app, what, name, obj, options, lines):
    lines[:] = described(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Rewrite docstrings before napoleon reads them."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True}

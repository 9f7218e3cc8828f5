"""Formulas as MathML, which browsers draw themselves: no script, no font and no request to another host."""

import re
from html import escape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

_MEANT = {
    r"\\arg\s*\\(min|max)": r"\\operatorname{arg\\,\1}",
    r"\\([Bb]ig+)([lr]?)\s*\\[lr]Vert": r"\\\1\2\\|",
    r"\\([Bb]ig+)\s*\\Vert": r"\\\1\\|",
}
"""What the converter does not know, in commands that it does."""


def to_mathml(tex: str, display: str) -> str:
    """A formula of LaTeX as an element ``math``; a command that stays unknown is an error, not a stray word."""
    meant = re.sub(r"\s+", " ", tex.strip())
    for pattern, replacement in _MEANT.items():
        meant = re.sub(pattern, replacement, meant)
    made = str(convert(meant, display=display))
    if unknown := re.findall(r">\s*(\\[A-Za-z]+)", made):
        raise ValueError(f"the formula {tex!r} has commands that no browser would draw: {', '.join(unknown)}")
    return made


def _inline(visitor, node):
    visitor.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(visitor, node):
    parts = [part for part in re.split(r"\n\s*\n", node.astext()) if part.strip()]
    visitor.body.append("".join(f'<div class="math">{to_mathml(part, "block")}</div>' for part in parts))
    raise nodes.SkipNode


def _text(visitor, node):
    visitor.add_text(escape(node.astext()))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw formulas of HTML pages by MathML."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}

"""What results look like in a notebook: plain HTML that takes its colours from the page, light or dark."""

from html import escape

_STYLE = """<style>
.oodscope { overflow-x: auto; }
.oodscope table { border-collapse: collapse; margin: .3em 0; color: inherit; background: none; }
.oodscope table th, .oodscope table td { text-align: right; white-space: nowrap; padding: .15em .6em; }
.oodscope table th:first-child, .oodscope table .label { text-align: left; }
.oodscope table thead th { text-align: right; }
.oodscope td.best b { font-weight: 700; }
.oodscope td small { opacity: .65; margin-left: .4em; }
.oodscope p { font-size: .85em; max-width: 60em; margin: .2em 0; }
.oodscope p.note { opacity: .75; }
</style>"""
"""No colour is named: letters and ground are those of the notebook, whichever theme it wears."""


def block(*parts: str) -> str:
    """Parts of HTML, already escaped, as one output that styles nothing but itself."""
    return f'{_STYLE}<div class="oodscope">{"".join(parts)}</div>'


def note(text: str) -> str:
    """A line of words below a table."""
    return f'<p class="note">{escape(text)}</p>'

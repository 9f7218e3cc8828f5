"""A grid as HTML: the table of the report, and a self-styled one for notebooks."""

from html import escape

from oodscope.document.grid import Cell, Grid, Row
from oodscope.document.wording import heading
from oodscope.metrics.metric import MEAN

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


def notebook(grid: Grid) -> str:
    """The table with its caption, accuracy and notes, styled for a notebook."""
    return block(*notebook_parts(grid))


def notebook_parts(grid: Grid) -> list[str]:
    """The same in parts, for an output that shows several tables."""
    caption = f"<p><b>{escape(heading(grid.metric))}</b>, protocol {escape(grid.protocol)}</p>"
    accuracy = [f"<p>Accuracy in percent: {accuracy_line(grid)}</p>"] if grid.accuracy else []
    return [caption, table(grid), *accuracy, *map(note, grid.notes)]


def table(grid: Grid) -> str:
    """The bare table. Every number is also there in full, as ``data-value``, for sorting and for programs."""
    groups = "".join(
        f'<th scope="colgroup" colspan="{count}" class="group">{escape(group)}</th>' for group, count in grid.groups()
    )
    names = "".join(
        f'<th scope="col">{escape(MEAN if column.set == MEAN else column.set)}</th>' for column in grid.columns
    )
    rank = '<th scope="col">rank</th>' * grid.ranked
    head = f'<tr><th></th>{"<th></th>" * grid.ranked}{groups}</tr><tr><th scope="col">detector</th>{rank}{names}</tr>'
    bodies = []
    tracks = grid.tracks()
    for words, rows in tracks:
        width = len(grid.columns) + 1 + grid.ranked
        title = f'<tr class="track"><th scope="rowgroup" colspan="{width}">{escape(words)}</th></tr>'
        lines = (
            f'<tr><th scope="row">{escape(row.detector)}</th>{_rank(row) if grid.ranked else ""}'
            f"{''.join(map(_cell, row.cells))}</tr>"
            for row in rows
        )
        bodies.append(f"<tbody>{title if len(tracks) > 1 else ''}{''.join(lines)}</tbody>")
    return (
        f'<table data-protocol="{escape(grid.protocol)}" data-metric="{escape(grid.metric)}">'
        f"<thead>{head}</thead>{''.join(bodies)}</table>"
    )


def accuracy_line(grid: Grid) -> str:
    """The accuracy on each set, in one line."""
    return ", ".join(f"{escape(name)} {_number(cell)}" for name, cell in grid.accuracy)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td>–</td>"
    kind = ' class="best"' if cell.best else ' class="close"' if cell.close else ""
    wide = f' title="for other classes: {cell.class_interval}"' if cell.class_interval else ""
    return f'<td{kind}{wide} data-value="{cell.value!r}">{_number(cell)}</td>'


def _rank(row: Row) -> str:
    cell = row.cells[0]
    first = "" if cell is None or cell.rank is None else f' data-value="{cell.rank[0]}"'
    return f'<td class="rank"{first}>{row.rank or "–"}</td>'


def _number(cell: Cell) -> str:
    told = f' title="{escape(cell.exposure)}"' if cell.exposure else ""
    mark = f"<sup{told}>{cell.marks}</sup>" if cell.marks else ""
    value = f"<b>{cell.number}</b>{mark}" if cell.best else cell.number + mark
    return f"{value}<small>{cell.interval}</small>" if cell.interval else value

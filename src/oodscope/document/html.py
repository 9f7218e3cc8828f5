"""A table as HTML: for the report's pages, and self-styled for notebooks."""

from html import escape

from oodscope.document.number import Number
from oodscope.document.table import Cell, Row, Table

_STYLE = """<style>
.oodscope { overflow-x: auto; }
.oodscope table { border-collapse: collapse; margin: .3em 0; color: inherit; background: none; }
.oodscope table th, .oodscope table td { text-align: right; white-space: nowrap; padding: .15em .6em; }
.oodscope table th:first-child, .oodscope table .label { text-align: left; }
.oodscope table thead th { text-align: right; }
.oodscope td.best b { font-weight: 700; }
.oodscope small { opacity: .65; margin-left: .4em; }
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


def notebook(table: Table) -> str:
    """The table with its title, accuracy and notes, styled for a notebook."""
    return block(*notebook_parts(table))


def notebook_parts(table: Table) -> list[str]:
    """The same in parts, for an output that shows several tables."""
    accuracy = [f"<p>Accuracy in percent: {_accuracy(table)}</p>"] if table.accuracy else []
    return [f"<p><b>{escape(table.title)}</b></p>", bare(table), *accuracy, *map(note, table.notes)]


def bare(table: Table, kind: str = "") -> str:
    """The table alone. Every number is also there in full, as ``data-value``, for sorting and for programs.

    Parameters
    ----------
    kind : its class, for a page that has a style for such tables.
    """
    table = table.for_people()
    facts = "".join(f' data-{escape(name)}="{escape(value)}"' for name, value in table.facts.items())
    bodies = []
    parts = table.parts()
    for words, rows in parts:
        width = len(table.labels) + table.ranked + len(table.columns)
        title = f'<tr class="track"><th scope="rowgroup" colspan="{width}">{escape(words)}</th></tr>'
        lines = "".join(_row(table, row) for row in rows)
        bodies.append(f"<tbody>{title if len(parts) > 1 else ''}{lines}</tbody>")
    return f"<table{_class(kind)}{facts}><thead>{_head(table)}</thead>{''.join(bodies)}</table>"


def _head(table: Table) -> str:
    labels = "".join(f'<th scope="col" class="label">{escape(label.name)}</th>' for label in table.labels)
    rank = '<th scope="col">rank</th>' * table.ranked
    names = "".join(
        f'<th scope="col"{_class("first" if first else "")}>{escape(column.name)}</th>'
        for column, first in zip(table.columns, _firsts(table))
    )
    line = f"<tr>{labels}{rank}{names}</tr>"
    if not table.grouped:
        return line
    groups = "".join(
        f'<th scope="colgroup" colspan="{count}" class="group">{escape(group)}</th>' for group, count in table.groups()
    )
    return f"<tr>{'<th></th>' * (len(table.labels) + table.ranked)}{groups}</tr>{line}"


def _firsts(table: Table) -> list[bool]:
    """Whether each column begins a group."""
    return [table.grouped and place == 0 for _, count in table.groups() for place in range(count)]


def _row(table: Table, row: Row) -> str:
    head, *others = row.labels
    labels = "".join(f'<td class="label"{_value(each.value)}>{escape(each.text)}</td>' for each in others)
    cells = "".join(_cell(cell, first) for cell, first in zip(row.cells, _firsts(table)))
    return f'<tr><th scope="row">{escape(head.text)}</th>{labels}{_rank(row) if table.ranked else ""}{cells}</tr>'


def _cell(cell: Cell, first: bool) -> str:
    edge = "first" if first else ""
    if cell is None:
        return f"<td{_class(edge)}>–</td>"
    if not isinstance(cell, Number):
        text = escape(cell.text)
        return f"<td{_class(edge)}{_value(cell.value)}>{f'<b>{text}</b>' if cell.strong else text}</td>"
    kind = "best" if cell.best else "close" if cell.close else ""
    return f"<td{_class(kind, 'worst' * cell.worst, edge)}{number_facts(cell)}>{number_html(cell)}</td>"


def _rank(row: Row) -> str:
    return f'<td class="rank"{_value(row.rank[0] if row.rank else None)}>{row.places or "–"}</td>'


def number_html(number: Number) -> str:
    """The one way in which pages show a number: value, marks, and below it the widest interval that was measured.

    Both intervals, exposure and doubts stand in words where a pointer or a screen reader asks for them.
    """
    title = f' title="{escape("; ".join(number.reasons))}"' if number.reasons else ""
    mark = f"<sup{_class('doubt' if number.doubts else '')}>{number.marks}</sup>" if number.marks else ""
    value = f"<b>{number.number}</b>" if number.best else number.number
    ends = number.class_interval or number.interval
    interval = f"<small{_class('classes' if number.class_interval else '')}>{ends}</small>" if ends else ""
    return f'<span class="number"{title}>{value}{mark}{interval}</span>'


def number_facts(number: Number) -> str:
    """The value and the ends of its intervals in full, as attributes, for sorting and for programs."""
    ends = {
        "low": number.low,
        "high": number.high,
        "class-low": number.class_low,
        "class-high": number.class_high,
        "sd": number.sd,
    }
    known = "".join(f' data-{name}="{value!r}"' for name, value in ends.items() if value is not None)
    return _value(number.value) + known


def _accuracy(table: Table) -> str:
    return ", ".join(f"{escape(name)} {number_html(number)}" for name, number in table.accuracy)


def _value(value: float | str | None) -> str:
    return "" if value is None or isinstance(value, str | bool) else f' data-value="{value!r}"'


def _class(*names: str) -> str:
    known = " ".join(filter(None, names))
    return f' class="{known}"' if known else ""

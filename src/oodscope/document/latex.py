"""A table in LaTeX in the manner of booktabs, ready to be pasted into a paper."""

import re

from oodscope.document.number import Number
from oodscope.document.table import Cell, Table
from oodscope.document.wording import CLOSE, EXPOSED

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "–": "--",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "−": "$-$",
    "‖": r"$\|$",
    "τ": r"$\tau$",
    "↻": r"$\star$",
    CLOSE: r"$^\dagger$",
    EXPOSED: r"$^\ddagger$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def latex(table: Table) -> str:
    """A ``table`` environment: best in bold, those too close to call marked, notes below it."""
    table = table.for_people()
    layout = "l" * len(table.labels) + "c" * table.ranked + "r" * len(table.columns)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(table.title)}.}}",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        *_header(table),
        *_body(table),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip\footnotesize {escaped(note)}" for note in _notes(table)),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """``text`` with every character that LaTeX would obey replaced by one that it prints."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def _header(table: Table) -> list[str]:
    beside = [escaped(label.name) for label in table.labels] + ["rank"] * table.ranked
    names = _line([*beside, *(escaped(column.name) for column in table.columns)])
    if not table.grouped:
        return [names]
    groups, rules, start = [], [], len(beside) + 1
    for group, count in table.groups():
        groups.append(rf"\multicolumn{{{count}}}{{c}}{{{escaped(group)}}}")
        if group:
            rules.append(rf"\cmidrule(lr){{{start}-{start + count - 1}}}")
        start += count
    return [_line([*[""] * len(beside), *groups]), "".join(rules), names]


def _body(table: Table) -> list[str]:
    lines = []
    parts = table.parts()
    width = len(table.labels) + table.ranked + len(table.columns)
    for words, rows in parts:
        lines.append(r"\midrule")
        if len(parts) > 1:
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{escaped(words)}}}}} \\")
        for row in rows:
            labels = [entry.text for entry in row.labels] + [row.places] * table.ranked
            lines.append(_line([*map(escaped, labels), *map(_cell, row.cells)]))
    return lines


def _cell(cell: Cell) -> str:
    if cell is None:
        return "--"
    if not isinstance(cell, Number):
        return rf"\textbf{{{_digits(cell.text)}}}" if cell.strong else _digits(cell.text)
    number = rf"\textbf{{{_digits(cell.number)}}}" if cell.best else _digits(cell.number)
    text = number + escaped(cell.marks)
    return rf"{text} {{\scriptsize {_digits(cell.brackets)}}}" if cell.brackets else text


def _digits(text: str) -> str:
    # a hyphen is too short for a minus, and digits in a formula would not be set in bold
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", escaped(text))


def _notes(table: Table) -> list[str]:
    if not table.accuracy:
        return list(table.notes)
    stated = ", ".join(f"{name} {number.text} {number.brackets}".rstrip() for name, number in table.accuracy)
    return [*table.notes, f"Accuracy in percent: {stated}."]


def _line(cells: list[str]) -> str:
    line = " & ".join(cells) + r" \\"
    # a bracket or star after the end of the line above would be taken for an argument of it
    return "{}" + line if line.startswith(("[", "*")) else line

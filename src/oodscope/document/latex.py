"""A grid as a LaTeX table in the manner of booktabs, ready to be pasted into a paper."""

from oodscope.document.grid import Cell, Grid
from oodscope.document.wording import CLOSE, EXPOSED, heading
from oodscope.metrics.metric import MEAN

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


def latex(grid: Grid) -> str:
    """A ``table`` environment: best in bold, those too close to tell marked, notes below it."""
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(heading(grid.metric))}, protocol {escaped(grid.protocol)}.}}",
        rf"\begin{{tabular}}{{l{'c' * grid.ranked}{'r' * len(grid.columns)}}}",
        r"\toprule",
        *_header(grid),
        *_body(grid),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip\footnotesize {escaped(note)}" for note in _notes(grid)),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """``text`` with every character that LaTeX would obey replaced by one that it prints."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def _header(grid: Grid) -> list[str]:
    spans, rules, start = [], [], 2 + grid.ranked
    for group, count in grid.groups():
        spans.append(rf"\multicolumn{{{count}}}{{c}}{{{escaped(group)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{start + count - 1}}}")
        start += count
    names = [MEAN if column.set == MEAN else escaped(column.set) for column in grid.columns]
    rank = ["rank"] * grid.ranked
    first = [escaped(heading(grid.metric)), *rank, *names]
    return [_line(["", *[""] * grid.ranked, *spans]), "".join(rules), _line(first)]


def _body(grid: Grid) -> list[str]:
    lines = []
    tracks = grid.tracks()
    for words, rows in tracks:
        lines.append(r"\midrule")
        if len(tracks) > 1:
            lines.append(rf"\multicolumn{{{len(grid.columns) + 1 + grid.ranked}}}{{l}}{{\emph{{{escaped(words)}}}}} \\")
        for row in rows:
            rank = [escaped(row.rank)] * grid.ranked
            lines.append(_line([escaped(row.detector), *rank, *map(_cell, row.cells)]))
    return lines


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "--"
    value = rf"\textbf{{{escaped(cell.text)}}}" if cell.best else escaped(cell.text)
    return rf"{value} {{\scriptsize {cell.brackets}}}" if cell.brackets else value


def _notes(grid: Grid) -> list[str]:
    if not grid.accuracy:
        return list(grid.notes)
    stated = ", ".join(f"{name} {cell.text} {cell.brackets}".rstrip() for name, cell in grid.accuracy)
    return [*grid.notes, f"Accuracy in percent: {stated}."]


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"

"""What a reader should know first: who leads under each protocol, and whether the lead is more than noise."""

from collections.abc import Sequence
from dataclasses import dataclass

from oodscope.results import Cell, Grid
from oodscope.results.wording import LABELS

_NAMED = 3


@dataclass(frozen=True)
class Headline:
    """The leader of one tuning track under one protocol; protocols and tracks are never averaged."""

    protocol: str
    track: str
    leader: str
    cell: Cell
    what: str
    comparison: str


def headlines(grid: Grid) -> list[Headline]:
    """One for each tuning track of a grid, judged by its first column: the near mean where there is one."""
    column = grid.columns[0]
    what = f"{column.group}-OOD" if column.group in ("near", "far") else f"{column.group.replace('_', '-')} mean"
    measured = f"{what} {LABELS[grid.metric]}"
    found = []
    for track, rows in grid.tracks():
        ranked = [(row.detector, cell) for row in rows if (cell := row.cells[0]) is not None]
        if ranked:
            (leader, best), rest = ranked[0], ranked[1:]
            what = f"leads {measured} with" if rest else f"has a {measured} of"
            found.append(Headline(grid.protocol, track, leader, best, what, _comparison(best, rest)))
    return found


def _comparison(best: Cell, rest: Sequence[tuple[str, Cell]]) -> str:
    if not rest:
        return "It is the only detector of this track, so nothing is compared."
    second, runner_up = rest[0]
    follows = f"{second} follows at {runner_up.number}"
    if not best.interval or not runner_up.interval:
        return f"{follows}; without intervals, how much of the lead is noise is not known."
    close = [name for name, cell in rest if cell.overlaps(best)]
    if second not in close:
        clear = f"{follows}, and its interval lies clear of the leader's"
        return f"{clear}." if not close else f"{clear}, unlike {_listed(close)}."
    intervals = f"The intervals of {_listed(close)} overlap" if close[1:] else f"The interval of {second} overlaps"
    return f"{follows}. {intervals} the leader's: not told apart here."


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:_NAMED], *([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"

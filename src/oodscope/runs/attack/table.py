"""The table of an attack in the shape of the paper's: AUROC clean and under each variation, then MinRank."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult

from oodscope.base.errors import UnknownNameError
from oodscope.document.latex import escaped as latex_escaped
from oodscope.document.sheet import FORMATS, Entry, Sheet
from oodscope.document.text import escaped as markdown_escaped
from oodscope.document.wording import CLOSE, percent, span
from oodscope.results.measurement import Measurement, overlap
from oodscope.runs.attack.run import ANY, PROTOCOL, Attack


@dataclass(frozen=True)
class AttackCell:
    """A value and what is known of its noise: the interval of an AUROC, the standard error of a MinRank.

    Parameters
    ----------
    unreliable : reasons not to trust the search behind it.
    best, worst : of its column, if it has several rows.
    close : not the best, but its interval overlaps that of the best.
    """

    row: Measurement
    standard_error: float | None = None
    unreliable: tuple[str, ...] = ()
    best: bool = False
    worst: bool = False
    close: bool = False

    @property
    def text(self) -> str:
        """``88.03``, or ``1,609 ± 85``."""
        if self.row.metric == "auroc":
            return percent(self.row.value)
        return f"{self.row.value:,.0f}" + ("" if self.standard_error is None else f" ± {self.standard_error:,.0f}")

    @property
    def marks(self) -> str:
        """What stands beside it: too close to the best to tell, not settled by its search."""
        return (CLOSE if self.close else "") + ("*" if self.unreliable else "")

    @property
    def interval(self) -> str:
        """``87.2–88.8`` of an AUROC."""
        if self.row.metric != "auroc" or self.row.low is None or self.row.high is None:
            return ""
        return span(self.row.low, self.row.high)


@dataclass(frozen=True)
class AttackTable:
    """Rows of detectors, in the order of their clean AUROC, best first.

    Parameters
    ----------
    columns : (metric, group) of each column: AUROC of every group, then MinRank of every group.
    rows : detector and one cell per column.
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[AttackCell, ...]], ...]
    notes: tuple[str, ...]

    @property
    def groups(self) -> list[str]:
        """Clean and the variations."""
        return [group for metric, group in self.columns if metric == "auroc"]

    def render(self, format: str) -> str:
        """The table as ``csv``, ``markdown`` or ``latex``."""
        if format not in FORMATS:
            raise UnknownNameError("format of this table", format, FORMATS, f"Known: {', '.join(FORMATS)}")
        return {"csv": self.csv, "markdown": self.markdown, "latex": self.latex}[format]()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.sheet()

    def sheet(self) -> Sheet:
        """The same numbers for a terminal or a notebook."""
        heads = [f"{_short(metric)} ↑ {group}" for metric, group in self.columns]
        rows = []
        for detector, cells in self.rows:
            entries = [Entry(cell.text + cell.marks, cell.row.value, strong=cell.best) for cell in cells]
            rows.append((Entry(detector), *entries))
        return Sheet("attack", "Worst outliers found", ("detector", *heads), tuple(rows), 1, self.notes)

    def csv(self) -> str:
        """Fractions and counts in full precision, with interval and standard error, for programs."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        head = [f"{metric} {group}{end}" for metric, group in self.columns for end in _ends(metric)]
        writer.writerow(["detector", *head])
        for detector, cells in self.rows:
            numbers = [number for cell in cells for number in _numbers(cell)]
            writer.writerow([detector, *numbers])
        return stream.getvalue()

    def markdown(self) -> str:
        """A table for a README; * marks what a search did not settle."""
        head = ["detector", *(f"{_short(metric)} {markdown_escaped(group)}" for metric, group in self.columns)]
        lines = [head, ["---", *["---:"] * len(self.columns)]]
        for detector, cells in self.rows:
            lines.append([markdown_escaped(detector), *(_marked(cell, "**{}**", markdown_escaped) for cell in cells)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n" + "  \n".join(self.notes) + "\n"

    def latex(self) -> str:
        """A ``table`` environment in the manner of booktabs, notes below it."""
        half = len(self.columns) // 2
        lines = [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            r"\caption{Worst outliers found.}",
            rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
            r"\toprule",
            rf" & \multicolumn{{{half}}}{{c}}{{AUROC}} & \multicolumn{{{half}}}{{c}}{{MinRank}} \\",
            rf"\cmidrule(lr){{2-{half + 1}}}\cmidrule(lr){{{half + 2}-{2 * half + 1}}}",
            " & ".join(["detector", *(latex_escaped(group) for _, group in self.columns)]) + r" \\",
            r"\midrule",
        ]
        for detector, cells in self.rows:
            values = [_marked(cell, r"\textbf{{{}}}", latex_escaped) for cell in cells]
            lines.append(" & ".join([latex_escaped(detector), *values]) + r" \\")
        notes = (rf"\par\smallskip\footnotesize {latex_escaped(line)}" for line in self.notes)
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]) + "\n"


def attack_table(attack: Attack) -> AttackTable:
    """The table of one attack."""
    rows = attack.result.measurements.filter(protocol=PROTOCOL)
    about = attack.result.scores.context.extra["attack"]
    groups = rows.distinct("group")
    columns = tuple((metric, group) for metric in ("auroc", "min_rank") for group in groups)
    found = {(row.detector, row.metric, row.group): row for row in rows}
    flags = {(each.detector, each.variation): each.flags for each in attack.searches}
    clean = {name: found[name, "auroc", groups[0]].value for name in attack.detectors}
    order = sorted(attack.detectors, key=lambda name: (-clean[name], name))
    ends = {column: [pick(found[name, *column].value for name in order) for pick in (max, min)] for column in columns}

    def doubts(name: str, group: str) -> tuple[str, ...]:
        # the worst of all variations is as settled as the least settled of them
        parts = about["conditional"] if group == ANY else [group]
        return tuple(flag for part in parts for flag in flags.get((name, part), ()))

    def cell(name: str, metric: str, group: str) -> AttackCell:
        row, error = found[name, metric, group], found.get((name, "min_rank_se", group))
        best, worst = (len(order) > 1 and row.value == end for end in ends[metric, group])
        spread = None if error is None or metric == "auroc" else error.value
        leader = max((found[other, metric, group] for other in order), key=lambda each: each.value)
        close = row.value < leader.value and overlap(row, leader)
        return AttackCell(row, spread, doubts(name, group), best, worst, close)

    notes: tuple[str, ...] = (
        f"AUROC in percent, larger = the detector holds; MinRank of {about['outliers']} among {rows[0].n_id:,} ID test "
        f"images, mean over {about['runs']} runs of {about['chains'] // about['runs']:,} chains ± standard error.",
        f"Every search: {about['chains']:,} chains of {about['budget']:,} evaluations. "
        "* : reasons to think that the search stopped too early; the truth may be lower.",
    )
    if len(order) > 1:
        notes = (*notes, f"Bold: best of its column. {CLOSE}: its interval overlaps that of the best.")
    return AttackTable(columns, tuple((name, tuple(cell(name, *c) for c in columns)) for name in order), notes)


def _short(metric: str) -> str:
    return "AUROC" if metric == "auroc" else "MinRank"


def _ends(metric: str) -> tuple[str, ...]:
    return ("", " low", " high") if metric == "auroc" else ("", " se")


def _numbers(cell: AttackCell) -> Iterator[float | None]:
    yield cell.row.value
    yield from (cell.row.low, cell.row.high) if cell.row.metric == "auroc" else (cell.standard_error,)


def _marked(cell: AttackCell, bold: str, escaped: Callable[[str], str]) -> str:
    text = escaped(cell.text)
    return (bold.format(text) if cell.best else text) + escaped(cell.marks)

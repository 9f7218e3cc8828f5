"""The table of an attack in the shape of the paper's: AUROC clean and under each variation, then MinRank."""

from oodscope.document.number import Number, marked
from oodscope.document.table import Column, Entry, Row, Table, columns
from oodscope.document.wording import CLOSE, DOUBTED, unit_of
from oodscope.runs.attack.run import ANY, PROTOCOL, Attack

_HEADS = {"auroc": "AUROC ↑", "min_rank": "MinRank ↑"}


def attack_table(attack: Attack) -> Table:
    """The table of one attack: rows of detectors, in the order of their clean AUROC, best first."""
    rows = attack.result.measurements.filter(protocol=PROTOCOL)
    about = attack.result.scores.context.extra["attack"]
    groups = rows.distinct("group")
    places = [(metric, group) for metric in _HEADS for group in groups]
    rows_by_cell = {(row.detector, row.metric, row.group): row for row in rows}
    flags = {(each.detector, each.variation): each.flags for each in attack.searches}
    clean = {name: rows_by_cell[name, "auroc", groups[0]].value for name in attack.detectors}
    order = sorted(attack.detectors, key=lambda name: (-clean[name], name))

    def doubts(name: str, group: str) -> tuple[str, ...]:
        # the worst of all variations is as settled as the least settled of them
        parts = about["conditional"] if group == ANY else [group]
        return tuple(flag for part in parts for flag in flags.get((name, part), ()))

    def number(name: str, metric: str, group: str) -> Number:
        row, error = rows_by_cell[name, metric, group], rows_by_cell.get((name, "min_rank_se", group))
        lowest = min(rows_by_cell[other, metric, group].value for other in order)
        return Number(
            row.value,
            row.low,
            row.high,
            worst=len(order) > 1 and row.value == lowest,
            unit=unit_of(metric),
            standard_error=None if error is None or metric == "auroc" else error.value,
            doubts=doubts(name, group),
        )

    cells = zip(*(marked([number(name, *place) for name in order], higher=True) for place in places))
    notes: tuple[str, ...] = (
        f"AUROC in percent, larger = the detector holds; MinRank of {about['outliers']} among {rows[0].n_id:,} ID test "
        f"images, mean over {about['runs']} runs of {about['chains'] // about['runs']:,} chains ± standard error.",
        f"Every search: {about['chains']:,} chains of {about['budget']:,} evaluations. "
        f"{DOUBTED} : reasons to think that the search stopped too early; the truth may be lower.",
        "Intervals: 95 %, bootstrap over source images.",
    )
    if len(order) > 1:
        notes = (*notes, f"Bold: best of its column. {CLOSE}: its interval overlaps that of the best.")
    return Table(
        "attack",
        "Worst outliers found",
        columns("detector"),
        tuple(Column(_HEADS[m], group, f"{m} {group}", f"{_HEADS[m]} {group}") for m, group in places),
        tuple(Row((Entry(name),), numbers) for name, numbers in zip(order, cells)),
        notes,
    )

"""The tables of one protocol in one run: detectors by sets, one table for each metric."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from oodscope.document import html as table_html
from oodscope.document.chapter import anchor_of
from oodscope.document.table import Table
from oodscope.document.wording import heading
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.metric import MEAN
from oodscope.protocols.arrange import pivot
from oodscope.protocols.registry import headline_metrics, in_order, known_protocol, protocol_of
from oodscope.results.opening import of_kind
from oodscope.results.record import RunRecord
from oodscope.results.run import Run
from oodscope.runs.evaluation.run import Result

_ORDER = ("auroc", "fpr95_id_positive", "fpr95_ood_positive", "aupr_out", "aupr_in")

LARGE = 240
"""Cells above which a table that is not the first of its protocol holds means alone: 60 tables of 40 detectors and
12 sets would outweigh everything else on a page, and the run's own files hold every number."""

_MEANS = "Means over groups of sets; the sets one by one are in measurements.csv of the run."


@dataclass(frozen=True)
class MetricTable:
    """One metric under one protocol, ready for the page."""

    table: Table
    heading: str
    html: Markup


@dataclass(frozen=True)
class ProtocolSection:
    """What one run measured under one protocol; the first table is the one that ranks detectors."""

    protocol: str
    record: RunRecord
    anchor: str
    tables: list[MetricTable]

    @property
    def summary(self) -> str:
        """What the protocol asks, in a line; empty where it is not installed here."""
        return protocol_of(self.protocol).summary if known_protocol(self.protocol) else ""


def protocol_sections(runs: Sequence[Run]) -> list[ProtocolSection]:
    """A section for each protocol of each evaluation, those of one protocol together."""
    found = [
        ProtocolSection(name, result.record, f"{anchor_of(name)}-{number}", tables)
        for number, result in enumerate(of_kind(runs, Result), 1)
        for name in result.record.protocols
        if (tables := list(_tables(result, name)))
    ]
    order = in_order(each.protocol for each in found)
    return sorted(found, key=lambda each: order.index(each.protocol))


def _tables(result: Result, protocol: str) -> Iterator[MetricTable]:
    """Every metric of a protocol, its headline first, then its views, such as ``full_spectrum:balanced``."""
    names = result.measurements.distinct("protocol")
    views = [name for name in names if name == protocol or name.startswith(f"{protocol}:")]
    first = True
    for view in sorted(views, key=lambda name: name != protocol):
        own = result.measurements.filter(protocol=view)
        measured = {row.metric for row in own if row.detector}
        order = dict.fromkeys([*headline_metrics(protocol), *_ORDER, *METRICS])
        for metric in order:
            if metric in measured:
                table = pivot(own, view, metric)
                shown = table if first else _lighter(table)
                words = heading(metric) if view == protocol else f"{view}: {heading(metric)}"
                yield MetricTable(shown, words, Markup(table_html.bare(shown)))
                first = False


def _lighter(table: Table) -> Table:
    """The means of a table that is large and has any."""
    kept = [place for place, column in enumerate(table.columns) if column.name == MEAN]
    if not kept or len(table.rows) * len(table.columns) <= LARGE:
        return table
    return replace(table.only(kept), notes=(*table.notes, _MEANS))

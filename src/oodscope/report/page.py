"""The report: one HTML file that needs nothing but a browser."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from oodscope.base.files import write_text
from oodscope.base.hashing import canonical_json
from oodscope.report.headline import headlines
from oodscope.report.panels import legend, panels
from oodscope.report.templating import page_environment
from oodscope.results import Grid, Result
from oodscope.results import html as table_html
from oodscope.results.arrange import WITHOUT_DETECTOR
from oodscope.results.wording import LABELS, heading, headline_metrics

_ORDER = ("auroc", "fpr95_id_positive", "fpr95_ood_positive", "aupr_out", "aupr_in")


@dataclass(frozen=True)
class MetricTable:
    """One metric under one protocol, ready for the page."""

    grid: Grid
    heading: str
    table: Markup


def write_report(
    result: Result, path: Path | str, *, title: str | None = None, links: Mapping[str, str] | None = None
) -> Path:
    """Write the report of one run to ``path``.

    The file holds everything it shows (figures as inline SVG, style, a small script that sorts tables) and
    asks no network for anything. Every number comes from ``result.measurements``, every figure from
    ``result.scores``.

    Parameters
    ----------
    title : the heading; by default the benchmark and the model.
    links : other pages by name, relative to this one.
    """
    path = Path(path)
    write_text(path, render(result, title or f"{result.record.benchmark}: {result.record.model}", links or {}))
    return path


def render(result: Result, title: str, links: Mapping[str, str] = MappingProxyType({})) -> str:
    """The page as text."""
    environment = page_environment()
    environment.filters |= {"json": canonical_json, "headlines": headlines, "settings": _settings}
    script = environment.get_template("sort.js").render()
    # a protocol may look at its scores in several ways, each under a name of its own
    names = dict.fromkeys([*result.record.protocols, *result.measurements.distinct("protocol")])
    tables = {name: list(_tables(result, name)) for name in names}
    protocols = {name: found for name, found in tables.items() if found}
    detectors = _detectors(result, [row.detector for found in protocols.values() for row in found[0].grid.rows])
    return environment.get_template("report.html").render(
        title=title,
        links=links,
        record=result.record,
        protocols=protocols,
        detectors=detectors,
        legend=legend(result.scores),
        panels=[panels(result.scores, detector["id"]) for detector in detectors],
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _tables(result: Result, protocol: str) -> Iterator[MetricTable]:
    measured = result.measurements.filter(protocol=protocol).distinct("metric")
    order = dict.fromkeys([*headline_metrics(protocol), *_ORDER, *LABELS])
    ranked = [metric for metric in order if metric in measured and metric not in WITHOUT_DETECTOR]
    for metric in ranked:
        grid = result.table(protocol, metric).grid
        yield MetricTable(grid, heading(metric), Markup(table_html.table(grid)))


def _detectors(result: Result, leading: Iterable[str]) -> list[dict[str, Any]]:
    """Each detector as it was run, in the order in which the first table ranks them."""
    described = result.scores.metadata["detectors"]
    order = dict.fromkeys(name for name in (*leading, *result.scores.detectors) if name in described)
    return [{"id": name, **described[name]} for name in order]


def _settings(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={canonical_json(value)}" for name, value in params.items()) or "–"

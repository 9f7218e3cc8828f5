"""RunPages: the runs of a store and what runs now, as pages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from http import HTTPStatus
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from oodscope.document import html as table_html
from oodscope.document.wording import heading
from oodscope.leaderboard.site.addresses import safe_name
from oodscope.leaderboard.site.templating import site_environment
from oodscope.leaderboard.site.words import protocol_title
from oodscope.protocols.arrange import pivot
from oodscope.protocols.registry import headline_metrics
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord
from oodscope.serve.answers import FRAMES, PAGE_POLICY

_POLICY = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"<>\r\n]*)">')


class RunPages:
    """Pages in the look of the board's. What they show is in the store; the full report lies in a run's folder."""

    def __init__(self, store: str) -> None:
        self._environment = _environment()
        self._store = store
        self._listed: tuple[Mapping[str, RunRecord], bytes] | None = None

    def script(self) -> bytes:
        """What tells a reader that something is new."""
        return self._environment.get_template("live.js").render().encode()

    def listing(self, records: Mapping[str, RunRecord]) -> bytes:
        """All runs; of the same mapping the page is made once."""
        if self._listed is not None and self._listed[0] is records:
            return self._listed[1]
        runs = [
            {
                "record": record,
                "page": f"runs/{safe_name(run)}/index.html",
                "protocols": [protocol_title(name) for name in record.protocols],
            }
            for run, record in records.items()
        ]
        self._listed = records, self._page("runs.html", "../", here="runs", runs=runs)
        return self._listed[1]

    def run(self, record: RunRecord, measurements: Measurements, has_report: bool) -> bytes:
        tables = list(_tables(record, measurements))
        return self._page("run.html", "../../", here="runs", record=record, tables=tables, has_report=has_report)

    def running(self, running: Sequence[Mapping[str, Any]]) -> bytes:
        return self._page("running.html", "../", here="running", running=running)

    def _page(self, template: str, root: str, **content: Any) -> bytes:
        return self._environment.get_template(template).render(root=root, store=self._store, **content).encode()


def error_page(status: int, line: str, depth: int) -> str:
    """A page that says in one line why there is no other; ``depth`` is how far its address lies below the root."""
    words = {"title": HTTPStatus(status).phrase, "status": status, "line": line}
    return _environment().get_template("error.html").render(root="../" * depth, here="", **words)


def report_policy(report: bytes) -> str:
    """What a report may run: its own inline scripts, which the policy in its head names by hash."""
    found = _POLICY.search(report[:20_000])
    own = unescape(found.group(1).decode("ascii", "replace")).rstrip("; ") if found else ""
    return f"{own}; {FRAMES}" if own.isascii() and own.startswith("default-src 'none'") else PAGE_POLICY


def _tables(record: RunRecord, measurements: Measurements) -> Iterator[dict[str, Any]]:
    for protocol in dict.fromkeys([*record.protocols, *measurements.distinct("protocol")]):
        measured = measurements.filter(protocol=protocol).distinct("metric")
        for metric in headline_metrics(protocol):
            if metric in measured:
                table = pivot(measurements, protocol, metric)
                title = f"{protocol_title(protocol)}: {heading(metric)}"
                yield {"title": title, "html": Markup(table_html.bare(table))}


def _environment() -> Environment:
    environment = site_environment(live=True).overlay()
    known = environment.loader
    environment.loader = ChoiceLoader([PackageLoader("oodscope.serve"), *([known] if known else [])])
    return environment

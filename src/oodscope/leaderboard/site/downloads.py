"""Downloads: every table of the site as CSV and JSON, every entry's record."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.site.sheets import Ranks

FIELDS = (
    *("entry", "method", "group", "tier", "ranked", "track", "tuning", "benchmark", "protocol", "model"),
    *("architecture", "metric", "set_group", "set", "value", "low", "high", "spread", "rank_low", "rank_high"),
    *("n_id", "n_ood", "exposure", "flags", "superseded_by"),
)
"""The columns of a download. ``spread``: standard deviation that was printed beside a reported value.
``rank_low``, ``rank_high``: the entry's places by the protocol's leading column."""


def tidy_rows(standings: Iterable[Standing], ranks: Ranks, protocol: str | None = None) -> Iterator[dict[str, Any]]:
    """One row per entry, metric and set, superseded entries too; of one protocol, or of all."""
    for standing in standings:
        entry = standing.entry
        shared = {
            "entry": entry.id,
            "method": entry.method,
            "group": entry.group,
            "tier": standing.tier,
            "ranked": standing.ranked,
            "track": standing.track,
            "tuning": standing.tuning,
            "benchmark": str(entry.benchmark),
            "model": entry.model.name,
            "architecture": entry.model.architecture,
            "flags": "; ".join(standing.flags),
            "superseded_by": standing.superseded_by,
        }
        printed = _spreads(standing)
        for row in standing.measurements:
            if protocol is None or row.protocol == protocol:
                rank = ranks.get((entry.id, row.protocol), (None, None))
                yield shared | {
                    "protocol": row.protocol,
                    "metric": row.metric,
                    "set_group": row.group,
                    "set": row.set,
                    "value": row.value,
                    "low": row.low,
                    "high": row.high,
                    "spread": printed.get((row.protocol, row.metric, row.group, row.set)),
                    "rank_low": rank[0],
                    "rank_high": rank[1],
                    "n_id": row.n_id,
                    "n_ood": row.n_ood,
                    "exposure": row.exposure,
                }


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """The rows as CSV. A text that a spreadsheet would run as a formula gets a quote in front."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows([_harmless(row[name]) for name in FIELDS] for row in rows)
    return stream.getvalue()


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """The rows as a JSON list, one row per line."""
    lines = (json.dumps({name: row[name] for name in FIELDS}, ensure_ascii=False, allow_nan=False) for row in rows)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def differences_json(board: Board) -> str:
    """Every printed number that was measured again, and every entry that gave way, as JSON."""
    differences = [{"entry": each.entry.id} | vars(found) for each in board.standings for found in each.differences]
    errata = [vars(each) for each in board.errata]
    content = {"differences": differences, "errata": errata}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _spreads(standing: Standing) -> dict[tuple[str, str, str, str], float]:
    if standing.tier != "reported":
        return {}
    return {
        (each.protocol, each.metric, each.group, each.set): float(each.spread) / (100 if each.unit == "percent" else 1)
        for each in standing.entry.reported
        if each.spread is not None
    }


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value

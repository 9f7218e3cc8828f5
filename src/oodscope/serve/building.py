"""Building: every page of the board, from the folder of entries."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from oodscope.leaderboard.published.table import published_standings
from oodscope.leaderboard.records.board import Board
from oodscope.leaderboard.records.standing import Standing
from oodscope.leaderboard.site.addresses import entry_file, standing_page, table_data, table_page
from oodscope.leaderboard.site.render import sound_pages

BUILD_SECONDS = 1800.0
"""Longer than verifying a few thousand entries takes; who passes it hangs."""


State = tuple[tuple[str, int, int], ...]
"""Path, size and time of every file of a board."""


@dataclass(frozen=True)
class Built:
    """Every page and every answer for programs, by path, and the newcomers that are not among them, with the reason."""

    contents: dict[str, bytes]
    refused: dict[str, str]


def build(entries: Path, newcomers: Sequence[Path] = ()) -> Built:
    """The pages of the site and the answers for programs. It runs in a process of its own.

    With newcomers they are those of the board that they would be on; one that they cannot be made with is left out.

    A folder that is not there holds no entries: a server may have runs to show, and nothing else.
    """
    from oodscope.leaderboard.verify.remembered import RememberedExaminer
    from oodscope.leaderboard.verify.verifying import Verification, verify_each

    known = entries.is_dir()
    found = verify_each(entries, RememberedExaminer(), newcomers) if known else Verification(Board(()), {})
    board = replace(found.board, standings=(*found.board.standings, *published_standings()))
    site = sound_pages(board, scores=True, live=True)
    pages = {path: text.encode() for path, text in site.pages.items()}
    refused = {**found.refused, **site.refused}
    # whoever sent one is told; what never was on the board is not of it
    turned_away = {each.name: refused.pop(each.name) for each in newcomers if each.name in refused}
    answers = [*_answers(site.board), ("api/refused", refused)]
    pages |= {path: json.dumps(content, allow_nan=False).encode() for path, content in answers}
    return Built(pages, turned_away)


def state(entries: Path) -> State:
    """What tells one state of the folder from another without reading it: names, sizes and times of its files.

    Hidden files and folders do not count; a folder takes its place whole, so a state never shows half of one.
    """
    found = []
    for place in sorted(entries.iterdir()) if entries.is_dir() else []:
        if place.name.startswith("."):
            continue
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            known = path.stat()
            found.append((path.relative_to(entries).as_posix(), known.st_size, known.st_mtime_ns))
    return tuple(found)


def _answers(board: Board) -> Iterator[tuple[str, Any]]:
    yield "api/entries", [_line(each) for each in board.standings]
    for each in board.standings:
        yield f"api/entries/{each.entry.id}", _line(each) | _details(each)
    yield (
        "api/benchmarks",
        [
            {
                "benchmark": benchmark,
                "protocols": [
                    {
                        "protocol": protocol,
                        "page": f"/{table_page(benchmark, protocol)}",
                        "rows": f"/{table_data(benchmark, protocol, 'json')}",
                    }
                    for protocol in board.protocols(benchmark)
                ],
            }
            for benchmark in board.benchmarks()
        ],
    )


def _line(standing: Standing) -> dict[str, Any]:
    entry = standing.entry
    return {
        "id": entry.id,
        "method": entry.method,
        "benchmark": str(entry.benchmark),
        "model": entry.model.name,
        "track": standing.track,
        "tuning": standing.tuning,
        "tier": standing.tier,
        "ranked": standing.ranked,
        "superseded_by": standing.superseded_by,
        "received": standing.received,
        "submitter": standing.submitter,
        "covered": standing.covered,
        "page": f"/{standing_page(standing)}",
        "record": f"/{entry_file(entry.id)}",
    }


def _details(standing: Standing) -> dict[str, Any]:
    return {
        "entry": standing.entry.model_dump(mode="json"),
        "flags": standing.flags,
        "reason": standing.reason,
        "differences": [asdict(each) for each in standing.differences],
        "measurements": [vars(row) for row in standing.measurements],
    }

"""How long do readers and submitters of a live leaderboard wait, and is anything refused, lost, torn or taken twice?

    python -m benchmarks.serve_load [--readers 200] [--seconds 60] [--entries 40] [--postgres URL] [--write]

A server is started as ``oodscope serve --submissions`` starts it, over a board of small entries and a store. Readers on
loopback fetch random pages over connections that stay open, without a pause between two requests. Fifteen submitters
hand in entries one after the other, four do so over slow lines, and a hostile one with a token of its own opens uploads
that never end and sends garbage, taken and forged names, false lengths and tokens. An evaluation reports its progress.
Every answer is checked: status, the SHA-256 in ``Content-Digest`` against the bytes, the closing tag of a page, the
syntax of JSON. At the end every honest submission must have been accepted, be on the board, and be there once.
``--write`` writes docs/results/serve-load.md.
"""

import argparse
import datetime
import os
import tempfile
import time
from pathlib import Path

from tests.serve.crowd import Crowd, Outcome
from tests.serve.live import Live
from tests.serve.load import Seen
from tests.serve.world import make_entry

from oodscope.execution.progress import SILENT
from oodscope.results.store.reporting import reporting_to
from oodscope.results.store.store import ResultStore

PAGE = Path(__file__).parents[1] / "docs" / "results" / "serve-load.md"
QUICK, SLOW, HOSTILE = 15, 4, 1
PATHS = [
    "/",
    "/methods/index.html",
    "/models/index.html",
    "/downloads.html",
    "/methods/method_1.html",
    "/benchmarks/small@1/standard.html",
    "/data/everything.json",
    "/api/entries",
    "/site.css",
    "/running/",
    "/runs/",
    *["/api/state"] * 3,
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--entries", type=int, default=40, help="on the board before it starts")
    parser.add_argument("--postgres", default="", help="URL of an empty database, instead of an SQLite file")
    parser.add_argument("--write", action="store_true", help="write the results page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(options.entries):
            make_entry(folder / "board", f"first-{number}", number)
        before = os.getloadavg()[0]
        started = time.monotonic()
        live = Live(folder, "--submissions", store=options.postgres)
        print(f"started in {time.monotonic() - started:.1f} s with {options.entries} entries")
        try:
            crowd = Crowd(live, folder / "made", QUICK, SLOW, HOSTILE, options.seconds)
            store = ResultStore(live.store, wait_seconds=1)
            with (
                reporting_to(store, "a long evaluation", SILENT) as progress,
                progress.stage("extract", 100) as advance,
            ):
                advance(30)
                seen = crowd.run(PATHS, options.readers)
        finally:
            live.stop()
    text = page(seen, crowd.outcome, options, (before, os.getloadavg()[0]))
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


def verdict(seen: Seen, outcome: Outcome) -> str:
    """What the counts say."""
    wrong = {
        "refused": len(outcome.refused),
        "lost": len(outcome.lost),
        "seen twice": len(outcome.twice),
        "torn or wrong among the answers to readers": len(seen.wrong),
        "of the hostile one accepted": outcome.hostile[201],
    }
    found = [f"{count} {what}" for what, count in wrong.items() if count]
    if found:
        return f"Of {outcome.count + len(outcome.refused)} honest submissions: {', '.join(found)}."
    return (
        f"All {outcome.count} honest submissions were accepted, none was lost and none is there twice; no answer to a "
        f"reader was torn or wrong; of the hostile submitter's {outcome.hostile.total()} requests none was accepted."
    )


def quantile(values: list[float], share: float) -> float:
    """The value that a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def page(seen: Seen, outcome: Outcome, options: argparse.Namespace, load: tuple[float, float]) -> str:
    """The results page."""
    rate = len(seen.seconds) / options.seconds
    readers = " | ".join(f"{1000 * quantile(seen.seconds, share):.0f}" for share in (0.5, 0.95, 0.99, 1.0))
    waits = " | ".join(f"{quantile(outcome.seconds, share):.1f}" for share in (0.5, 0.99, 1.0))
    statuses = ", ".join(f"{count} × {status or 'closed'}" for status, count in sorted(outcome.hostile.items()))
    details = [f"- {each}" for each in [*outcome.refused, *outcome.lost, *outcome.twice, *seen.wrong][:20]]
    others = " (other work ran beside it)" if load[0] > 1 else ""
    busy = f"; load average {load[0]:.1f} before it began{others}, {load[1]:.1f} at the end"
    return "\n".join(
        [
            "# A live leaderboard under load",
            "",
            "**Question.** While honest, slow and hostile submitters hand in entries, is an honest submission refused, "
            "lost or there twice, do readers ever get half a page, and how long does each wait?",
            "",
            f"**Command.** `OMP_NUM_THREADS=1 python -m benchmarks.serve_load --seconds {options.seconds:.0f} --write`",
            "",
            f"**Machine.** {os.cpu_count()} cores, shared by server, builder, checker, readers and submitters{busy}. "
            f"**Date.** {datetime.date.today().isoformat()}",
            "",
            f"{options.entries} entries of 90 images and the published tables; {options.readers} readers over "
            "connections that stay open, no pause between two requests, every answer checked (status, SHA-256 in "
            f"`Content-Digest`, closing tag or JSON syntax); {QUICK} quick submitters, {SLOW} slow (ten seconds an "
            f"upload), {HOSTILE} hostile; "
            f"{options.seconds:.0f} s, then what was begun is waited for.",
            "",
            f"**Answer.** {verdict(seen, outcome)}",
            "",
            "| readers | answers | per second | MiB | median ms | 95 % ms | 99 % ms | worst ms | states seen |",
            "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
            f"| {options.readers} | {len(seen.seconds)} | {rate:.0f} | {seen.bytes / 2**20:.0f} | {readers} | "
            f"{len(seen.states)} |",
            "",
            "| honest submissions | refused | lost | twice | quick: median s | 99 % s | worst s |",
            "|--:|--:|--:|--:|--:|--:|--:|",
            f"| {outcome.count} | {len(outcome.refused)} | {len(outcome.lost)} | {len(outcome.twice)} | {waits} |",
            "",
            f"Answers to the hostile submitter: {statuses}. A submission is answered when the pages with it are there; "
            "those that come while pages are built are built together.",
            *(["", *details] if details else []),
            "",
        ]
    )


if __name__ == "__main__":
    main()

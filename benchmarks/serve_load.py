"""How long do readers of a live leaderboard wait while entries are handed in, and is anything lost or torn?

    python -m benchmarks.serve_load [--readers 200] [--seconds 60] [--entries 40] [--postgres URL]

A server is started as ``oodscope serve --submissions`` starts it, over a board of small entries and a store. Readers on
loopback fetch random pages over connections that stay open, without a pause between two requests. One writer hands in
entries, one after the other, and an evaluation tells the store about its progress. Every answer is checked: status, the
SHA-256 in ``Content-Digest`` against the bytes, the closing tag of a page, the syntax of JSON. At the end all accepted
entries must be on the board.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

from tests.serve.live import Live
from tests.serve.load import load
from tests.serve.world import make_entry, upload

from oodscope.execution.progress import SILENT
from oodscope.results.store.reporting import reporting_to
from oodscope.results.store.store import ResultStore

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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(options.entries):
            make_entry(folder / "board", f"first-{number}", number)
        started = time.monotonic()
        live = Live(folder, "--submissions", store=options.postgres)
        print(f"started in {time.monotonic() - started:.1f} s with {options.entries} entries")
        try:
            measure(live, folder, options)
        finally:
            live.stop()


def measure(live: Live, folder: Path, options: argparse.Namespace) -> None:
    """Run the load and print what was seen."""

    def submit(number: int) -> tuple[int, dict, bytes]:
        return live.submit(upload(folder / f"up-{number}", f"loaded-{number}", 1000 + number))

    store = ResultStore(live.store, wait_seconds=1)
    with reporting_to(store, "a long evaluation", SILENT) as progress, progress.stage("extract", 100) as advance:
        advance(30)
        seen, accepted, took = asyncio.run(
            load(live.port, PATHS, readers=options.readers, seconds=options.seconds, submit=submit)
        )
    shown = {each["id"] for each in json.loads(live.ask("GET", "/api/entries")[2])}
    lost = sorted(set(accepted) - shown)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, readers and server together")
    print("| readers | answers | per second | MiB | median ms | 95 % ms | 99 % ms | worst ms |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    rate = len(seen.seconds) / options.seconds
    quantiles = " | ".join(f"{seen.quantile(share):.0f}" for share in (0.5, 0.95, 0.99, 1.0))
    print(f"| {options.readers} | {len(seen.seconds)} | {rate:.0f} | {seen.bytes / 2**20:.0f} | {quantiles} |")
    print()
    print("| submissions | accepted | lost | seconds each, median | worst | states seen | torn or wrong answers |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    middle = sorted(took)[len(took) // 2]
    print(
        f"| {len(took)} | {len(accepted)} | {len(lost)} | {middle:.1f} | {max(took):.1f} | {len(seen.states)} | "
        f"{len(seen.wrong)} |"
    )
    for fault in seen.wrong[:10]:
        print(f"wrong: {fault}")


if __name__ == "__main__":
    main()

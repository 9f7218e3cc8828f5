"""Does a leaderboard lose an accepted entry, or serve a mixture of two states, whatever happens to it and when?

    python -m benchmarks.serve_machine FOLDER [--steps 1000] [--minutes 10]

Submissions, repeated, damaged and revoked ones, new and revoked tokens, entries that the keeper removes, kills in and
between submissions, and restarts come in an order that the seed chooses, to a server as ``oodscope serve`` starts it.
After every step everything is checked. FOLDER keeps the board, so a run that was stopped goes on (SIGTERM ends it after
the step that it is at; a step that is cut in two leaves an entry of which nobody knows the answer). The counts are
written to docs/results/data/machine.json, which the page of ``benchmarks.fuzz`` shows.
"""

import argparse
import json
import os
import pickle
import signal
import time
from pathlib import Path

from tests.serve.live import Live
from tests.serve.machine import Machine

COUNTS = Path(__file__).parents[1] / "docs" / "results" / "data" / "machine.json"
SEED = 26


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    folder, until = options.folder, time.monotonic() + 60 * options.minutes
    kept = folder / "machine.pickle"  # written and read by this script alone
    before = pickle.loads(kept.read_bytes()) if kept.exists() else {"seconds": 0.0, "state": {}}
    (folder / "board").mkdir(parents=True, exist_ok=True)
    live = Live(folder, "--submissions")
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    try:
        machine = Machine.resumed(live, folder / "made", SEED, before["state"])
        while machine.taken.total() < options.steps and time.monotonic() < until and not stopped:
            started = time.monotonic()
            machine.step()
            before["seconds"] += time.monotonic() - started
            before["state"] = machine.state()
            kept.write_bytes(pickle.dumps(before))
            if machine.taken.total() % 20 == 0:
                print(machine.taken.total(), f"{before['seconds']:.0f} s", dict(machine.taken), flush=True)
        machine.check_trail()
    finally:
        live.stop()
    counts = {
        "steps": dict(machine.taken),
        "accepted": len(machine.accepted) + len(machine.removed),
        "seconds": before["seconds"],
        "load": os.getloadavg()[0],
    }
    COUNTS.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
    print(counts)


if __name__ == "__main__":
    main()

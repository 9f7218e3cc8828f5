"""How long does the demo take, cold and warm, and do ten kills change its numbers?

    python benchmarks/demo_endurance.py

Runs the demo with an empty cache, runs it again, then kills it (SIGKILL) at ten random moments, lets it end, and
compares scores, measurements and the number of blocks that went through the network.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import oodscope as oods

KILLS = 10
COLUMNS = ["protocol", "detector", "set", "group", "metric", "value", "low", "high"]


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "oodscope", "demo", "--output", str(folder / "out")]
    environment = {**os.environ, "OODSCOPE_CACHE": str(folder / "cache")}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(folder: Path) -> tuple[oods.Result, float]:
    started = time.perf_counter()
    process = start(folder)
    _, errors = process.communicate()
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(errors)
    newest = max((folder / "out").glob("*/run.json"), key=lambda path: path.stat().st_mtime)
    return oods.Result.load(newest.parent), seconds


def blocks(folder: Path) -> dict[Path, int]:
    cache = folder / "cache"
    return {path.relative_to(cache): path.read_bytes().count(b'"runs"') for path in cache.rglob("*.journal")}


def killed_after(folder: Path, seconds: float) -> str:
    """Start the demo, kill it after so long, and say which stage it had finished last."""
    process = start(folder)
    try:
        process.communicate(timeout=seconds)
        return "had ended"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
    stages = [line.split("  ")[0] for line in errors.splitlines()]
    return f"after stage {stages[-1]!r}" if stages else "before the end of its first stage"


def main() -> None:
    room = Path(tempfile.mkdtemp())
    expected, cold = finish(room / "whole")
    _, warm = finish(room / "whole")
    print(f"cold run {cold:.1f} s, second run {warm:.1f} s")
    chance = random.Random(2026)
    spent = 0.0
    for number in range(KILLS):
        # between the start and what is left to do, so that ten kills meet every stage and none comes too late
        moment = chance.uniform(1.0, 0.9 * max(warm, cold - spent))
        print(f"kill {number + 1}: at {moment:.1f} s, {killed_after(room / 'killed', moment)}", flush=True)
        spent += moment
    result, last = finish(room / "killed")
    same_scores = result.scores.frame.equals(expected.scores.frame)
    same_numbers = result.to_dataframe()[COLUMNS].equals(expected.to_dataframe()[COLUMNS])
    same_blocks = blocks(room / "killed") == blocks(room / "whole")
    print(f"run after the kills {last:.1f} s")
    print(
        f"scores bit-equal: {same_scores}; measurements equal: {same_numbers}; no block extracted twice: {same_blocks}"
    )
    print(result.table())


if __name__ == "__main__":
    main()

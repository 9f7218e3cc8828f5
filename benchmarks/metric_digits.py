"""Do metrics on the CPU have the digits of version 0.1, and where a reduction is added per shard, how far are they?

    git worktree add --detach BEFORE 3cadf47
    python benchmarks/metric_digits.py BEFORE WEIGHTS [--images-per-class 1000] [--detectors LIST]

Both checkouts evaluate one network (``small_cnn``, such as the demo leaves in its cache) on glyphs with one thread and
empty caches; more than 16,384 training images, so that reductions have more than one shard. Scores, metrics and ends of
intervals are compared to the bit; what differs is listed with its size as a share of the spread (of scores: their
standard deviation). docs/results/metric-digits.md holds what came out.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

HERE = Path(__file__).parents[1]
DETECTORS = "msp,ebo,gen,knn,mds,rmds,vim,residual,neco,dice,fdbd,nci,react,ash,she,nnguide"
KEY = ("detector", "protocol", "group", "set", "metric")
BAR = 1e-6
"""Of the spread: the most that a reduction per shard may move a score."""

INTERVALS = 1e-12


def evaluate(checkout: Path, asked: argparse.Namespace, home: Path) -> Path:
    """The run folder of one checkout."""
    home.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "OODSCOPE_CACHE": str(home / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = (
        f"-m oodscope evaluate --model small_cnn --weights {asked.weights.resolve()} --device cpu --benchmark glyphs "
        f"--images-per-class {asked.images_per_class} --detectors {asked.detectors} --output {home / 'run'}"
    )
    subprocess.run([sys.executable, *command.split()], env=environment, check=True, stdout=subprocess.DEVNULL)
    return next(home.rglob("scores.parquet")).parent


def scores_apart(before: Path, now: Path) -> dict[str, float]:
    """For each detector whose scores differ, the largest difference as a share of their spread."""
    a, b = (pq.read_table(folder / "scores.parquet") for folder in (before, now))
    assert a["sample_id"].equals(b["sample_id"]), "the same images in the same order"
    apart = {}
    for name in a.schema.names:
        if a.schema.field(name).type in ("float", "double") and name in b.schema.names:
            one, other = a[name].to_numpy(), b[name].to_numpy()
            difference = float(np.nanmax(np.abs(one - other)))
            apart[name] = difference / float(np.nanstd(one)) if difference else 0.0
    return apart


def rows_of(folder: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(row[key] for key in KEY): row for row in pq.read_table(folder / "measurements.parquet").to_pylist()}


def compare(before: Path, now: Path) -> dict[str, Any]:
    """What differs, by detector."""
    a, b = rows_of(before), rows_of(now)
    shared = [key for key in a if key in b]
    values = [(key, abs(a[key]["value"] - b[key]["value"])) for key in shared]
    ends: dict[str, list[float]] = {}
    replaced: dict[tuple[str, str, str], tuple[tuple[str, ...], str]] = {}
    for key in shared:
        one, other = a[key], b[key]
        if one["low"] is None or other["low"] is None:
            continue
        if one["interval"] == other["interval"]:
            far = max(abs(one["low"] - other["low"]), abs(one["high"] - other["high"]))
            ends.setdefault(one["interval"], []).append(far)
        else:
            kind = (key[4], one["interval"], other["interval"])
            shown = f"[{one['low']:.5f}, {one['high']:.5f}] / [{other['low']:.5f}, {other['high']:.5f}]"
            replaced.setdefault(kind, (key, shown))
    return {
        "scores": scores_apart(before, now),
        "rows": len(shared),
        "only_one": len(set(a) ^ set(b)),
        "values": values,
        "ends": ends,
        "replaced": replaced,
    }


def page(found: dict[str, Any], asked: argparse.Namespace) -> str:
    """The results page, every sentence from the numbers."""
    moved = {name: share for name, share in found["scores"].items() if share}
    changed = [(key, far) for key, far in found["values"] if far]
    worst = max(moved.values(), default=0.0)
    verdict = "within" if worst <= BAR else "ABOVE"
    lines = [
        "# Metrics on the CPU against version 0.1",
        "",
        "**Question.** Are metric values on the CPU those of 0.1 to the bit, except where a reduction is now added per "
        f"shard? How far are those (at most {BAR:g} of the spread), and bootstrap intervals (at most {INTERVALS:g})?",
        "",
        f"**Command.** `python benchmarks/metric_digits.py BEFORE WEIGHTS --images-per-class {asked.images_per_class}`",
        "",
        f"**Machine.** {platform.machine()}, one thread, Python {platform.python_version()}. "
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"{len(found['scores']) - len(moved)} of {len(found['scores'])} detectors have the scores of 0.1 to the bit; "
        f"{len(found['values']) - len(changed)} of {len(found['values'])} metric values are equal to the bit "
        f"({found['only_one']} rows stand in only one of the two).",
        "",
    ]
    if moved:
        lines += ["| detector | largest difference of a score, share of the spread | metric values that differ | by |"]
        lines += ["|---|---|---|---|"]
        for name, share in moved.items():
            own = [far for key, far in changed if key[0] == name]
            lines.append(f"| {name} | {share:.1e} | {len(own)} | {max(own, default=0.0):.1e} |")
        lines += ["", f"The largest difference is {worst:.1e} of the spread, {verdict} what is allowed.", ""]
    lines += ["| interval | how many | largest difference of an end |", "|---|---|---|"]
    lines += [f"| {kind} | {len(far):,} | {max(far):.1e} |" for kind, far in found["ends"].items()]
    if found["replaced"]:
        lines += ["", "Where another kind of interval stands now, each once, before / now:", ""]
        lines += ["| metric | before | now | example | interval |", "|---|---|---|---|---|"]
        for (metric, one, other), (key, shown) in found["replaced"].items():
            lines.append(f"| {metric} | {one} | {other} | {key[0]}, {key[3]} | {shown} |")
    if asked.runs:
        lines += ["", "Compared: the demo's runs, whose training set is one shard. Not yet run: the command above."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout, or with --runs the run folder that it made")
    parser.add_argument("weights", type=Path, help="of the network, or with --runs the run folder of this version")
    parser.add_argument(
        "--runs", action="store_true", help="compare two run folders that are there, such as the demo's"
    )
    parser.add_argument("--images-per-class", type=int, default=1000)
    parser.add_argument("--detectors", default=DETECTORS)
    parser.add_argument("--results", type=Path, default=HERE / "docs" / "results")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        places = {"before": asked.before.resolve(), "now": HERE}
        runs = [asked.before, asked.weights]
        if not asked.runs:
            runs = [evaluate(place, asked, Path(home) / name) for name, place in places.items()]
        written = page(compare(*runs), asked)
    (asked.results / "metric-digits.md").write_text(written, encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()

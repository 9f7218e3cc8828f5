"""What the intervals of a whole benchmark cost: 20 detectors on the sets of OpenOOD's CIFAR-10 benchmark.

python benchmarks/bootstrap_speed.py                    # CUDA where there is one, else the processor
python benchmarks/bootstrap_speed.py --device cpu

Each device has one entry in docs/results/data/bootstrap-speed.json, from which docs/results/bootstrap-speed.md is
written; an entry replaces that of the same device.
"""

import argparse
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray

from oodscope.metrics.catalog import RANKING
from oodscope.metrics.interval import REPLICATES, Intervals
from oodscope.metrics.resampling.bootstrap import Bootstrap
from oodscope.metrics.resampling.resampling import bootstrap_each

ID = 9_000
SETS = {
    "near": {"cifar100": 9_000, "tin": 7_793},
    "far": {"mnist": 70_000, "svhn": 26_032, "textures": 5_640, "places365": 35_195},
}
SIZES = {name: n for group in SETS.values() for name, n in group.items()}
DETECTORS = 20
COMPARED = 2
BARS = {"cpu": 30.0, "cuda": 3.0}
RESULTS = Path("docs/results")
METRICS = [metric.name for metric in RANKING if metric.name != "auroc"]
Sample = tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]


def made(detectors: int) -> dict[str, Sample]:
    """Detectors that agree in part; every fourth saturates, so that a third of its scores are tied."""
    rng = np.random.default_rng(0)
    common = {name: rng.normal(0.0 if name == "id" else 1.0, 1.0, size=n) for name, n in {"id": ID, **SIZES}.items()}
    samples: dict[str, Sample] = {}
    for number in range(detectors):
        own = {name: values + 0.5 * rng.normal(size=values.size) for name, values in common.items()}
        if number % 4 == 3:
            own = {name: np.maximum(values, 0.3).astype(np.float32).astype(float) for name, values in own.items()}
        samples[f"detector {number}"] = (own["id"], {name: own[name] for name in SIZES})
    return samples


def all_intervals(draws: dict[str, Bootstrap]) -> int:
    """The intervals of every metric on every set and for the mean of each group."""
    columns = [[name] for name in SIZES] + [list(group) for group in SETS.values()]
    return len([each.mean_interval(metric, sets) for each in draws.values() for metric in METRICS for sets in columns])


def timed(samples: dict[str, Sample], intervals: Intervals, device: str) -> dict[str, Any]:
    """Wall and processor seconds from scores to intervals."""
    wall, processor = perf_counter(), process_time()
    draws = bootstrap_each(samples, seed=0, metrics=METRICS, replicates=REPLICATES[intervals], device=device)
    count = all_intervals(draws)
    return {
        "detectors": len(samples),
        "replicates": REPLICATES[intervals],
        "intervals": count,
        "wall": perf_counter() - wall,
        "processor": process_time() - processor,
    }


def largest_difference(samples: dict[str, Sample], device: str) -> float:
    """Between replicates of the device and of the processor, over all metrics and sets."""
    here, there = (
        bootstrap_each(samples, seed=0, metrics=METRICS, replicates=100, device=each) for each in ("cpu", device)
    )
    return max(
        float(np.abs(here[name].values[metric][each] - there[name].values[metric][each]).max())
        for name in samples
        for metric in METRICS
        for each in SIZES
    )


def measured(device: str, detectors: int) -> dict[str, Any]:
    """The entry of one device."""
    samples = made(detectors)
    load = os.getloadavg()[0]
    if device == "cuda":
        timed({"first": samples["detector 0"]}, "fast", device)  # the first call loads the library's kernels
    rows = [timed(samples, intervals, device) for intervals in ("full", "fast")]
    few = dict(list(samples.items())[:COMPARED])
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else f"processor, {len_processors()} cores",
        "kind": device,
        "load": load,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"torch {torch.__version__}",
        "rows": rows,
        "difference": largest_difference(few, "cuda" if device == "cuda" else "cpu:0"),
    }


def len_processors() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def verdict(entry: dict[str, Any]) -> str:
    """Whether the full intervals met the bar, in one sentence."""
    full, bar = entry["rows"][0], BARS[entry["kind"]]
    met = "within" if full["wall"] <= bar else "above"
    busy = (
        f" The machine was busy with other work (load {entry['load']:.1f}); the same work took "
        f"{full['processor']:.1f} s of processor time."
        if entry["kind"] == "cpu" and entry["load"] > 1.0
        else ""
    )
    return f"{entry['device']}: {full['wall']:.1f} s, {met} the {bar:.0f} s asked for.{busy}"


def page(entries: list[dict[str, Any]]) -> str:
    """The results page, every sentence from the numbers."""
    sizes = ", ".join(f"{name} {n:,}" for name, n in SIZES.items())
    lines = [
        "# What the bootstrap costs",
        "",
        f"**Question.** The intervals of {len(METRICS)} metrics for {DETECTORS} detectors on the six OOD sets of",
        f"OpenOOD's CIFAR-10 benchmark (ID {ID:,}; {sizes}),",
        "1,000 replicates, per set and for the means of "
        f"near and far: at most {BARS['cpu']:.0f} s on 2 cores, and {BARS['cuda']:.0f} s on a GPU?",
        "",
        f"**Answer.** {' '.join(verdict(entry) for entry in entries)}",
        "",
        "**Command.** `python benchmarks/bootstrap_speed.py` (`--device cpu` where there is a GPU)",
        "",
        "| device | date | intervals | replicates | wall, s | processor, s | load before |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {entry['device']} | {entry['date']} | {row['intervals']:,} | {row['replicates']:,} "
        f"| {row['wall']:.2f} | {row['processor']:.2f} | {entry['load']:.1f} |"
        for entry in entries
        for row in entry["rows"]
    ]
    lines += [""]
    differences = ", ".join("{difference:.1e} ({device})".format(**entry) for entry in entries)
    lines += [
        "**Agreement.** The largest difference of a replicate between the processor's way and torch's, over",
        f"{COMPARED} detectors, all metrics and sets: {differences}. Every fourth detector has",
        "tied scores. `tests/metrics/resampling/test_agreement.py` holds replicates and intervals to those of",
        "version 0.1, to 1e-12.",
        "",
        f"**Versions.** {'; '.join(dict.fromkeys(entry['versions'] for entry in entries))}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--detectors", type=int, default=DETECTORS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    entry = measured(given.device, given.detectors)
    stored = given.results / "data" / "bootstrap-speed.json"
    entries = json.loads(stored.read_text()) if stored.exists() else []
    entries = [*(each for each in entries if each["device"] != entry["device"]), entry]
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_text(json.dumps(entries, indent=1) + "\n")
    (given.results / "bootstrap-speed.md").write_text(page(entries))
    print(page(entries))


if __name__ == "__main__":
    main()

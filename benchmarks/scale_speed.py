"""What dividing costs: two workers against one, and units of a plan against one loop over the same images."""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.jobs.project import job

from scale_numbers import Figures, environment, oodscope

BLOCK = 1024
SYNTHETIC, TURNS = 100_000, 3
"""Images that two workers share, and how often one and two of them do it in turn."""

LOOP, PAIRS = 16 * BLOCK, 25
"""Images of one short loop, and how often it is compared with the units of a plan."""

NETWORK = """
import torch
from torch import nn


def build():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10),
    )
"""


def synthetic(folder: Path, count: int) -> Path:
    """A job on made-up images of 64 pixels and a small network, whose extraction is what is measured."""
    folder.mkdir(parents=True, exist_ok=True)
    draws = np.random.default_rng(0)
    base = draws.integers(0, 256, (BLOCK, 64, 64, 3), dtype=np.uint8)
    images = np.concatenate([base + np.uint8(number) for number in range(-(-count // BLOCK))])[:count]
    np.savez(folder / "images.npz", images=images, labels=np.arange(count) % 10)
    few = draws.integers(0, 256, (200, 64, 64, 3), dtype=np.uint8)
    np.savez(folder / "few.npz", images=few)
    (folder / "scale_network.py").write_text(NETWORK)
    sets = {"id_test": str(folder / "images.npz"), "near": {"few": str(folder / "few.npz")}, "transform": {"size": 64}}
    model = {"architecture": "python:scale_network:build"}
    return job(folder, benchmark=sets, images_per_class=None, detectors=["msp"], protocols=["standard"], model=model)


def busy_seconds() -> float:
    """Processor time of the whole machine since it was started, all that is not idle or waiting."""
    user, nice, system, _, _, *others = (float(word) for word in Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def extraction_rate(folder: Path, path: Path, workers: int) -> Figures:
    """Images a second while all of these workers work: from when the last has done its first unit to the last unit.

    The first unit of a worker holds imports and the opening of the sets. Of a unit that was begun before, the part that
    came after counts.
    """
    plan = folder / "plan"
    for old in (folder / "cache" / "activations", plan):
        shutil.rmtree(old, ignore_errors=True)
    oodscope(folder, "plan", str(path), "-o", str(plan), "--workers", "8")
    before, others = time.monotonic(), busy_seconds()
    processes = [
        oodscope(folder, "work", str(plan), "--share", f"{number}/{workers}", "--kinds", "extract", wait=False)
        for number in range(workers)
    ]
    usage = [os.wait4(process.pid, 0) for process in processes]
    own = sum(used.ru_utime + used.ru_stime for _, _, used in usage)
    others = (busy_seconds() - others - own) / (time.monotonic() - before)
    if any(status for _, status, _ in usage):
        raise SystemExit(f"speed: {[each.stderr.read() for each in processes if each.stderr]}")
    done: dict[int, list[tuple[float, float, int]]] = {}
    for file in (plan / "done").glob("extract-*.json"):
        record, end = json.loads(file.read_text()), file.stat().st_mtime
        done.setdefault(record["pid"], []).append((end - record["seconds"], end, record["forwarded"]))
    begin = max(min(end for _, end, _ in each) for each in done.values())
    every = [unit for each in done.values() for unit in each]
    images = sum(count * max(0.0, end - max(start, begin)) / (end - start) for start, end, count in every)
    seconds = max(end for _, end, _ in every) - begin
    figures = {"workers": len(done), "images": images, "seconds": seconds, "rate": images / seconds}
    return {**figures, "processor": own, "others": others}


def speed(folder: Path, count: int = SYNTHETIC, turns: int = TURNS) -> Figures:
    """One worker and two, in turn, on the same images."""
    path = synthetic(folder, count)
    found: dict[str, list[Figures]] = {"one": [], "two": []}
    for _ in range(turns):
        for workers, name in enumerate(found, start=1):
            found[name].append(extraction_rate(folder, path, workers))
            print(f"speed: {found[name][-1]}", flush=True)
    ratios = [two["rate"] / one["rate"] for one, two in zip(found["one"], found["two"])]
    return {**found, "ratios": ratios, "ratio": float(np.median(ratios)), "count": count}


class Outside:
    """Processor time of what a plan's units do outside the extraction itself, which the plain loop does too."""

    def __init__(self, extraction: Any) -> None:
        self.extraction, self.plain, self.inside = extraction, extraction.extract, 0.0

    def extract(self, *given: Any) -> Any:
        before = time.process_time()
        try:
            return self.plain(*given)
        finally:
            self.inside += time.process_time() - before


def overhead(folder: Path, count: int = LOOP, pairs: int = PAIRS) -> Figures:
    """Processor time of one process: a plan's extraction units, and the plain loop over the same images, in turn.

    Processor time counts other people's work on the same cores only through caches; pairs lie side by side in time, and
    which of the two comes first alternates.
    """
    os.environ.update(environment(folder))
    sys.path[:0] = [str(folder)]
    import torch

    from oodscope.activations.store.store import ActivationStore
    from oodscope.execution.work import work
    from oodscope.jobs.run import declared_file
    from oodscope.jobs.units.divided import write_plan
    from oodscope.jobs.units.evaluation import opened
    from oodscope.jobs.units.kinds import do

    torch.set_num_threads(1)
    path = synthetic(folder, count)
    first = write_plan(declared_file(path), folder / "first", workers=1)
    parts = opened(next(unit for unit in first.units if unit.kind == "extract").spec)
    watched = Outside(parts.extraction)
    parts.extraction.extract = watched.extract  # type: ignore[method-assign]
    sets = [(images, parts.probes(name)) for name, images in parts.sets().items()]

    def timed(way: str, number: int) -> tuple[float, float]:
        root = folder / f"{way}-{number}"
        parts.extraction.store = ActivationStore(root)
        plan = write_plan(declared_file(path), root / "plan", workers=1) if way == "units" else None
        watched.inside, started = 0.0, time.process_time()
        if plan is None:
            for images, probes in sets:
                parts.extraction.extract(images, probes)
        else:
            work(plan, do, kinds=["extract"])
        spent = time.process_time() - started
        shutil.rmtree(root, ignore_errors=True)
        return spent, spent - watched.inside

    times: dict[str, list[tuple[float, float]]] = {"loop": [], "units": []}
    for number in range(pairs + 1):
        for way in ("loop", "units") if number % 2 else ("units", "loop"):
            times[way].append(timed(way, number))
    loop, units = (np.array(times[way][1:]) for way in ("loop", "units"))  # the first pair warms up
    ratios = units[:, 0] / loop[:, 0] - 1
    draws = np.random.default_rng(0).integers(0, pairs, (2000, pairs))
    low, high = np.quantile(np.median(ratios[draws], axis=1), [0.025, 0.975])
    return {
        "loop": float(np.median(loop[:, 0])),
        "outside": float(np.median(units[:, 1])),
        "share": float(np.median(units[:, 1] / units[:, 0])),
        "count": sum(unit.kind == "extract" for unit in first.units),
        "images": count + 200,
        "pairs": pairs,
        "median": float(np.median(ratios)),
        "low": float(low),
        "high": float(high),
    }

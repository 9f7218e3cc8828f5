"""Is this version slower than 0.1 on two cores? The demo, and 30,000 small PNGs through a small network.

    git worktree add --detach BEFORE 3cadf47
    python benchmarks/speed_two_cores.py BEFORE [--images 30000] [--repetitions 1] [--lines demo,png]

Both checkouts do the same work in processes of their own, in turn, each with an empty cache. What counts is processor
time (user and system, children included): it says something even where other work shares the cores. The numbers go to
docs/results/data/speed-two-cores.json, from which speed_page.py writes its section of docs/results/speed.md.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from speed_page import WHOLE_DEMO

HERE = Path(__file__).parents[1]
RESULTS = HERE / "docs" / "results"

EXTRACT = """
import sys, tempfile
import torch
import oodscope as oods
try:
    from oodscope.data.images.folders import open_folder
except ImportError:
    from oodscope.data import open_folder
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
    torch.nn.Linear(32, 10),
)
clf = oods.Classifier(model, oods.Preprocess(size=32), device="cpu")
images = open_folder("small", sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    found = oods.ActivationStore(folder).extract(clf, images)
    print(len(images), found.logits.double().sum().item().hex())
"""
"""Open a folder of files that nobody has seen, hash, decode, run a network that costs next to nothing, store."""

Figures = dict[str, Any]


def write_images(folder: Path, count: int) -> None:
    """PNGs of 32 pixels, in folders of a thousand."""
    rng = np.random.default_rng(0)
    for number in range(count):
        place = folder / f"class{number // 1000:03}"
        place.mkdir(parents=True, exist_ok=True)
        coarse = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((32, 32)).save(place / f"{number:06}.png")


def timed(checkout: Path, arguments: list[str], home: Path) -> Figures:
    """One process of a checkout, with an empty cache."""
    with tempfile.TemporaryDirectory(dir=home) as own:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OODSCOPE_CACHE": f"{own}/cache"}
        started = time.perf_counter()
        # not subprocess.run: only the usage of this one child, and of its own children, counts
        with subprocess.Popen(
            [sys.executable, *arguments], cwd=own, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child:
            assert child.stdout is not None
            printed = child.stdout.read().decode()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{checkout}: {' '.join(arguments)[:80]} ended with {child.returncode}")
        wall = time.perf_counter() - started
        return {"wall": wall, "processor": usage.ru_utime + usage.ru_stime, "printed": printed}


def compared(arguments: dict[str, list[str]], checkouts: dict[str, Path], home: Path, repetitions: int) -> Figures:
    """The least figures of each checkout, in turn."""
    found: dict[str, list[Figures]] = {name: [] for name in checkouts}
    for _ in range(repetitions):
        for name, checkout in checkouts.items():
            found[name].append(timed(checkout, arguments[name], home))
            print(name, {key: value for key, value in found[name][-1].items() if key != "printed"}, flush=True)
    least = {
        name: {key: min(run[key] for run in runs) for key in ("wall", "processor")} for name, runs in found.items()
    }
    return {**least, "repetitions": repetitions, "same": len({runs[0]["printed"] for runs in found.values()}) == 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("--images", type=int, default=30_000)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--lines", default="png,demo,same_demo")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    stored = asked.results / "data" / "speed-two-cores.json"
    facts: Figures = json.loads(stored.read_text()) if stored.exists() else {"rows": {}}
    facts |= {
        "command": "python benchmarks/speed_two_cores.py BEFORE",
        "machine": f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "load": os.getloadavg()[0],
    }
    checkouts = {"before": asked.before.resolve(), "now": HERE}
    demo = ["-m", "oodscope", "demo", "--output", "out"]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        for line in asked.lines.split(","):
            if line == "png":
                write_images(home / "images", asked.images)
                work = ["-c", EXTRACT, str(home / "images")]
                name, arguments = f"{asked.images:,} PNGs of 32 pixels", {"before": work, "now": work}
            elif line == "demo":
                name, arguments = WHOLE_DEMO, {"before": demo, "now": demo}
            else:
                name = "the demo as far as 0.1 had one"
                arguments = {"before": demo, "now": [*demo, "--no-training"]}
            facts["rows"][name] = compared(arguments, checkouts, home, asked.repetitions)
            stored.parent.mkdir(parents=True, exist_ok=True)
            stored.write_text(json.dumps(facts, indent=1) + "\n")
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()

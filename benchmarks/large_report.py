"""A report of 40 detectors, 12 sets and 5 protocols: how long does it take to write, and to open in a browser?

    python benchmarks/large_report.py FOLDER [--images 2000] [--profile]

Runs are made of random scores whose detectors differ as real ones do, by the protocols' own code, and lie in
FOLDER/runs as a run leaves them; a second call takes them from there. Needs ``oodscope[dev]`` and chromium.
"""

import argparse
import cProfile
import pstats
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import oodscope as oods
from oodscope.base.catalog import catalog
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.protocols.registry import create_protocol
from oodscope.results.measurement import Measurements
from oodscope.results.record import RunRecord, SetRecord, environment
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.evaluation.run import Result

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.browser import chromium as debian

DETECTORS = list(catalog("detectors"))[:40]
SETS = {  # role, and how far it lies from ID in standard deviations of a detector of strength 1
    "id_train": ("id_train", -0.2),
    "id_val": ("id_val", 0.0),
    "id_test": ("id_test", 0.0),
    **{f"near_{place}": ("near", 0.6 + 0.2 * place) for place in range(3)},
    **{f"far_{place}": ("far", 1.5 + 0.4 * place) for place in range(5)},
    **{f"shifted_{place}": ("csid", 0.2 * place) for place in range(4)},
}
CLASSES = 100
BENCHMARK = {"benchmark": "large", "benchmark_version": "1"}
PAIRS = [f"cifar{10 if place < 6 else 100}/far_{place % 6}" for place in range(12)]
PROTOCOLS = ("standard", "full_spectrum", "human_centric")
METRICS = (
    "tpr5_id_positive_interpolated",
    "auroc",
    "aupr_in_trapezoid",
    "max_f1_id_positive",
    "accuracy_at_90_id_kept",
)


def scores(images: int) -> ScoreTable:
    """Every detector sees the same oddity of an image, more or less strongly, and noise of its own."""
    rng = np.random.default_rng(0)
    strength = rng.uniform(0.5, 1.5, len(DETECTORS))
    frames = []
    for name, (role, shift) in SETS.items():
        own, oddity = rng.integers(CLASSES, size=images), rng.normal(size=images)
        known = role not in ("near", "far")
        right = rng.random(images) < 0.8 - 0.1 * shift
        frame = {
            "sample_id": [f"{name}/{row:06d}.png" for row in range(images)],
            "set": name,
            "role": role,
            "label": own if known else np.full(images, -1),
            "own_class": own,
            "prediction": np.where(right, own, (own + 1) % CLASSES),
            "unit": "",
        }
        for detector, how in zip(DETECTORS, strength):
            frame[detector] = shift * how + 0.8 * oddity + 0.6 * rng.normal(size=images) + 0.5 * (known & ~right)
        frames.append(pd.DataFrame(frame))
    described = {
        name: {"name": name, "params": {}, "tuning": ("default", "ood_val")[place % 5 == 0]}
        | {"fit_seconds": 0.1 * place, "microseconds_per_image": 1.5 * place, "peak_mib": 2.5 * place}
        for place, name in enumerate(DETECTORS)
    }
    context = {"run": "large-1", **BENCHMARK, "model": "network", "recipe": "", "seed": 0, "exposure": {}}
    return ScoreTable(pd.concat(frames, ignore_index=True), {"detectors": described, **context})


def judged(images: int) -> Result:
    """The scores under three protocols."""
    table = scores(images)
    rows = Measurements()
    for protocol in map(create_protocol, PROTOCOLS):
        rows = rows + protocol.measure(table)
    record = RunRecord(
        **BENCHMARK,
        id="large-1",
        created="2026-11-15T12:00:00+00:00",
        oodscope_version=oods.__version__,
        sets={name: SetRecord(role=role, n=images, fingerprint=f"{name}-1") for name, (role, _) in SETS.items()},
        model="network",
        model_fingerprint="made of random numbers",
        transform="none",
        head="none",
        seed=0,
        precision="float32",
        device="cpu",
        environment=environment(),
        protocols=list(PROTOCOLS),
    )
    return Result(record, rows, table)


def attacked() -> Attack:
    """Every detector a random direction in the space of pixels, attacked for a moment."""
    rng = np.random.default_rng(1)
    sets = {
        name: oods.ImageSet.from_arrays(
            name, rng.integers(0, 256, (500, 32, 32, 3), dtype=np.uint8), np.arange(500) % 10, [*"abcdefghij"]
        )
        for name in ("id_val", "id_test", "far_0")
    }
    directions = torch.randn(len(DETECTORS), 3 * 32 * 32, generator=torch.Generator().manual_seed(1))

    def scorer(direction: torch.Tensor) -> FunctionScorer:
        return FunctionScorer(lambda batch: batch.flatten(1) @ direction)

    scorers = {name: scorer(direction) for name, direction in zip(DETECTORS, directions)}
    return oods.attack(scorers, *sets.values(), ("affine", "color", "affine+color"), budget=16, chains=100)


def crossvalidated() -> CrossValidationTable:
    """Ten repetitions of five folds, a hundred hold-outs and a crossed design on twelve pairs of sets."""
    rng = np.random.default_rng(2)
    runs = [("fold", repetition, fold, 0, 0, 0) for repetition in range(10) for fold in range(5)]
    runs += [("hold_out", repetition, 0, 0, 0, 0) for repetition in range(100)]
    runs += [("crossed", 0, 0, i, j, s) for i in range(3) for j in range(3) for s in range(2)]
    shape = (len(runs), len(METRICS), len(DETECTORS), len(PAIRS))
    logits = 1.2 + rng.normal(size=shape[3]) + 0.3 * rng.normal(size=(*shape[2:3], 1))
    noise = 0.2 * rng.normal(size=(shape[0], 1, 1, shape[3])) + 0.05 * rng.normal(size=shape)
    values = 1 / (1 + np.exp(-(logits + noise)))
    run, metric, detector, pair = (index.ravel() for index in np.indices(shape))
    columns = ("kind", "repetition", "fold", "id_draw", "ood_draw", "training_seed")
    told = {name: np.array([each[place] for each in runs])[run] for place, name in enumerate(columns)}
    named = {"training": "plain", "pair": np.array(PAIRS)[pair], "detector": np.array(DETECTORS)[detector]}
    frame = pd.DataFrame({**told, **named, "metric": np.array(METRICS)[metric], "value": values.ravel()})
    return CrossValidationTable(frame.assign(n_id=2000, n_ood=1000), {"study": "made of random numbers"})


def make_runs(folder: Path, images: int) -> None:
    """What is not there yet, with the seconds it took."""
    parts = {
        "judged/run.json": lambda place: judged(images).save(place),
        "attacked/run.json": lambda place: attacked().save(place),
        "crossvalidated/crossval.parquet": lambda place: crossvalidated().save(place),
    }
    for name, make in parts.items():
        if not (folder / name).exists():
            started = time.perf_counter()
            make((folder / name).parent)
            print(f"made {Path(name).parent} in {time.perf_counter() - started:.1f} s")


def write(runs: Path, page: Path, profile: bool) -> tuple[float, float]:
    """Seconds of `oodscope report` after its imports: by the clock, and of the processor."""
    from oodscope.report.page.page import write_report
    from oodscope.results.opening import open_runs

    watch = cProfile.Profile()
    started = time.perf_counter(), time.process_time()
    if profile:
        watch.enable()
    write_report(open_runs([runs]), page)
    watch.disable()
    seconds = time.perf_counter() - started[0], time.process_time() - started[1]
    if profile:
        pstats.Stats(watch).sort_stats("cumulative").print_stats(40)
    return seconds


def opened(page: Path) -> dict[str, tuple[float, float]]:
    """Seconds until the load event and until the first plot is drawn: by the clock, and of the page's main thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=debian.find(), args=list(debian.ARGUMENTS))
        tab = browser.new_page(viewport={"width": 1400, "height": 900})
        tab.goto("about:blank")
        session = tab.context.new_cdp_session(tab)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def busy() -> float:
            metrics = session.send("Performance.getMetrics")["metrics"]
            return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

        before = busy()
        tab.goto(page.resolve().as_uri())
        load = tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"), busy() - before
        tab.locator(".plot[data-figure]").first.scroll_into_view_if_needed()  # plots are drawn when they are near
        tab.locator(".plot .main-svg").first.wait_for(state="attached")
        first = tab.evaluate("performance.now() / 1000"), busy() - before
        browser.close()
    return {"load": load, "first plot": first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=2000, help="of each set")
    parser.add_argument("--profile", action="store_true", help="what the writing spends its time on")
    asked = parser.parse_args()
    make_runs(asked.folder / "runs", asked.images)
    page = asked.folder / "report.html"
    wall, busy = write(asked.folder / "runs", page, asked.profile)
    pictures = sum(map(len, re.findall(rb"data:image/[^\"]+", page.read_bytes())))
    print(f"written in {wall:.1f} s, {busy:.1f} s of the processor")
    print(f"size {page.stat().st_size / 1e6:.2f} MB, of which {pictures / 1e6:.2f} MB pictures")
    for name, (wall, busy) in opened(page).items():
        print(f"opened, {name}: {wall:.2f} s, {busy:.2f} s of the page's main thread")


if __name__ == "__main__":
    main()

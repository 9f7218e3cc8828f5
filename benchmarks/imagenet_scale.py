"""Do all detectors fit and score at the size of ImageNet, on a small machine?

    python benchmarks/imagenet_scale.py FOLDER [--only NAME ...] [--rows 1281167]

1,281,167 x 2048 float16 training features and x 1000 float16 logits are made up once in FOLDER (8 GB), as memory
maps; 5,000 validation and 45,000 test rows likewise. Columns of probes are stood in for by columns of the same shape
over the same map. Each detector is fitted and scores the test rows; seconds and the peak of the process's anonymous
memory (RssAnon: memory maps do not count) are printed as a table. Detectors run one after the other in one process
and share what the training activations remember: their moments and their NaN checks, whose own cost is listed first.
"""

import argparse
import time
from pathlib import Path
from threading import Event, Thread

import numpy as np
import torch

import oodscope as oods
from oodscope.activations.probes.probe import Probe
from oodscope.detectors.registry import DETECTORS, create_detector

ROWS, WIDTH, CLASSES, VAL, TEST, BLOCK = 1_281_167, 2048, 1000, 5_000, 45_000, 8192
PARAMS = {
    "knn": {"bank_fraction": 0.01, "k": 10},
    "relation": {"bank_fraction": 0.01},
    "nnguide": {"bank_fraction": 0.01},
    "gram": {"powers": 1},
    "mds_ensemble": {"stages": "first"},
}
"""Banks hold a seeded hundredth; five powers of Gram sums cannot be stood in for by a view of the features; four stages
of the Mahalanobis ensemble would be four times the same stage."""


def make(folder: Path, rows: int) -> None:
    """Class centres plus noise, rectified; logits by the head of the same centres."""
    rng = np.random.default_rng(0)
    centres = (rng.normal(size=(CLASSES, WIDTH)) * 0.5).astype(np.float32)
    noise = rng.normal(size=(2 * BLOCK, WIDTH)).astype(np.float32)
    weight = torch.from_numpy(centres * 0.05)
    np.save(folder / "weight.npy", weight.numpy())
    for name, count in (("train", rows), ("val", VAL), ("test", TEST)):
        features = np.lib.format.open_memmap(folder / f"{name}-f.npy", "w+", np.float16, (count, WIDTH))
        logits = np.lib.format.open_memmap(folder / f"{name}-z.npy", "w+", np.float16, (count, CLASSES))
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            labels = np.arange(start, stop) % CLASSES
            shift = int(rng.integers(BLOCK))
            block = np.maximum(centres[labels] + noise[shift : shift + stop - start], 0)
            features[start:stop] = block
            logits[start:stop] = torch.from_numpy(block) @ weight.T
        features.flush(), logits.flush()


def opened(folder: Path, name: str) -> oods.Activations:
    features = np.load(folder / f"{name}-f.npy", mmap_mode="r")
    return oods.Activations(
        features=features,
        logits=np.load(folder / f"{name}-z.npy", mmap_mode="r"),
        labels=np.arange(len(features)) % CLASSES,
        weight=np.load(folder / "weight.npy"),
    )


def standing_in(probe: Probe, rows: oods.Activations) -> np.ndarray:
    """A view of the same map in the shape of the probe's column: no storage, no memory."""
    features, logits = rows._columns["features"], rows._columns["logits"]
    kind = type(probe).__name__
    if kind == "PerturbedLogits":
        return logits
    if kind == "PerturbedFeatures":
        return features
    if kind in ("PooledMaps", "SteppedMaps", "GramSums"):
        return np.broadcast_to(features[:, None], (len(features), 4, WIDTH))
    return np.broadcast_to(logits[:, None], (len(logits), 2, CLASSES))


def with_probes(rows: oods.Activations, probes: tuple[Probe, ...]) -> oods.Activations:
    """The same activations, what they remember included, with the columns that probes would have found."""
    for probe in probes:
        rows._columns.setdefault(probe.column, standing_in(probe, rows))
    return rows


class PeakAnonymous:
    """The largest RssAnon while it runs, in GiB."""

    def __enter__(self) -> "PeakAnonymous":
        self.gib, self._stop = self.now(), Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.gib = max(self.gib, self.now())

    @staticmethod
    def now() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "test-z.npy").exists():
        started = time.perf_counter()
        make(options.folder, options.rows)
        print(f"made in {time.perf_counter() - started:.0f} s", flush=True)
    train, val, test = (opened(options.folder, name) for name in ("train", "val", "test"))
    print(f"{torch.get_num_threads()} threads; {train}\n")
    print("| detector | fit, s | score of 45,000, s | peak RssAnon, GiB |\n|---|---|---|---|", flush=True)

    def row(name: str, fit: float, score: float | None, gib: float) -> None:
        print(f"| {name} | {fit:.1f} | {'' if score is None else f'{score:.1f}'} | {gib:.2f} |", flush=True)

    with PeakAnonymous() as memory:
        started = time.perf_counter()
        for part in (train, val, test):
            part.broken_rows("features"), part.broken_rows("logits"), part.negative_rows("features")
    row("(shared: checks)", time.perf_counter() - started, None, memory.gib)
    with PeakAnonymous() as memory:
        started = time.perf_counter()
        train.moments()
    row("(shared: moments)", time.perf_counter() - started, None, memory.gib)
    for name in options.only or DETECTORS:
        detector = create_detector(name, **PARAMS.get(name, {}))
        with PeakAnonymous() as memory:
            started = time.perf_counter()
            detector.fit(*(with_probes(part, detector.probes) for part in (train, val)))
            middle = time.perf_counter()
            scores = detector.score(with_probes(test, detector.probes))
        assert torch.isfinite(scores).all() and len(scores) == TEST
        row(name, middle - started, time.perf_counter() - middle, memory.gib)


if __name__ == "__main__":
    main()

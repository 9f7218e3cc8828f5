"""Do our detectors give the published near-OOD figures on CIFAR-10 and CIFAR-100?

    OODSCOPE_DATA=path/to/packs python benchmarks/detectors_cifar.py OUTPUT.json [--device cuda] [--only NAME ...]
    python benchmarks/detectors_cifar.py OUTPUT.json --show

Every detector under the three tuning tracks, on OpenOOD v1.5's own split lists, with one ResNet-18 per benchmark
trained by its recipe. The published column is OpenOOD's leaderboard (three seeds, after its search on the same
validation sets), so it is compared with the track ``ood_val``.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import oodscope as oods
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable, score_benchmark
from openood_cifar import open_benchmark, open_classifier

TRACKS = ("default", "id_only", "ood_val")
PUBLISHED = {
    "cifar10": {
        "openmax": 87.62, "msp": 88.03, "temp_scaling": 88.09, "odin": 82.87, "mds": 84.20, "mds_ensemble": 60.43,
        "rmds": 89.80, "ebo": 87.58, "gradnorm": 54.90, "react": 87.11, "mls": 87.52, "klm": 79.19, "vim": 88.68,
        "knn": 90.64, "dice": 78.34, "rankfeat": 79.46, "ash": 75.27, "she": 81.54, "gen": 88.20, "relation": 89.77,
        "scale": 82.55, "fdbd": 90.42, "nci": 88.86, "iodin": 87.92,
    },
    "cifar100": {
        "msp": 80.27, "temp_scaling": 80.90, "odin": 79.90, "mds": 58.69, "rmds": 80.15, "ebo": 80.91,
        "gradnorm": 70.13, "react": 80.77, "mls": 81.05, "klm": 76.56, "vim": 74.98, "knn": 80.18, "dice": 79.38,
        "rankfeat": 61.88, "ash": 78.20, "she": 78.95, "gen": 81.31, "scale": 80.99, "fdbd": 81.26, "relation": 80.67,
    },
}  # fmt: skip
TIGHT = ("msp", "temp_scaling", "mls", "ebo", "gen", "knn", "rmds", "fdbd", "relation", "vim")
LOOSE = ("react", "she", "dice", "odin", "ash", "scale")
UNRANKED = ("gram", "opengan", "rankfeat")


def judge(folder: Path, name: str, only: list[str], device: str) -> dict[str, Any]:
    """Near-OOD AUROC in percent of every detector under every track, with what the search chose."""
    bench, clf = open_benchmark(folder, name), open_classifier(folder, name, device)
    store = oods.ActivationStore()
    extraction = FromNetwork(clf, store, batch_size=500)
    detectors, skipped = applicable([create_detector(each) for each in only or DETECTORS], extraction, bench)
    found: dict[str, Any] = {"skipped": skipped, "forwarded": 0, "tracks": {}}
    for track in TRACKS:
        started = time.perf_counter()
        scores = score_benchmark(extraction, bench, detectors, track=track)
        frame = scores.frame
        rows = {}
        for detector in scores.detectors:
            by_set = {each: frame.loc[frame["set"] == each, detector].to_numpy() for each in frame["set"].unique()}
            known = by_set["id_test"]
            near = {each.name: 100 * Ranking(known, by_set[each.name]).auroc for each in bench.near}
            rows[detector] = {
                **scores.context.detectors[detector].model_dump(),
                "near": float(np.mean(list(near.values()))),
                **near,
            }
        found["tracks"][track] = {"rows": rows, "seconds": time.perf_counter() - started}
        right = frame["prediction"] == frame["label"]
        found["accuracy"] = float(right[frame["set"] == "id_test"].mean())
        slowest = sorted(rows, key=lambda each: -rows[each]["fit_seconds"])[:3]
        fits = ", ".join(f"{each} {rows[each]['fit_seconds']:.1f}" for each in slowest)
        print(f"{name} {track}: {found['tracks'][track]['seconds']:.0f} s; slowest fits: {fits}", flush=True)
    found["forwarded"] = store.forwarded
    return found


def show(name: str, found: dict[str, Any]) -> None:
    """The table, ours beside the published column, and the verdicts."""
    published, factor = PUBLISHED[name], 1 if name == "cifar10" else 2
    tracks = {track: found["tracks"][track]["rows"] for track in TRACKS}
    print(f"\n## {name} (accuracy on id_test {100 * found['accuracy']:.2f})\n")
    print("| detector | default | id_only | ood_val | published | difference | bar | chosen on ood_val |")
    print("|---|---|---|---|---|---|---|---|")
    order = sorted(tracks["ood_val"], key=lambda each: -tracks["ood_val"][each]["near"])
    for detector in order:
        ours = [f"{tracks[track][detector]['near']:.2f}" for track in TRACKS]
        row, theirs = tracks["ood_val"][detector], published.get(detector)
        off = "" if theirs is None else f"{row['near'] - theirs:+.2f}"
        bar = factor * (0.7 if detector in TIGHT else 1.5) if detector in TIGHT + LOOSE else None
        met = (
            ""
            if bar is None or theirs is None
            else f"{bar:.1f} {'met' if abs(row['near'] - theirs) <= bar else 'MISSED'}"
        )
        chosen = (
            "" if row["grid_size"] == 1 else ", ".join(f"{k}={v}" for k, v in row["params"].items() if v is not None)
        )
        print(f"| {detector} | {' | '.join(ours)} | {theirs or ''} | {off} | {met} | {chosen} |")
    shared = [each for each in order if each in published and each not in UNRANKED]
    rho = spearmanr(
        [tracks["ood_val"][each]["near"] for each in shared], [published[each] for each in shared]
    ).statistic
    print(f"\nSpearman rank correlation with the published column over {len(shared)} methods: {rho:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--benchmarks", nargs="*", default=["cifar10", "cifar100"])
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
        found = {}
        for name in options.benchmarks:
            found[name] = judge(folder, name, options.only, options.device)
            options.output.write_text(json.dumps(found, indent=1))
    for name, outcome in json.loads(options.output.read_text()).items():
        show(name, outcome)


if __name__ == "__main__":
    main()

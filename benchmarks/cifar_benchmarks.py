"""OpenOOD v1.5's CIFAR-10 and CIFAR-100 benchmarks, near and far, as far as real image packs reach.

    OODSCOPE_DATA=path/to/packs python benchmarks/cifar_benchmarks.py OUTPUT.json [--device cuda] [--only NAME ...]
    python benchmarks/cifar_benchmarks.py OUTPUT.json --write docs/results/cifar-benchmarks.md --machine "..."

Known and near images lie in the packs and are cut by the packaged split lists, so the near column is OpenOOD's own. Of
the far sets the packs hold parts and stand-ins; the page says which. The published columns are OpenOOD's leaderboard
(three seeds, after its search on the validation sets), so the track to compare is ``ood_val``.
"""

import argparse
import dataclasses
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from tests.realdata.packs import pack

import oodscope as oods
from oodscope.data.packaged import row_list
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable, score_benchmark
from openood_cifar import open_benchmark, open_classifier
from published import published

TRACKS = ("default", "ood_val")
FAR = {
    "mnist": ("mnist_test", "the 10,000 test digits of 70,000"),
    "svhn": ("svhn_test_10k", "10,000 of 26,032 digits, cropped again from the full numbers"),
    "texture": ("dtd10_32", "stand-in: 10 of the 47 classes of DTD, 1,200 of 5,640 images, stored at 32 px"),
    "places365": ("sun_scenes_32", "stand-in: 3,979 SUN scenes at 32 px, not filtered for CIFAR classes"),
}
SHARED = {"cifar100": {"places365"}}
"""Sets that share classes with the ID set, as docs/results/audit-cifar.md found; no part of the far mean."""


def open_both_groups(folder: Path, name: str) -> oods.Benchmark:
    """The near benchmark with the far sets that the packs offer; its parts must be those of the packaged lists."""
    near = open_benchmark(folder, name)
    whole = pack(folder, f"{name}_test")
    for part, images in (("val", near.id_val), ("test", near.id_test)):
        if images is None or not np.array_equal(images.rows, row_list(f"{name}_{part}").positions(whole.labels)):
            raise SystemExit(f"{name}: the packaged {part} list differs from the published one")
    far = tuple(dataset_named(pack(folder, source), label) for label, (source, _) in FAR.items())
    return dataclasses.replace(near, name=name, far=far)


def dataset_named(images: oods.ImageSet, name: str) -> oods.ImageSet:
    """The same images under the benchmark's name for them."""
    return images.take(np.arange(len(images)), name)


def judge(folder: Path, name: str, only: list[str], device: str) -> dict[str, Any]:
    """AUROC in percent of every detector and set under each track."""
    bench, clf = open_both_groups(folder, name), open_classifier(folder, name, device)
    store = oods.ActivationStore()
    extraction = FromNetwork(clf, store, batch_size=500)
    detectors, skipped = applicable([create_detector(each) for each in only or DETECTORS], extraction, bench)
    found: dict[str, Any] = {
        "skipped": skipped,
        "device": str(clf.device),
        "sizes": {images.name: len(images) for _, images in bench.members()},
        "tracks": {},
    }
    for track in TRACKS:
        started = time.perf_counter()
        scores = score_benchmark(extraction, bench, detectors, track=track)
        found["tracks"][track] = {each: measure(scores, each, bench) for each in scores.detectors}
        frame = scores.frame[scores.frame["set"] == "id_test"]
        found["accuracy"] = float((frame["prediction"] == frame["label"]).mean())
        print(f"{name} {track}: {time.perf_counter() - started:.0f} s", flush=True)
    return found


def measure(scores: ScoreTable, detector: str, bench: oods.Benchmark) -> dict[str, float]:
    """AUROC per set, and the unweighted means of near and far."""
    known = scores.scores(detector, set="id_test")
    row = {}
    for group, members in (("near", bench.near), ("far", bench.far)):
        values = {each.name: 100 * Ranking(known, scores.scores(detector, set=each.name)).auroc for each in members}
        row |= {group: float(np.mean(list(values.values()))), **values}
    return row


def page(found: dict[str, Any], machine: str) -> str:
    """The results page."""
    stand_ins = "\n".join(f"- `{label}`: {what}." for label, (_, what) in FAR.items())
    parts = [
        "# CIFAR-10 and CIFAR-100, near and far\n",
        "**Question.** On OpenOOD v1.5's CIFAR benchmarks, with one ResNet-18 each trained by its recipe, what AUROC\n"
        "do our detectors give against near and far sets?\n",
        "**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/cifar_benchmarks.py cifar.json`, then `--write`\n",
        f"**Machine.** {machine}\n",
        f"**Date.** {datetime.now(UTC):%Y-%m-%d}\n",
        "AUROC in percent. Known and near images are those of OpenOOD's lists (the packaged lists, compared with the\n"
        "published ones before the run). The far sets are parts of OpenOOD's, or stand-ins:\n",
        stand_ins + "\n",
        "Before a stand-in counts, [the audit](audit-cifar.md) looked at it. The scenes share no class with CIFAR-10.\n"
        "Two of their classes are CIFAR-100's (`mountain`, and `rainforest`, a forest), so they are no part of its\n"
        "far mean.\n",
        "So the published near column can be compared, and the published far column cannot: it is printed for\n"
        "orientation. `default` takes parameters as given; all other columns are of the track `ood_val`, searched on\n"
        "Tiny ImageNet's validation part as the published ones were.\n",
    ]
    return "\n".join(parts) + "".join(table(name, outcome) for name, outcome in found.items())


def with_far_mean(name: str, row: dict[str, float]) -> dict[str, float]:
    """The same row; its far mean over the sets that share no class with the ID set."""
    return row | {"far": float(np.mean([row[label] for label in FAR if label not in SHARED.get(name, ())]))}


def table(name: str, found: dict[str, Any]) -> str:
    """One benchmark: near, far and each set."""
    tuned, default = (
        {detector: with_far_mean(name, row) for detector, row in found["tracks"][track].items()}
        for track in ("ood_val", "default")
    )
    sets = [column for column in next(iter(tuned.values())) if column not in ("near", "far")]
    sizes = ", ".join(f"{label} {count:,}" for label, count in found["sizes"].items())
    head = ["detector", "near default", "near", "published near", "far default", "far", "published far", *sets]
    lines = [
        f"\n## {name} (accuracy on id_test {100 * found['accuracy']:.2f})\n",
        f"Images: {sizes}.\n",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    near_values, far_values = published(name), published(name, "far")
    for detector in sorted(tuned, key=lambda each: -tuned[each]["near"]):
        row, plain = tuned[detector], default[detector]
        near, far = near_values.get(detector), far_values.get(detector)
        cells = [plain["near"], row["near"], near, plain["far"], row["far"], far, *(row[label] for label in sets)]
        lines.append(f"| {detector} | " + " | ".join("" if each is None else f"{each:.2f}" for each in cells) + " |")
    shared = [each for each in tuned if each in near_values]
    off = [abs(tuned[each]["near"] - near_values[each]) for each in shared]
    if off:
        lines.append(
            f"\nNear, over {len(shared)} published methods: median difference {np.median(off):.2f} points, "
            f"largest {max(off):.2f} ({shared[int(np.argmax(off))]})."
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--benchmarks", nargs="*", default=["cifar10", "cifar100"])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--machine", default="2 cores, CPU")
    options = parser.parse_args()
    if options.write is None:
        folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
        found = {}
        for name in options.benchmarks:
            found[name] = judge(folder, name, options.only, options.device)
            options.output.write_text(json.dumps(found, indent=1))
    text = page(json.loads(options.output.read_text()), options.machine)
    if options.write is None:
        print(text)
    else:
        options.write.write_text(text)


if __name__ == "__main__":
    main()

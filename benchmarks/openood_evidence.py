"""Score one network of CIFAR-10 and one of CIFAR-100 for the page of OpenOOD's observations, on a processor.

    OODSCOPE_DATA=path/to/packs python benchmarks/openood_evidence.py TABLES docs/results/data/openood-evidence.csv

The two ResNet-18 that lie beside the packs, trained by OpenOOD's recipe. Detectors are fitted on a seeded part of the
training images and score seeded parts of all test sets, the same number of every class: ``training_sets.py`` says which
sets. TABLES/SET.parquet holds the scores, and a network whose table is there is not scored again. The second file holds
one line for each comparison that an observation rests on: the difference in points of AUROC with its standard error for
other images, and for other OOD classes with images drawn anew (``training_findings.py``). One network says nothing of
other networks of its recipe.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import oodscope as oods
from oodscope.base.files import write_text
from oodscope.detectors.registry import create_detector
from oodscope.runs.evaluation.scoring import score_benchmark
from openood_cifar import drawn, open_benchmark, open_classifier, pack
from training_findings import FEWEST, Estimate, Placements, contrast, mean_placements, placements, satterthwaite
from training_sets import FAR, corrupted
from training_table import InMemory

PLAIN = (
    *("msp", "mls", "ebo", "entropy", "gen", "react", "ash", "ash_p", "knn", "mcm", "fdbd", "rmds", "relation", "vim"),
    *("nac", "kpca", "average", "mds"),
)
"""Scores of the plain pass, fixed in advance: the paper's, and those that lead our tables of either set."""
STAGED = {"cifar10": ("mds_ensemble",), "cifar100": ()}
"""Scores with a pass of their own, and where they are computed."""
FAR_SHARE = 0.5
"""Images of a far set, as a share of those of every other test set."""


def parts_of(folder: Path, known: str, train: int, test: int) -> oods.Benchmark:
    """Seeded parts of all sets, with one corrupted copy of each ID test image."""
    whole = open_benchmark(folder, known)
    names = {file: name for file, name in FAR.items() if (folder / f"{file}.npz").exists()}
    far = tuple(drawn(pack(folder, file), round(FAR_SHARE * test)) for file in names)
    far = tuple(each.take(range(len(each)), name) for each, name in zip(far, names.values()))
    id_test = drawn(whole.id_test, test)
    near = tuple(drawn(each, test) for each in whole.near)
    csid = (corrupted(id_test, "cpu"),)
    return replace(whole, id_train=drawn(whole.id_train, train), id_test=id_test, near=near, far=far, csid=csid)


def scored(folder: Path, known: str, options: argparse.Namespace) -> pd.DataFrame:
    """The scores of a network's test images."""
    bench = parts_of(folder, known, options.train, options.test)
    extraction = InMemory(open_classifier(folder, known, options.device), {})
    detectors = [create_detector(name) for name in (*PLAIN, *STAGED[known])]
    table = score_benchmark(extraction, bench, detectors, track="default")
    return table.frame.astype(dict.fromkeys(table.detectors, "float32")).assign(kept="best")


def averaged(frame: pd.DataFrame, names: Sequence[str], **more: Any) -> dict[str, Placements]:
    """Placements averaged over several scores, image by image: the AUROC of their mean is the mean of their AUROCs."""
    return mean_placements([placements(frame, name, **more) for name in names])


def versus(first: Mapping[str, Placements], second: Mapping[str, Placements]) -> tuple[Estimate, Estimate]:
    """The difference of the mean AUROC of two groups of sets under one score, for other images and other OOD classes.

    The sets have no image in common, the ID images are the same.
    """
    parts: list[tuple[float, float]] = []
    images, value = 0.0, 0.0
    few = False
    for sign, group in ((1, first), (-1, second)):
        for each in group.values():
            by_class = pd.Series(each.ood).groupby(each.classes).mean()
            value += sign * float(by_class.mean()) / len(group)
            images += float(each.ood.var(ddof=1)) / len(each.ood) / len(group) ** 2
            parts.append((float(by_class.var(ddof=1)) / len(by_class) / len(group) ** 2, len(by_class) - 1))
            few |= len(by_class) < FEWEST
    shared = np.mean([each.known for each in first.values()], axis=0)
    shared = shared - np.mean([each.known for each in second.values()], axis=0)
    known = float(shared.var(ddof=1)) / len(shared)
    parts.append((known, len(shared) - 1))
    error = float("nan") if few else 100 * sqrt(sum(variance for variance, _ in parts))
    return Estimate(100 * value, 100 * sqrt(images + known), inf), Estimate(100 * value, error, satterthwaite(parts))


Comparison = tuple[str, str, tuple[Estimate, Estimate], float | None]
"""Observation, comparison in words, its estimates for other images and other OOD classes, a rank correlation."""


def comparisons(frame: pd.DataFrame, known: str) -> Iterator[Comparison]:
    """What the observations are judged by, on one network."""
    near = {name: placements(frame, name) for name in PLAIN}
    for name in ("react", "ash"):
        yield "rectifiers", name, contrast(near[name], near["msp"]), None
    yield "neighbours", "KNN above MSP", contrast(near["knn"], near["msp"]), None
    near_mean, far_mean = averaged(frame, PLAIN), averaged(frame, PLAIN, role="far")
    areas = [[np.mean([each.ood.mean() for each in placements(frame, name, role=role).values()]) for name in PLAIN]
             for role in ("near", "far")]  # fmt: skip
    rank = round(float(spearmanr(*areas).statistic), 3)
    yield "far", f"far above near, mean of {len(PLAIN)} scores", versus(far_mean, near_mean), rank
    full = averaged(frame, PLAIN, spectrum=True)
    yield (
        "shift",
        f"near without corrupted ID images above with, mean of {len(PLAIN)} scores",
        contrast(near_mean, full),
        None,
    )
    yield "shift", "the same, MSP", contrast(near["msp"], placements(frame, "msp", spectrum=True)), None
    for name in STAGED[known]:
        sets = {**placements(frame, name), **placements(frame, name, role="far")}
        digits = {"mnist": sets.pop("mnist")}
        for other, own in sets.items():
            yield "early", f"{name}: MNIST above {other}", versus(digits, {other: own}), None
    for one, two in permutations(PLAIN, 2):
        yield "winners", f"{one} above {two}", contrast(near[one], near[two]), None


def lines(frame: pd.DataFrame, known: str, options: argparse.Namespace) -> pd.DataFrame:
    """A line for each comparison on one network."""
    rows = [
        {"known": known, "observation": observation, "comparison": words, "points": round(images.value, 4),
         "images_error": round(images.error, 5), "classes_error": round(classes.error, 5),
         "classes_freedom": round(classes.freedom, 1), "rank": rank, "train": options.train, "test": options.test}
        for observation, words, (images, classes), rank in comparisons(frame, known)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--train", type=int, default=5000, help="training images to fit with")
    parser.add_argument("--test", type=int, default=2000, help="images of each test set; of far sets half as many")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    options.tables.mkdir(parents=True, exist_ok=True)
    for known in STAGED:
        path = options.tables / f"{known}.parquet"
        if not path.exists():
            frame = scored(Path(os.environ.get("OODSCOPE_DATA", ".")), known, options)
            partial = path.with_suffix(".tmp")
            frame.to_parquet(partial, compression="zstd", index=False)
            partial.replace(path)
            print(f"{known}: {len(frame)} images scored", flush=True)
    found = [lines(pd.read_parquet(options.tables / f"{known}.parquet"), known, options) for known in STAGED]
    write_text(options.output, pd.concat(found, ignore_index=True).to_csv(index=False))


if __name__ == "__main__":
    main()

"""Score tables of the trained CIFAR networks: those of the training benchmark where they exist, else our own.

    OODSCOPE_DATA=path/to/packs python benchmarks/cifar_scores.py [--id cifar10 cifar100] [--images 1000]

Pages that are given the output of ``training_table.py`` read its networks CE-0, CE-1 and CE-2. Without it the ResNet-18
beside the packs is scored by the published detectors that need no pass of their own, on at most ``--images`` images of
each set, equally many of each class, and fitted on 2,000 training images. Activations and tables lie in
``artifacts/cifar-scores``: an interrupted call goes on, and a table that is there is not made again.
"""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import oodscope as oods
from oodscope.data.imageset import ImageSet
from oodscope.detectors.registry import create_detector
from oodscope.results.scoretable import COLUMNS, ScoreTable
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable, score_benchmark
from openood_cifar import ARTIFACTS, open_benchmark, open_classifier, pack

FAR = {"svhn_test_10k": "svhn_10k", "mnist_test": "mnist", "dtd10_32": "dtd_10_classes", "sun_scenes_32": "sun_scenes"}
"""Our far sets under names of their own: they are not the published ones."""

POPULATIONS = {
    **dict.fromkeys(("cifar10", "cifar10_test", "cifar100", "tin", "dtd_10_classes", "sun_scenes"), "sampled"),
    **dict.fromkeys(("svhn_10k", "mnist"), "exhaustive"),
}
"""Digits are all the digits that there are; other classes could be others."""

DETECTORS = (
    *("msp", "temp_scaling", "mls", "ebo", "gen", "knn", "rmds", "fdbd", "relation", "vim", "nci"),
    *("openmax", "react", "scale", "ash", "dice", "she", "mds", "gradnorm"),
)
IMAGES, TRAIN = 1000, 2000
PLACE = ARTIFACTS / "cifar-scores"


def few(images: ImageSet, count: int, name: str | None = None) -> ImageSet:
    """At most so many images, the first of each class, equally many of each as far as they reach."""
    order = pd.Series(images.labels).groupby(images.labels).cumcount().to_numpy()
    rows = np.sort(np.lexsort((np.arange(len(images)), order))[: min(count, len(images))])
    return images.take(rows, name)


def open_sets(folder: Path, known: str, count: int) -> oods.Benchmark:
    """Near and far sets of one benchmark, cut to so many images each."""
    bench = open_benchmark(folder, known)
    far = tuple(few(pack(folder, file), count, name) for file, name in FAR.items())
    sets = {role: few(getattr(bench, role), count) for role in ("id_val", "id_test", "ood_val")}
    near = tuple(few(images, count) for images in bench.near)
    named = {images.name: POPULATIONS[images.name] for images in (*near, *far)}
    train = few(bench.id_train, TRAIN)
    return replace(bench, id_train=train, near=near, far=far, populations=named, **sets)


def score(folder: Path, known: str, count: int) -> ScoreTable:
    """The ResNet-18 beside the packs under every detector that needs no pass of its own."""
    bench = open_sets(folder, known, count)
    extraction = FromNetwork(
        open_classifier(folder, known, "cpu"), oods.ActivationStore(PLACE / "store"), batch_size=250
    )
    usable, _ = applicable(map(create_detector, DETECTORS), extraction, bench)
    roles = ("id_train", "id_val")
    return score_benchmark(
        extraction, bench, usable, track="default", roles=roles, context={"benchmark": known, "run": known, "seed": 0}
    )


def from_training(path: Path, known: str) -> ScoreTable:
    """The best epoch's rows of a table that ``training_table.py`` wrote; corrupted copies are left out."""
    frame = pd.read_parquet(path)
    frame = frame[(frame["kept"] == "best") & (frame["role"] != "csid")].drop(columns="kept").dropna(axis="columns")
    detectors = {name: {} for name in frame.columns if name not in COLUMNS}
    populations = {name: POPULATIONS[name] for name in frame["set"].unique() if name in POPULATIONS}
    context = {"benchmark": known, "run": path.stem, "seed": 0, "detectors": detectors, "populations": populations}
    return ScoreTable(frame.astype(dict.fromkeys(detectors, "float64")), context)


def score_tables(known: str, tables: Path | None = None, count: int = IMAGES, place: Path = PLACE) -> list[ScoreTable]:
    """A table for each network of cross-entropy training that there is."""
    trained = sorted((tables / "scores").glob("CE-[0-9].parquet")) if tables is not None else []
    if trained:
        return [from_training(path, known) for path in trained]
    path = place / f"{known}-{count}.parquet"
    if not path.exists():
        place.mkdir(parents=True, exist_ok=True)
        score(Path(os.environ["OODSCOPE_DATA"]).resolve(), known, count).save(path)
    return [ScoreTable.load(path)]


def described(tables: list[ScoreTable], known: str) -> str:
    """What was scored, in words for a page."""
    frame = tables[0].frame
    sizes = ", ".join(f"{name} {count:,}" for name, count in frame.groupby("set", sort=False).size().items())
    networks = "one network" if len(tables) == 1 else f"{len(tables)} networks of one recipe"
    return f"{known}: {networks}, {len(tables[0].detectors)} detectors; images: {sizes}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--id", nargs="*", default=["cifar10", "cifar100"])
    parser.add_argument("--images", type=int, default=IMAGES)
    options = parser.parse_args()
    for known in options.id:
        begun = time.process_time()
        tables = score_tables(known, count=options.images)
        print(described(tables, known), f"{time.process_time() - begun:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()

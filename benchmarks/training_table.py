"""Train CIFAR-10 networks by many methods, and score every detector on near and far sets: one table per network.

    OODSCOPE_DATA=path/to/packs python benchmarks/training_table.py --output FOLDER [--methods CE,ARPL] [--seeds 0,1]

Each method follows OpenOOD's recipe (100 epochs, batches of 128, learning rate .1) in bf16-mixed and keeps the epoch of
the best ID validation accuracy; the last epoch stands beside it. A network that is done is not made again, a training
that was stopped goes on, and ``--minutes`` ends the work in time, between two networks or within one. For each network
``scores/METHOD-SEED.parquet`` holds a row per test image (``kept`` says of which epoch) and a column per detector, and
``table.csv`` collects accuracy and the AUROC of near and far sets. ``cifar10_train.npz`` is looked for beside the packs
and in ``artifacts/``; packs that are not there are left out. Our far sets are not the published ones.
"""

import argparse
import copy
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score

import oodscope as oods
from oodscope.activations.store.store import ActivationStore
from oodscope.base.files import write_text
from oodscope.detectors.base import Cost
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.execution.progress import Advance
from oodscope.runs.evaluation.scoring import applicable, score_benchmark
from oodscope.training.registry import create_recipe
from oodscope.training.train import Trained, train
from openood_cifar import TRANSFORM, open_benchmark, pack

CROP = {"pad": 4, "flip": True}
METHODS = {
    "CE": ("cross_entropy", {}),
    "LogitNorm": ("logitnorm", {}),
    "T2FNorm": ("t2fnorm", {}),
    "Cutout": ("cross_entropy", {"augment": [CROP, {"kind": "cutout", "size": 16}]}),
    "RandAugment": ("cross_entropy", {"augment": [{"kind": "randaugment", "count": 1, "magnitude": 14}, CROP]}),
    "ConfBranch": ("conf_branch", {}),
    "ARPL": ("arpl", {}),
    "RegMixup": ("regmixup", {"alpha": 20.0}),
    "AugMix": ("cross_entropy", {"augment": [CROP, {"kind": "augmix", "severity": 3}]}),
    "RotPred": ("rotpred", {}),
}
FAR = {"svhn_test_10k": "svhn_10k", "mnist_test": "mnist", "dtd10_32": "dtd_10_classes", "sun_scenes_32": "sun_scenes"}


class TimeUpError(Exception):
    """The minutes are over; the training can go on in another call."""


class Watch:
    """One line for each training, and an end at a given time."""

    def __init__(self, end: float) -> None:
        self.end = end

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        def tick(done: int, remark: object = None, /) -> None:
            if time.monotonic() > self.end:
                raise TimeUpError

        yield tick


def open_sets(folder: Path, images: int | None) -> oods.Benchmark:
    """The near-OOD benchmark with the far sets that are there; ``images`` keeps so many of each set, for a try."""
    bench = open_benchmark(folder, "cifar10")
    found = {name: pack(folder, file) for file, name in FAR.items() if (folder / f"{file}.npz").exists()}
    bench = replace(bench, far=tuple(images.take(range(len(images)), name) for name, images in found.items()))
    if images is None:
        return bench

    def few(found: oods.ImageSet) -> oods.ImageSet:
        return found.take(range(min(images, len(found))))

    single = {role: few(getattr(bench, role)) for role in ("id_train", "id_val", "id_test", "ood_val")}
    return replace(bench, near=tuple(map(few, bench.near)), far=tuple(map(few, bench.far)), **single)


def build() -> torch.nn.Module:
    return oods.create_model("resnet18_32", num_classes=10)[0]


def networks(trained: Trained) -> Iterator[tuple[str, torch.nn.Module]]:
    """The network of the best epoch, and that of the last."""
    yield "best", trained.model
    if trained.last is not None:
        last = copy.deepcopy(trained.model)
        last.load_state_dict(trained.last)
        yield "last", last


def scored(method: str, trained: Trained, bench: oods.Benchmark, device: str, cheap: bool) -> pd.DataFrame:
    """Scores of all detectors that apply; of the last epoch those of MSP and of the method's own."""
    frames = []
    for kept, model in networks(trained):
        classifier = oods.Classifier(model, TRANSFORM["cifar10"], device=device, name=f"{method} ResNet-18")
        names = dict.fromkeys(["msp", *trained.recipe.detectors]) if kept == "last" else DETECTORS
        asked = [create_detector(name) for name in names]
        if cheap:
            own = trained.recipe.detectors
            asked = [each for each in asked if each.cost is not Cost.PASSES or each.name in own]
        classifier = classifier.with_default_transform(bench.transform)
        usable, _ = applicable(asked, classifier, bench)
        with tempfile.TemporaryDirectory() as folder:
            store = ActivationStore(Path(folder))
            # scores alone: intervals cost more than training does here, and are computed from the tables later
            table = score_benchmark(classifier, bench, usable, track="default", store=store, batch_size=1024)
        floats = dict.fromkeys(table.detectors, "float32")
        frames.append(table.frame.astype(floats).assign(kept=kept))
    return pd.concat(frames, ignore_index=True)


def summary(folder: Path) -> pd.DataFrame:
    """Accuracy and AUROC, percent, of every table in a folder."""
    rows = []
    for path in sorted((folder / "scores").glob("*.parquet")):
        method, _, seed = path.stem.rpartition("-")
        frame = pd.read_parquet(path)
        detectors = [name for name in frame.columns if frame[name].dtype == "float32"]
        for kept, part in frame.groupby("kept"):
            known = part[part["role"] == "id_test"]
            accuracy = 100 * float((known["label"] == known["prediction"]).mean())
            for detector in detectors:
                if part[detector].isna().any():
                    continue
                for role in ("near", "far"):
                    for name, outliers in part[part["role"] == role].groupby("set"):
                        value = 100 * area(known[detector].to_numpy(), outliers[detector].to_numpy())
                        rows.append([method, int(seed), kept, accuracy, detector, role, name, value])
    return pd.DataFrame(rows, columns=["method", "seed", "kept", "accuracy", "detector", "group", "set", "auroc"])


def area(known: np.ndarray, outliers: np.ndarray) -> float:
    return float(roc_auc_score(np.r_[np.zeros(len(known)), np.ones(len(outliers))], np.r_[known, outliers]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--precision", default="bf16-mixed")
    parser.add_argument("--images", type=int, help="images of each set, for a try")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--cheap", action="store_true", help="leave out detectors that take passes of their own")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    options.end = time.monotonic() + 60 * options.minutes
    bench = open_sets(Path(os.environ["OODSCOPE_DATA"]), options.images)
    (options.output / "scores").mkdir(parents=True, exist_ok=True)
    try:
        for method in options.methods.split(","):
            for seed in map(int, options.seeds.split(",")):
                work(method, seed, bench, options)
    except TimeUpError:
        print("the minutes are over; call again to go on")
    table = summary(options.output)
    write_text(options.output / "table.csv", table.to_csv(index=False))
    if len(table):
        shown = table[table["detector"].isin(["msp", "mls", "conf_branch", "rotpred"])]
        means = shown.groupby(["method", "seed", "kept", "detector", "group"])[["accuracy", "auroc"]].mean()
        print(means.unstack("group")["auroc"].join(means.groupby(level=[0, 1, 2, 3])["accuracy"].first()).round(2))


def work(method: str, seed: int, bench: oods.Benchmark, options: argparse.Namespace) -> None:
    """One network, from its training to its table of scores."""
    path = options.output / "scores" / f"{method}-{seed}.parquet"
    if path.exists():
        return
    name, settings = METHODS[method]
    recipe = create_recipe(name, **settings, seed=seed, epochs=options.epochs, precision=options.precision, keep="best")
    begun = time.monotonic()
    trained = train(
        build,
        recipe,
        bench.id_train,
        bench.transform,
        val=bench.id_val,
        folder=options.output / "trainings" / f"{method}-{seed}",
        device=options.device,
        progress=Watch(options.end),
    )
    between = time.monotonic()
    frame = scored(method, trained, bench, options.device, options.cheap)
    partial = path.with_suffix(".tmp")
    frame.to_parquet(partial, compression="zstd", index=False)
    partial.replace(path)
    inside = sum(epoch.seconds for epoch in trained.history)
    best = 100 * max(epoch.val_accuracy or 0 for epoch in trained.history)
    print(
        f"{method} {seed}: {inside:.0f} s in epochs, {between - begun:.0f} s to train, "
        f"{time.monotonic() - between:.0f} s to score, validation accuracy {best:.2f} %",
        flush=True,
    )


if __name__ == "__main__":
    main()

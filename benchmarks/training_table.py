"""Train CIFAR networks by many methods, and score every detector on near, far and corrupted sets: a table per network.

    OODSCOPE_DATA=path/to/packs python benchmarks/training_table.py --output FOLDER [--id cifar100] [--methods CE,ARPL]

Each method follows OpenOOD's recipe (100 epochs, batches of 128, learning rate .1) in bf16-mixed and keeps the epoch of
the best ID validation accuracy; the last epoch stands beside it. The seeds of a method are trained side by side. A
network that is done is not made again, a training that was stopped goes on, and ``--minutes`` ends the work in time;
the rows that are not run yet are named at the end. ``CE-tf32`` and ``CE-bf16`` are the paired run of two precisions.

For each network ``scores/METHOD-SEED.parquet`` holds a row per test image (``kept`` says of which epoch) and a column
per detector; ``table.csv`` collects accuracy and AUROC. ``near`` and ``far`` are against ID test images; ``fs-near``
and ``fs-far`` against those and their corrupted copies together (full spectrum); ``csid`` is ID against the copies.
Copies are made here: each image under one of the fifteen corruptions of CIFAR-C at one of five severities. Activations
stay in the memory of the device. Packs that are not there are left out. Our far sets are not the published ones.
"""

import argparse
import copy
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score

import oodscope as oods
from oodscope.activations.activations import Activations
from oodscope.activations.extract import batch_columns
from oodscope.activations.probes.probe import Probe
from oodscope.base.files import write_text
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.imageset import ImageSet
from oodscope.detectors.base import Cost
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.execution.progress import Advance
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import evaluating
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable, score_benchmark
from oodscope.training.loop.streams import Stream
from oodscope.training.registry import create_recipe
from oodscope.training.train import Trained, train_seeds
from openood_cifar import open_benchmark, pack

CROP = {"pad": 4, "flip": True}
FAR = {"svhn_test_10k": "svhn_10k", "mnist_test": "mnist", "dtd10_32": "dtd_10_classes", "sun_scenes_32": "sun_scenes"}
EXTRA = ("CE-tf32", "CE-bf16")
"""Not rows of the table: the comparison of precisions, three seeds each."""


def methods(known: str) -> dict[str, tuple[str, dict[str, object]]]:
    """Recipe and settings of each method, in the order in which they are trained."""
    square, alpha = (16, 20.0) if known == "cifar10" else (8, 10.0)
    return {
        "CE": ("cross_entropy", {}),
        "LogitNorm": ("logitnorm", {}),
        "T2FNorm": ("t2fnorm", {}),
        "Cutout": ("cross_entropy", {"augment": [CROP, {"kind": "cutout", "size": square}]}),
        "RandAugment": ("cross_entropy", {"augment": [{"kind": "randaugment", "count": 1, "magnitude": 14}, CROP]}),
        "ConfBranch": ("conf_branch", {}),
        "ARPL": ("arpl", {}),
        "RegMixup": ("regmixup", {"alpha": alpha}),
        "AugMix": ("cross_entropy", {"augment": [CROP, {"kind": "augmix", "severity": 3}]}),
        "RotPred": ("rotpred", {}),
        "CE-tf32": ("cross_entropy", {"precision": "tf32"}),
        "CE-bf16": ("cross_entropy", {"precision": "bf16-mixed"}),
    }


ROWS = {
    "cifar10": {name: (0, 1, 2) for name in methods("cifar10") if name not in EXTRA},
    "cifar100": {"CE": (0, 1, 2), **dict.fromkeys(("LogitNorm", "T2FNorm", "RotPred", "Cutout", "RegMixup"), (0,))},
}
"""The networks of each table."""


class TimeUpError(Exception):
    """The minutes are over; the training can go on in another call."""


class Watch:
    """An end at a given time."""

    def __init__(self, end: float) -> None:
        self.end = end

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        def tick(done: int, remark: object = None, /) -> None:
            if time.monotonic() > self.end:
                raise TimeUpError

        yield tick


def corrupted(images: ImageSet, device: str) -> ImageSet:
    """Each image under one corruption at one severity; all pairs equally often, by rows."""
    names = [name for name, each in CORRUPTIONS.items() if each.group == "c"]
    pixels = torch.from_numpy(np.stack(images.images(range(len(images))))).permute(0, 3, 1, 2).to(device)
    rows, found = np.arange(len(images)), torch.empty_like(pixels)
    for number, name in enumerate(names):
        chosen = rows[rows % len(names) == number]
        severity = 1 + (chosen // len(names)) % 5
        found[chosen] = corrupt_batch(pixels[chosen], name, severity, keys=chosen)
    made = found.permute(0, 2, 3, 1).cpu().numpy()
    return ImageSet.from_arrays("corrupted", made, images.labels, images.class_names)


def open_sets(folder: Path, known: str, images: int | None, device: str) -> oods.Benchmark:
    """Near-OOD benchmark, far sets and corrupted images; ``images`` keeps so many of each set, for a try."""
    bench = open_benchmark(folder, known)
    if known == "cifar100" and (folder / "cifar100_train_rest_25k.npz").exists():
        halves = [bench.id_train, pack(folder, "cifar100_train_rest_25k")]
        pixels = np.concatenate([np.stack(each.images(range(len(each)))) for each in halves])
        labels = np.concatenate([each.labels for each in halves])
        bench = replace(bench, id_train=ImageSet.from_arrays("id_train", pixels, labels, bench.id_train.class_names))

    def few(found: ImageSet, name: str | None = None) -> ImageSet:
        return found.take(range(min(images or len(found), len(found))), name)

    far = tuple(few(pack(folder, file), name) for file, name in FAR.items() if (folder / f"{file}.npz").exists())
    single = {role: few(getattr(bench, role)) for role in ("id_train", "id_val", "id_test", "ood_val")}
    csid = (corrupted(single["id_test"], device),)
    return replace(bench, near=tuple(map(few, bench.near)), far=far, csid=csid, **single)


class InMemory(FromNetwork):
    """Activations that stay on the device: nothing is written, moved or hashed between network and detectors."""

    def __init__(self, classifier: Classifier, streams: dict[str, Stream]) -> None:
        super().__init__(classifier)
        self.streams, self.columns = streams, {}

    def extract(self, images: ImageSet, probes: Iterable[Probe]) -> Activations:
        known = self.columns.setdefault(images.name, {})
        missing = [each for each in dict.fromkeys(probes) if each.column not in known]
        if not known or missing:
            if images.name not in self.streams:
                self.streams[images.name] = Stream(images, self.classifier.transform, self.classifier.device)
            stream = self.streams[images.name]
            with evaluating(self.classifier.model):
                parts = [
                    batch_columns(self.classifier, batch.images, not known, missing) for batch in stream.walk(1024)
                ]
            known.update({name: torch.cat([part[name] for part in parts]) for name in parts[0]})
        rest = {name: values for name, values in known.items() if name not in ("logits", "features")}
        plain = {name: known.get(name) for name in ("logits", "features")}
        return Activations(**plain, labels=images.labels, head=self.classifier.head, columns=rest)


def networks(trained: Trained) -> Iterator[tuple[str, torch.nn.Module]]:
    """The network of the best epoch, and that of the last."""
    yield "best", trained.model
    if trained.last is not None:
        last = copy.deepcopy(trained.model)
        last.load_state_dict(trained.last)
        yield "last", last


def scored(trained: Trained, bench: oods.Benchmark, options: argparse.Namespace) -> pd.DataFrame:
    """Scores of all detectors that apply; of the last epoch those of MSP and of the method's own."""
    frames = []
    for kept, model in networks(trained):
        classifier = Classifier(model, bench.transform, device=options.device, name="ResNet-18")
        own = dict.fromkeys(["msp", *trained.recipe.detectors])
        names = own if kept == "last" else dict.fromkeys([*own, *options.detectors])
        asked = [create_detector(name) for name in names]
        if options.cheap:
            asked = [each for each in asked if each.cost is not Cost.PASSES or each.name in own]
        extraction = InMemory(classifier, options.streams)
        usable, _ = applicable(asked, extraction, bench)
        # scores alone: intervals cost more than training does here, and are computed from the tables later
        table = score_benchmark(extraction, bench, usable, track="default")
        frames.append(table.frame.astype(dict.fromkeys(table.detectors, "float32")).assign(kept=kept))
    return pd.concat(frames, ignore_index=True)


def summary(folder: Path) -> pd.DataFrame:
    """Accuracy and AUROC, percent, of every table in a folder."""
    rows = []
    for path in sorted((folder / "scores").glob("*.parquet")):
        method, _, seed = path.stem.rpartition("-")
        frame = pd.read_parquet(path)
        detectors = [name for name in frame.columns if frame[name].dtype == "float32"]
        for kept, part in frame.groupby("kept"):
            known, shifted = part[part["role"] == "id_test"], part[part["role"] == "csid"]
            accuracies = [100 * float((each["label"] == each["prediction"]).mean()) for each in (known, shifted)]
            for detector in detectors:
                if part[detector].isna().any():
                    continue
                both = pd.concat([known, shifted])
                pairs = [("near", "near", known), ("far", "far", known), ("csid", "csid", known)]
                pairs += [("fs-near", "near", both), ("fs-far", "far", both)] if len(shifted) else []
                for group, role, negatives in pairs:
                    for name, outliers in part[part["role"] == role].groupby("set"):
                        value = 100 * area(negatives[detector].to_numpy(), outliers[detector].to_numpy())
                        rows.append([method, int(seed), kept, *accuracies, detector, group, name, value])
    columns = ["method", "seed", "kept", "accuracy", "csid_accuracy", "detector", "group", "set", "auroc"]
    return pd.DataFrame(rows, columns=columns)


def area(known: np.ndarray, outliers: np.ndarray) -> float:
    return float(roc_auc_score(np.r_[np.zeros(len(known)), np.ones(len(outliers))], np.r_[known, outliers]))


def work(method: str, seeds: list[int], bench: oods.Benchmark, options: argparse.Namespace) -> None:
    """The networks of one method, from their trainings to their tables of scores."""
    paths = {seed: options.output / "scores" / f"{method}-{seed}.parquet" for seed in seeds}
    todo = [seed for seed, path in paths.items() if not path.exists()]
    if not todo:
        return
    name, settings = methods(options.id)[method]
    recipe = create_recipe(name, **{"precision": options.precision, **settings}, epochs=options.epochs, keep="best")
    classes = len(bench.id_train.class_names)

    def build() -> torch.nn.Module:
        return oods.create_model(options.network, num_classes=classes)[0]

    begun = time.monotonic()
    trained = train_seeds(
        [build] * len(todo),
        recipe,
        todo,
        bench.id_train,
        bench.transform,
        val=bench.id_val,
        folders=[options.output / "trainings" / f"{method}-{seed}" for seed in todo],
        device=options.device,
        progress=Watch(options.end),
    )
    print(f"{method} {todo}: {time.monotonic() - begun:.0f} s to train", flush=True)
    for seed, each in zip(todo, trained):
        between = time.monotonic()
        partial = paths[seed].with_suffix(".tmp")
        scored(each, bench, options).to_parquet(partial, compression="zstd", index=False)
        partial.replace(paths[seed])
        best = 100 * max(epoch.val_accuracy or 0 for epoch in each.history)
        print(
            f"{method} {seed}: {time.monotonic() - between:.0f} s to score, validation accuracy {best:.2f} %",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--id", choices=list(ROWS), default="cifar10")
    parser.add_argument("--methods", help="separated by commas; by default all rows of the table")
    parser.add_argument("--seeds", help="by default those of the table")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--precision", default="bf16-mixed")
    parser.add_argument("--network", default="resnet18_32")
    parser.add_argument("--detectors", default=",".join(DETECTORS))
    parser.add_argument("--images", type=int, help="images of each set, for a try")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--cheap", action="store_true", help="leave out detectors that take passes of their own")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    options.end, options.streams = time.monotonic() + 60 * options.minutes, {}
    options.detectors = options.detectors.split(",")
    rows = dict(ROWS[options.id])
    if options.methods:
        rows = {name: rows.get(name, (0, 1, 2)) for name in options.methods.split(",")}
    if options.seeds:
        rows = {name: tuple(map(int, options.seeds.split(","))) for name in rows}
    bench = open_sets(Path(os.environ["OODSCOPE_DATA"]), options.id, options.images, options.device)
    (options.output / "scores").mkdir(parents=True, exist_ok=True)
    try:
        for method, seeds in rows.items():
            work(method, list(seeds), bench, options)
    except TimeUpError:
        print("the minutes are over; call again to go on")
    table = summary(options.output)
    write_text(options.output / "table.csv", table.to_csv(index=False))
    done = {path.stem for path in (options.output / "scores").glob("*.parquet")}
    missing = [f"{m} {seed}" for m, seeds in rows.items() for seed in seeds if f"{m}-{seed}" not in done]
    print(f"not yet run: {', '.join(missing) or 'nothing'}")
    if len(table):
        shown = table[table["detector"].isin(["msp", "mls", "conf_branch", "rotpred"])]
        means = shown.groupby(["method", "seed", "kept", "detector", "group"])[["accuracy", "auroc"]].mean()
        print(means.unstack("group")["auroc"].join(means.groupby(level=[0, 1, 2, 3])["accuracy"].first()).round(2))


if __name__ == "__main__":
    main()

"""Outlier exposure on generated outliers, beside plain-GAN samples, real outliers and none: four arms, three seeds.

A fifth arm is the control: exposed to held-out ID images, a network must become less sure of ID test images.

    OODSCOPE_DATA=path/to/packs python benchmarks/generated_exposure.py cifar10 --sets WORK/cifar10 --output CELLS
    OODSCOPE_DATA=path/to/packs python benchmarks/generated_exposure.py mnist --sets WORK/mnist --output CELLS \\
        --train mnist_train.npz --fashion fashion_test.npz --train-images 20000 --epochs 5
    python benchmarks/generated_exposure.py --page CELLS [--write docs/results/generated-exposure.md]

``--sets`` holds the folders ``near``, ``plain`` and ``recombined`` that ``generated_study.py`` wrote. Every arm trains
the same network by the same recipe with as many outliers; a cell (data set, arm, seed) is one JSON file, and a finished
one is not trained again. CIFAR-10: ResNet-18, real outliers are the Tiny ImageNet images of OpenOOD's validation list;
tested on CIFAR-100, Tiny ImageNet and SVHN. MNIST: the small network, real outliers are five classes of Fashion-MNIST;
tested on the other five, on SVHN and on textures, both grey. Both are tested on the generated near set and on images
laid of patches too. What comes from the data, or the generator, that an arm was shown is no test of it: struck.
"""

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch

import oodscope as oods
from generated_exposure_page import ARMS, CONTROL, DATASETS, SEEDS, STRUCK, page
from generated_sets import load_pack, open_sets
from oodscope.base.files import write_text
from oodscope.data.generated.files import open_generated
from oodscope.data.generated.record import read_generated
from oodscope.execution.console import ConsoleProgress
from oodscope.generation.sets.ensemble import build_member
from oodscope.generation.sets.pool import frame_of
from openood_cifar import TRANSFORM, drawn, open_benchmark, pack

GENERATED = ("near", "recombined")
"""Generated sets to test on."""

DETECTORS = ("msp", "ebo")
RATE, BATCH = 0.1, 128
"""Learning rate, and images of a step: of the known ones and, beside them, as many outliers."""


def outliers(arm: str, bench: oods.Benchmark, folder: Path, count: int) -> oods.ImageSet | None:
    """What an arm is exposed to: as many images in every arm."""
    if arm == "none":
        return None
    if arm in ("real", CONTROL):
        images = bench.ood_val if arm == "real" else bench.id_val
        assert images is not None
    else:
        made = open_generated(folder / ("near" if arm == "generated near" else "plain"))
        pixels = np.stack(made.images(range(len(made))))
        images = oods.ImageSet.from_arrays("ood_train", pixels)
    return drawn(images, min(count, len(images))).take(np.arange(min(count, len(images))), "ood_train")


def recipe_of(arm: str, seed: int, options: argparse.Namespace) -> oods.Recipe:
    """How an arm is trained: as all others, and with as many outliers as known images in a step where it has some.

    The rate of outlier exposure by default is that of fine-tuning; from scratch every arm learns at the same.
    """
    digits = options.dataset == "mnist"
    shared: dict[str, Any] = {
        "epochs": options.epochs,
        "seed": seed,
        "augment": {"pad": 2 if digits else 4, "flip": not digits},
        "warmup_epochs": min(1, options.epochs - 1),
        "learning_rate": RATE,
        "batch_size": BATCH,
    }
    if torch.cuda.is_available() and options.device != "cpu":
        shared["precision"] = "bf16-mixed"
    if arm == "none":
        return oods.create_recipe("cross_entropy", **shared)
    return oods.create_recipe("outlier_exposure", **shared, ood_batch_size=BATCH)


def trained(arm: str, seed: int, bench: oods.Benchmark, options: argparse.Namespace) -> oods.Classifier:
    """The network of one arm and seed."""
    shown = outliers(arm, bench, options.sets, options.outliers)

    def network() -> torch.nn.Module:
        return build_member("small_cnn" if options.dataset == "mnist" else "resnet18_32", 10, len(bench.transform.mean))

    folder = options.output / "trainings" / f"{options.dataset}-{arm.replace(' ', '-')}-{seed}"
    done = oods.train(
        network, recipe_of(arm, seed, options), bench.id_train, bench.transform, ood_train=shown, folder=folder,
        device=options.device, progress=ConsoleProgress(),
    )  # fmt: skip
    return oods.Classifier(done.model, bench.transform, device=options.device, name=f"{arm} {seed}")


def measured(arm: str, seed: int, bench: oods.Benchmark, options: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    network = trained(arm, seed, bench, options)
    result = oods.evaluate(network, bench, list(DETECTORS), intervals="none")
    tested = {each.name for each in (*bench.near, *bench.far)}
    tested -= {place for other, place in STRUCK if other == arm}
    rows = [row for row in result.measurements.filter(protocol="standard", metric="auroc") if row.set in tested]
    (accuracy,) = {row.value for row in result.measurements.filter(metric="accuracy")} or {float("nan")}
    return {
        "dataset": options.dataset,
        "arm": arm,
        "seed": seed,
        "accuracy": accuracy,
        "auroc": {f"{row.detector} {row.set}": row.value for row in rows},
        # smaller = surer of them
        "msp of ID test": float(np.mean(result.scores.scores("msp", role="id_test"))),
        "outliers": options.outliers,
        "made": made(options.sets / "near"),
        "training images": len(bench.id_train or ()),
        "date": str(date.today()),
        "epochs": options.epochs,
        "learning rate": RATE,
        "seconds": round(time.perf_counter() - began, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} cores",
    }


def made(folder: Path) -> dict[str, Any]:
    """How the generated near set was made: what the page tells of it."""
    recipe = read_generated(folder).recipe
    gan = {key: recipe["recipe"][key] for key in ("network", "steps", "fine_steps", "batch_size")}
    return {
        **gan,
        "lambdas": recipe["lambdas"],
        "window": recipe["window"],
        "seen": recipe["class seen by the ensemble"],
    }


def open_cifar10(options: argparse.Namespace) -> oods.Benchmark:
    """CIFAR-10 with its near sets, and SVHN as the far one."""
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    whole, limit = open_benchmark(folder, "cifar10"), options.limit
    return oods.Benchmark(
        name="cifar10",
        version="openood-1.5",
        transform=TRANSFORM["cifar10"],
        id_train=drawn(whole.id_train, limit or options.train_images),
        id_val=drawn(whole.id_val, limit),
        id_test=drawn(whole.id_test, limit),
        near=(*(drawn(each, limit) for each in whole.near), *made_sets(options)),
        far=(drawn(pack(folder, "svhn_test_10k").take(np.arange(10_000), "svhn"), limit),),
        ood_val=whole.ood_val,
    )


def made_sets(options: argparse.Namespace) -> tuple[oods.ImageSet, ...]:
    """The generated sets to test on, as many images as asked for."""
    opened = [(name, open_generated(options.sets / name)) for name in GENERATED]
    arrays = [(name, np.stack(made.images(range(len(made))))) for name, made in opened]
    return tuple(drawn(oods.ImageSet.from_arrays(name, pixels), options.limit) for name, pixels in arrays)


def open_mnist(options: argparse.Namespace) -> oods.Benchmark:
    """MNIST; half of Fashion-MNIST's classes to be shown, the other half, grey digits of SVHN and textures to test."""
    sets = open_sets(options)
    (clothes,) = sets.far
    folder, pixels = Path(os.environ["OODSCOPE_DATA"]).resolve(), np.stack(clothes.images(range(len(clothes))))

    def grey(name: str, place: str) -> oods.ImageSet:
        images, _ = load_pack(folder, place)
        return oods.ImageSet.from_arrays(name, images[:, 2:30, 2:30].mean(axis=-1).astype(np.uint8))

    shown = clothes.labels < 5
    return oods.Benchmark(
        name="mnist",
        version="1",
        transform=frame_of(sets.train),
        id_train=drawn(sets.train, options.limit),
        id_val=drawn(sets.val, options.limit),
        id_test=drawn(sets.test, options.limit),
        near=made_sets(options),
        far=tuple(
            drawn(each, options.limit)
            for each in (
                oods.ImageSet.from_arrays("clothes", pixels[~shown]),
                grey("svhn", "svhn_test_10k"),
                grey("textures", "dtd10_32"),
            )
        ),
        ood_val=oods.ImageSet.from_arrays("ood_val", pixels[shown]),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", choices=DATASETS)
    parser.add_argument("--sets", type=Path, help="folder with the sets near and plain")
    parser.add_argument("--output", type=Path, help="folder of the cells")
    parser.add_argument("--page", type=Path, help="make the page of these cells instead")
    parser.add_argument("--write", type=Path, help="where the page goes; printed unless given")
    parser.add_argument("--train", type=Path, help="pack of MNIST's training images")
    parser.add_argument("--fashion", type=Path, help="pack of Fashion-MNIST's test images")
    parser.add_argument("--train-images", type=int, help="so many training images; all unless given")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--outliers", type=int, default=1000)
    parser.add_argument("--limit", type=int, help="so many images of every set, to try it out")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    options.small = False
    if options.page is not None:
        text = page(options.page)
        print(text) if options.write is None else write_text(options.write, text)
        return 0
    if options.dataset is None or options.sets is None or options.output is None:
        parser.error("name a data set, --sets and --output; or --page CELLS")
    began = time.time()
    bench = (open_mnist if options.dataset == "mnist" else open_cifar10)(options)
    for seed in SEEDS:
        for arm in (*ARMS, CONTROL):
            path = options.output / f"{options.dataset}-{arm.replace(' ', '-')}-{seed}.json"
            if path.exists():
                continue
            if time.time() - began > 60 * options.minutes:
                print("out of time: the same command goes on")
                return 0
            found = measured(arm, seed, bench, options)
            write_text(path, json.dumps(found) + "\n")
            print(f"{arm}, seed {seed}: {found['auroc']}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

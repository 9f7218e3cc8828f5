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
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t

import oodscope as oods
from evg_cells import read
from generated_sets import load_pack, open_sets
from oodscope.base.files import write_text
from oodscope.data.generated.files import open_generated
from oodscope.execution.console import ConsoleProgress
from oodscope.generation.sets.ensemble import build_member
from oodscope.generation.sets.pool import frame_of
from openood_cifar import TRANSFORM, drawn, open_benchmark, pack

DATASETS = ("cifar10", "mnist")
COMMAND = "python benchmarks/generated_exposure.py DATASET --sets WORK/DATASET --output CELLS --minutes 20"
ARMS = ("none", "plain GAN", "generated near", "real")
CONTROL = "held-out ID"
GENERATED = ("near", "recombined")
"""Generated sets to test on."""

STRUCK = {
    **dict.fromkeys((("generated near", "near"), ("plain GAN", "near")), "the generator whose images were shown"),
    **dict.fromkeys((("real", "clothes"), ("real", "tin")), "the data set whose images were shown"),
}
"""Arms and sets that say nothing of each other, and what they share."""
SEEDS = (0, 1, 2)
DETECTORS = ("msp", "ebo")

Cell = dict[str, Any]


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


def trained(arm: str, seed: int, bench: oods.Benchmark, options: argparse.Namespace) -> oods.Classifier:
    """The network of one arm and seed."""
    shown = outliers(arm, bench, options.sets, options.outliers)
    name = "cross_entropy" if shown is None else "outlier_exposure"
    digits = options.dataset == "mnist"
    shared = {"epochs": options.epochs, "seed": seed, "augment": {"pad": 2 if digits else 4, "flip": not digits}}
    shared["warmup_epochs"] = min(1, options.epochs - 1)
    if torch.cuda.is_available() and options.device != "cpu":
        shared["precision"] = "bf16-mixed"
    recipe = oods.create_recipe(name, **shared)

    def network() -> torch.nn.Module:
        return build_member("small_cnn" if digits else "resnet18_32", 10, len(bench.transform.mean))

    folder = options.output / "trainings" / f"{options.dataset}-{arm.replace(' ', '-')}-{seed}"
    done = oods.train(
        network, recipe, bench.id_train, bench.transform, ood_train=shown, folder=folder,
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
        "training images": len(bench.id_train or ()),
        "date": str(date.today()),
        "epochs": options.epochs,
        "seconds": round(time.perf_counter() - began, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "processor",
    }


def pooled(found: dict[str, list[float]]) -> tuple[float, int]:
    """Standard deviation over seeds, pooled over the arms, and its degrees of freedom."""
    squares = [float(np.var(values, ddof=1)) * (len(values) - 1) for values in found.values() if len(values) > 1]
    degrees = sum(len(values) - 1 for values in found.values() if len(values) > 1)
    return (float(np.sqrt(sum(squares) / degrees)), degrees) if degrees else (float("nan"), 0)


def sentence(found: dict[str, list[float]], one: str, two: str, where: str) -> str:
    """Whether one arm is better than another, by t with the seed variance pooled over all arms."""
    deviation, degrees = pooled(found)
    if len(found.get(one, ())) < 2 or len(found.get(two, ())) < 2 or degrees < 3:
        return f"- {one} against {two}, {where}: cannot say (a training needs several seeds)."
    apart = float(np.mean(found[one]) - np.mean(found[two]))
    noise = deviation * np.sqrt(1 / len(found[one]) + 1 / len(found[two]))
    half = float(t.ppf(0.975, degrees)) * noise
    answer = "better" if apart > half else "worse" if apart < -half else "cannot say"
    ends = f"[{100 * (apart - half):+.1f}, {100 * (apart + half):+.1f}]"
    return f"- {one} against {two}, {where}: {100 * apart:+.1f} points {ends}: {answer}."


def answer(cells: Sequence[Cell], dataset: str) -> tuple[str, list[str]]:
    """What the generated near arm does against the others by energy, in one sentence, and pair by pair."""
    columns = sorted({key for cell in cells for key in cell["auroc"]})
    said = [
        sentence(by_arm(cells, key), "generated near", other, key)
        for key in columns
        for other in ("none", "plain GAN", "real")
        if key.startswith("ebo") and not any(is_struck(arm, key) for arm in ("generated near", other))
    ]
    counts = {word: sum(f": {word}" in each for each in said) for word in ("better", "worse", "cannot say")}
    words = ", ".join(f"{word} in {count}" for word, count in counts.items())
    return (
        f"{dataset}, generated near against each other arm, energy: {words} of {len(said)} pairs of arm and set.",
        said,
    )


def is_struck(arm: str, column: str) -> bool:
    """Whether a set, the end of a column's name, comes from what an arm was shown."""
    return (arm, column.split(" ", 1)[1]) in STRUCK


def by_arm(cells: Sequence[Cell], column: str) -> dict[str, list[float]]:
    """AUROCs of every seed of every arm that may be tested on it."""
    arms = [arm for arm in (*ARMS, CONTROL) if not is_struck(arm, column)]
    return {arm: [cell["auroc"][column] for cell in cells if cell["arm"] == arm] for arm in arms}


def control(cells: Sequence[Cell]) -> str:
    """Whether what is shown as an outlier reaches the loss: shown ID images, a network must be less sure of others."""
    found = {
        arm: [cell["msp of ID test"] for cell in cells if cell["arm"] == arm and "msp of ID test" in cell]
        for arm in (*ARMS, CONTROL)
    }
    deviation, degrees = pooled(found)
    if min(len(found["none"]), len(found[CONTROL])) < 2 or degrees < 3:
        return f"- Control ({CONTROL} against none): cannot say (a training needs several seeds)."
    apart = float(np.mean(found[CONTROL]) - np.mean(found["none"]))
    half = float(t.ppf(0.975, degrees)) * deviation * np.sqrt(1 / len(found[CONTROL]) + 1 / len(found["none"]))
    word = "as it must: what is shown reaches the loss" if apart > half else "NOT as it must"
    return (
        f"- Control: exposed to held-out ID images, the mean MSP score of ID test images rises by {apart:+.3f} "
        f"[{apart - half:+.3f}, {apart + half:+.3f}] against none: {word}."
    )


def spared(cells: Sequence[Cell]) -> list[str]:
    """What exposure costs in accuracy, arm by arm."""
    found = {arm: [cell["accuracy"] for cell in cells if cell["arm"] == arm] for arm in (*ARMS, CONTROL)}
    lines = [sentence(found, arm, "none", "accuracy") for arm in found if arm != "none" and found[arm]]
    return [line.replace(" against none, accuracy:", ", accuracy against none:") for line in lines]


def section(cells: Sequence[Cell], dataset: str) -> list[str]:
    """One data set: the table, pair by pair, and what was not run."""
    columns = sorted({key for cell in cells for key in cell["auroc"]})
    sizes = " or ".join(f"{count:,}" for count in sorted({cell["training images"] for cell in cells}))
    shown, epochs = ({cell[key] for cell in cells} for key in ("outliers", "epochs"))
    lines = [
        f"## {dataset}",
        "",
        f"{sizes} training images, {', '.join(map(str, sorted(epochs)))} epochs, {', '.join(map(str, sorted(shown)))} "
        "outliers in every arm. AUROC in percent, mean over seeds ± standard deviation pooled over arms.",
        "",
        "| arm | seeds | accuracy | " + " | ".join(columns) + " |",
        "| --- |" + " ---: |" * (len(columns) + 2),
    ]
    for arm in (*ARMS, CONTROL):
        own = [cell for cell in cells if cell["arm"] == arm]
        if not own:
            lines.append(f"| {arm} | 0 | not run |" + " |" * len(columns))
            continue
        found = [by_arm(cells, key) for key in columns]
        values = [
            f"{100 * np.mean(each[arm]):.1f} ± {100 * pooled(each)[0]:.1f}" if arm in each else "struck"
            for each in found
        ]
        accuracy = f"{100 * np.mean([cell['accuracy'] for cell in own]):.1f}"
        lines.append(f"| {arm} | {len(own)} | {accuracy} | " + " | ".join(values) + " |")
    shared = "; ".join(
        f"{arm} on {place}: {what}"
        for (arm, place), what in STRUCK.items()
        if any(key.endswith(f" {place}") for key in columns)
    )
    lines += ["", f"Struck, because a test would share it: {shared or 'nothing'}.", ""]
    return [*lines, *answer(cells, dataset)[1], *spared(cells), control(cells), ""]


def absent(cells: Sequence[Cell]) -> list[tuple[str, int]]:
    """Arms and seeds of one data set that were not trained."""
    done = {(cell["arm"], cell["seed"]) for cell in cells}
    return [(arm, seed) for arm in (*ARMS, CONTROL) for seed in SEEDS if (arm, seed) not in done]


def page(folder: Path) -> str:
    """The page, from the cells alone: a folder of them, or a file with one in each line."""
    cells = read(folder)
    named = {name: [cell for cell in cells if cell["dataset"] == name] for name in DATASETS}
    question = "Do generated near outliers help as outlier exposure, beside plain-GAN samples, real outliers and none?"
    answers = [answer(own, name)[0] for name, own in named.items() if own]
    machines, days = (", ".join(sorted({cell[key] for cell in cells})) or "none yet" for key in ("device", "date"))
    lines = ["# Outlier exposure on generated outliers", "", f"**Question.** {question}", ""]
    lines += [f"**Answer.** {' '.join(answers) or 'Cannot say yet: no arm was trained.'}", ""]
    lines += [f"**Command.** `{COMMAND}`", "", f"**Machine.** {machines}. **Date.** {days}.", ""]
    lines += [
        "Statements are about other trainings of the same recipe on these sets: t with the variance over seeds pooled "
        "over the arms, each pair by itself at 95 %.",
        "",
    ]
    for name, own in named.items():
        if own:
            lines += section(own, name)
    missing = {name: absent(own) for name, own in named.items() if absent(own)}
    if missing:
        every = len(SEEDS) * len((*ARMS, CONTROL))
        words = [
            f"{name}: {'all' if len(gone) == every else ', '.join(f'{arm} {seed}' for arm, seed in gone)}"
            for name, gone in missing.items()
        ]
        count = sum(len(gone) for gone in missing.values())
        lines += [f"**Not run yet** ({count} trainings): {'; '.join(words)}. Go on with `{COMMAND}`.", ""]
    return "\n".join([*lines, *DIFFERS]) + "\n"


DIFFERS = (
    "## What differs from the paper",
    "",
    "- The paper's appendix with this experiment is not in the text at hand: arms, tests and sizes are our own.",
    "- ResNet-18 on CIFAR-10 at 32 px and a small network on MNIST, trained with outliers from the first step on.",
    "- Real outliers are 1,000 images (Tiny ImageNet's validation list, or five classes of Fashion-MNIST), so every "
    "arm has that many.",
)


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

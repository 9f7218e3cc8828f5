"""Outlier exposure on generated outliers, beside plain-GAN samples, real outliers and none: CIFAR-10, three seeds.

    OODSCOPE_DATA=path/to/packs python benchmarks/generated_exposure.py --sets WORK/cifar10 --output CELLS --minutes 20
    python benchmarks/generated_exposure.py --page CELLS [--write docs/results/generated-exposure.md]

``--sets`` holds the folders ``near`` and ``plain`` that ``generated_study.py`` wrote. Real outliers are the Tiny
ImageNet images of OpenOOD's validation list, of which none is tested. Every arm trains the same ResNet-18 by the same
recipe with as many outliers; a cell (arm, seed) is one JSON file, and a finished one is not trained again. Tested: MSP
and energy on CIFAR-100, Tiny ImageNet and SVHN.
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
from scipy.stats import t

import oodscope as oods
from oodscope.base.files import write_text
from oodscope.data.generated.files import open_generated
from oodscope.execution.console import ConsoleProgress
from oodscope.models.zoo.zoo import create_model
from openood_cifar import TRANSFORM, drawn, open_benchmark, pack

ARMS = ("none", "plain GAN", "generated near", "real")
SEEDS = (0, 1, 2)
DETECTORS = ("msp", "ebo")


def outliers(arm: str, bench: oods.Benchmark, folder: Path, count: int) -> oods.ImageSet | None:
    """What an arm is exposed to: as many images in every arm."""
    if arm == "none":
        return None
    if arm == "real":
        assert bench.ood_val is not None
        images = bench.ood_val
    else:
        made = open_generated(folder / ("near" if arm == "generated near" else "plain"))
        pixels = np.stack(made.images(range(len(made))))
        images = oods.ImageSet.from_arrays("ood_train", pixels)
    return drawn(images, min(count, len(images))).take(np.arange(min(count, len(images))), "ood_train")


def trained(arm: str, seed: int, bench: oods.Benchmark, options: argparse.Namespace) -> oods.Classifier:
    """The network of one arm and seed."""
    shown = outliers(arm, bench, options.sets, options.outliers)
    name = "cross_entropy" if shown is None else "outlier_exposure"
    shared = {"epochs": options.epochs, "seed": seed, "augment": {"pad": 4, "flip": True}}
    if torch.cuda.is_available() and options.device != "cpu":
        shared["precision"] = "bf16-mixed"
    recipe = oods.create_recipe(name, **shared)

    def resnet18_32() -> torch.nn.Module:
        return create_model("resnet18_32", num_classes=10)[0]

    folder = options.output / "trainings" / f"{arm.replace(' ', '-')}-{seed}"
    done = oods.train(
        resnet18_32, recipe, bench.id_train, TRANSFORM["cifar10"], ood_train=shown, folder=folder,
        device=options.device, progress=ConsoleProgress(),
    )  # fmt: skip
    return oods.Classifier(done.model, TRANSFORM["cifar10"], device=options.device, name=f"{arm} {seed}")


def measured(arm: str, seed: int, bench: oods.Benchmark, options: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    network = trained(arm, seed, bench, options)
    result = oods.evaluate(network, bench, list(DETECTORS), intervals="none")
    rows = result.measurements.filter(protocol="standard", metric="auroc")
    (accuracy,) = {row.value for row in result.measurements.filter(metric="accuracy")} or {float("nan")}
    return {
        "arm": arm,
        "seed": seed,
        "accuracy": accuracy,
        "auroc": {f"{row.detector} {row.set}": row.value for row in rows},
        "outliers": options.outliers,
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


def page(folder: Path) -> str:
    """The page, from the cells alone."""
    cells = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    columns = sorted({key for cell in cells for key in cell["auroc"]})
    question = "Do generated near outliers help as outlier exposure, beside plain-GAN samples, real outliers and none?"
    lines = ["# Outlier exposure on generated outliers", "", f"**Question.** {question}", ""]
    by_column = {
        key: {arm: [cell["auroc"][key] for cell in cells if cell["arm"] == arm] for arm in ARMS} for key in columns
    }
    said = [
        sentence(by_column[key], "generated near", other, key)
        for key in columns
        for other in ("none", "plain GAN", "real")
        if key.startswith("ebo")
    ]
    counts = {word: sum(each.endswith(f": {word}.") for each in said) for word in ("better", "worse", "cannot say")}
    answer = ", ".join(f"{word} in {count}" for word, count in counts.items()) if cells else "not run yet"
    lines += [
        f"**Answer.** Generated near against the other arms, energy on three sets: {answer} of {len(said)} pairs.",
        "",
    ]
    machines = ", ".join(sorted({cell["device"] for cell in cells})) or "none yet"
    lines += [
        "**Command.** `python benchmarks/generated_exposure.py --sets WORK/cifar10 --output CELLS --minutes 20`",
        "",
    ]
    lines += [f"**Machine.** {machines}. **Date.** {date.today()}.", ""]
    lines += ["AUROC in percent, mean over seeds ± standard deviation pooled over arms.", ""]
    lines += ["| arm | seeds | accuracy | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * (len(columns) + 2)]
    for arm in ARMS:
        own = [cell for cell in cells if cell["arm"] == arm]
        if not own:
            lines.append(f"| {arm} | 0 | not run |" + " |" * len(columns))
            continue
        values = [
            f"{100 * np.mean(by_column[key][arm]):.1f} ± {100 * pooled(by_column[key])[0]:.1f}" for key in columns
        ]
        accuracy = f"{100 * np.mean([cell['accuracy'] for cell in own]):.1f}"
        lines.append(f"| {arm} | {len(own)} | {accuracy} | " + " | ".join(values) + " |")
    lines += ["", *said, ""]
    missing = [
        f"{arm} {seed}" for arm in ARMS for seed in SEEDS if (arm, seed) not in {(c["arm"], c["seed"]) for c in cells}
    ]
    lines += [f"**Not run yet**: {', '.join(missing)}." if missing else "All arms were run.", ""]
    lines += [
        "## What differs from the paper",
        "",
        "- ResNet-18 on CIFAR-10 at 32 px; the paper's appendix uses other networks and its own generators.",
        "- Real outliers are 1,000 Tiny ImageNet images (the validation list), so every arm has that many.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, help="folder with the sets near and plain")
    parser.add_argument("--output", type=Path, help="folder of the cells")
    parser.add_argument("--page", type=Path, help="make the page of these cells instead")
    parser.add_argument("--write", type=Path, help="where the page goes; printed unless given")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--outliers", type=int, default=1000)
    parser.add_argument("--limit", type=int, help="so many images of every set, to try it out")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if options.page is not None:
        text = page(options.page)
        print(text) if options.write is None else options.write.write_text(text, encoding="utf-8")
        return 0
    began, folder = time.time(), Path(os.environ["OODSCOPE_DATA"]).resolve()
    whole = open_benchmark(folder, "cifar10")
    limit = options.limit
    bench = oods.Benchmark(
        name="cifar10",
        version="openood-1.5",
        transform=TRANSFORM["cifar10"],
        id_train=drawn(whole.id_train, limit),
        id_val=drawn(whole.id_val, limit),
        id_test=drawn(whole.id_test, limit),
        near=tuple(drawn(each, limit) for each in whole.near),
        far=(drawn(pack(folder, "svhn_test_10k").take(np.arange(10_000), "svhn"), limit),),
        ood_val=whole.ood_val,
    )
    for seed in SEEDS:
        for arm in ARMS:
            path = options.output / f"{arm.replace(' ', '-')}-{seed}.json"
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

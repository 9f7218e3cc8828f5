"""How many images a second the trainer takes: plain, recorded, compiled, several seeds at once; each recipe's share.

    python benchmarks/train_speed.py [--quick] [--epochs 100] [--seeds 3] [--data FOLDER] [--output FOLDER]
    python benchmarks/train_speed.py --page docs/results/train-speed.md --output FOLDER   # from what was measured

ResNet-18 for 32 px with OpenOOD's recipe: batches of 128, crops and mirrors on the device. Images are random bytes
unless ``--data`` names a folder with ``cifar10_train.npz``: the speed is the same, the accuracy is not. ``--quick``
measures bf16 alone, over fewer steps, and leaves out what does not fit into ``--seconds``. ``--epochs`` also makes
whole trainings, with validation and checkpoints. What is measured is written after each row, to ``speed.json`` and
``speed.md``.

A recipe's share is the speed of cross-entropy over its cost factor; a recipe reaches so much of it.
"""

import argparse
import json
import tempfile
import time
from datetime import date
from itertools import count
from pathlib import Path

import numpy as np
import torch

import oodscope.training.loop.replay as replay
from oodscope.base.files import write_text
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.small import SMALL_NETS
from oodscope.training.loop.fabric import arithmetic, resolve_device
from oodscope.training.loop.lockstep import Lockstep
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.sets import Sets, check_sets, facts_of
from oodscope.training.loop.streams import Streams
from oodscope.training.recipe import Recipe
from oodscope.training.registry import RECIPES, create_recipe
from oodscope.training.train import train_seeds

REHEARSALS, WARM = replay.REHEARSALS, 12
SIZE = Preprocess(size=32, mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616))
AUGMENTS = {
    "cutout": ["crop", "cutout"],
    "randaugment": ["randaugment", "crop"],
    "augmix": ["crop", "augmix"],
    "pixmix": ["crop", "pixmix"],
}


class Report:
    """Rows that are on disk as soon as they are measured, and an end to the time that they may take."""

    def __init__(self, device: torch.device, output: Path | None, seconds: float) -> None:
        self.rows: list[dict[str, object]] = []
        self.output, self.end = output, time.monotonic() + seconds
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
        self.lines = [f"torch {torch.__version__} on {name}", "", "| step | recipe | precision | images/s | remark |"]
        self.lines.append("|---|---|---|---|---|")
        print("\n".join(self.lines), flush=True)

    def late(self, needed: float) -> bool:
        """Whether so many seconds are no longer left."""
        return time.monotonic() + needed > self.end

    def add(self, step: str, recipe: str, precision: str, rate: float, remark: str = "") -> None:
        self.rows.append({"step": step, "recipe": recipe, "precision": precision, "rate": rate, "remark": remark})
        shown = f"{rate:,.0f}" if rate else ""
        self.lines.append(f"| {step} | {recipe} | {precision} | {shown} | {remark} |")
        print(self.lines[-1], flush=True)
        if self.output:
            self.output.mkdir(parents=True, exist_ok=True)
            write_text(self.output / "speed.json", json.dumps(self.rows, indent=1))
            write_text(self.output / "speed.md", "\n".join(self.lines) + "\n")


def open_sets(folder: Path | None, images: int) -> tuple[ImageSet, ImageSet, ImageSet]:
    """Training images, validation images and outliers."""
    draws = np.random.default_rng(0)

    def noise(name: str, number: int) -> ImageSet:
        pixels = draws.integers(0, 256, (number, 32, 32, 3), dtype=np.uint8)
        return ImageSet.from_arrays(name, pixels, np.arange(number) % 10, [str(label) for label in range(10)])

    if folder is None:
        return noise("train", images), noise("val", 1000), noise("outliers", 2560)
    packed = np.load(folder / "cifar10_train.npz")
    known = ImageSet.from_arrays("train", packed["images"][:images], packed["labels"][:images].astype(np.int64))
    return known, noise("val", 1000), noise("outliers", 2560)


NETWORK = ["resnet18_32"]
"""What ``--network`` names; anything smaller is for trying the script."""


def build() -> torch.nn.Module:
    return SMALL_NETS[NETWORK[0]](10)


def loops_of(recipe: Recipe, sets: Sets, device: torch.device, seeds: int, compiled: bool) -> list[Loop]:
    streams, made = Streams(recipe, sets, SIZE, device), []
    for seed in range(seeds):
        own = recipe.model_copy(update={"seed": seed})
        torch.manual_seed(seed)
        network = own.prepare(build(), facts_of(sets, SIZE))
        made.append(Loop(network, own, streams.of(own), compiled=compiled))
    return made


def rate(
    recipe: Recipe,
    sets: Sets,
    steps: int,
    device: torch.device,
    *,
    recorded: bool = True,
    compiled: bool = False,
    seeds: int = 1,
) -> tuple[float, str]:
    """Images a second over ``steps`` steps of all seeds together, and what is to be said of them."""
    replay.REHEARSALS = REHEARSALS if recorded else 10**9
    begun = opened = time.perf_counter()
    loops, seen = loops_of(recipe, sets, device, seeds, compiled), 0
    driver = Lockstep(loops)
    with arithmetic(device, recipe.precision):
        for loop in loops:
            loop.open_epoch()
        served = (raws for epoch in count() for raws in zip(*(loop.streams.serve(epoch) for loop in loops)))
        for step, raws in zip(range(WARM + steps), served):
            if step == WARM:
                wait(device)
                begun = time.perf_counter()
            driver.descend(raws)
            seen += sum(len(parts[0].labels) for parts in raws) * (step >= WARM)
        wait(device)
    seconds = time.perf_counter() - begun
    remarks = [f"{begun - opened:.0f} s to start"]
    if recorded and not driver.replay.recorded:
        remarks.append("taken plainly")
    if compiled and not all(loop.compilation.active for loop in loops):
        remarks.append("not compiled")
    for loop in loops:
        loop.compilation.close()
    replay.REHEARSALS = REHEARSALS
    return seen / seconds, ", ".join(remarks)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure_steps(report: Report, sets: Sets, options: argparse.Namespace, device: torch.device) -> float:
    """The kinds of step of cross-entropy; the speed of the recorded one in the last precision."""
    base = 0.0
    kinds = {
        "plain": (0, {"recorded": False}),
        "recorded": (0, {}),
        f"{options.seeds} seeds, recorded": (5, {"seeds": options.seeds}),
        "compiled and recorded": (30, {"compiled": True}),
        f"{options.seeds} seeds, compiled and recorded": (45, {"seeds": options.seeds, "compiled": True}),
    }
    for precision in options.precisions.split(","):
        recipe = create_recipe("cross_entropy", precision=precision, batch_size=options.batch)
        for name, (needed, settings) in kinds.items():
            if report.late(needed):
                report.add(name, "cross_entropy", precision, 0.0, "left out: too little time")
                continue
            found, remark = rate(recipe, sets, options.steps, device, **settings)
            report.add(name, "cross_entropy", precision, found, remark)
            base = found if name == "recorded" else base
    return base


def measure_shares(report: Report, every: Sets, options: argparse.Namespace, device: torch.device, base: float) -> None:
    """Each recipe, and each augmentation under cross-entropy, recorded."""
    precision = options.precisions.split(",")[-1]
    common = {"precision": precision, "batch_size": options.batch}
    made = {name: create_recipe(name, **common, patience=0) for name in RECIPES if name != "cross_entropy"}
    made |= {name: create_recipe("cross_entropy", augment=each, **common) for name, each in AUGMENTS.items()}
    for name, recipe in made.items():
        if report.late(5):
            report.add("recorded", name, precision, 0.0, "left out: too little time")
            continue
        sets = check_sets(recipe, every.train, every.val, every.ood)
        found, remark = rate(recipe, sets, max(20, options.steps // 2), device)
        share = "" if recipe.cost is None else f"{100 * found * recipe.cost / base:.0f} % of its share, "
        report.add("recorded", name, precision, found, share + remark)


def measure_training(report: Report, sets: Sets, options: argparse.Namespace) -> None:
    """Whole trainings of all seeds at once, with validation and checkpoints."""
    recipe = create_recipe("cross_entropy", epochs=options.epochs, precision="bf16-mixed", keep="best")
    seeds = list(range(options.seeds))
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        folders = [(options.output or Path(folder)) / f"seed{seed}" for seed in seeds]
        builders = [build] * len(seeds)
        trained = train_seeds(
            builders, recipe, seeds, sets.train, SIZE, val=sets.val, folders=folders, device=options.device
        )
    seconds = time.perf_counter() - begun
    inside = sum(epoch.seconds for each in trained for epoch in each.history)
    images = len(sets.train) * options.epochs * len(seeds)
    remark = f"{options.epochs} epochs: {seconds:.1f} s in all, {seconds / len(seeds):.1f} s a network"
    report.add(f"training of {len(seeds)} seeds", "cross_entropy", "bf16-mixed", images / inside, remark)


ANSWER = "**Answer.**"
"""Stands for the sentences, which are made from the rows."""

BAR, SHARE, COMPILED, JOINT = 46_000, 75, "compiled and recorded", "seeds, compiled and recorded"


def page(folder: Path, measured: str) -> str:
    """The page of what was measured; each sentence is a function of the numbers."""
    rows = json.loads((folder / "speed.json").read_text())
    table = (folder / "speed.md").read_text().splitlines()
    lines = [
        "# How fast the trainer is",
        "",
        "**Question.** How many images a second does the training loop take: step by step, with the step recorded as a",
        "CUDA graph, compiled, and with the steps of several seeds as branches of one graph? Do other recipes reach",
        "what their cost factors promise?",
        "",
        ANSWER,
        "",
        "**Command.** `python benchmarks/train_speed.py --quick --output FOLDER`, then `--page` with the same folder",
        "(ResNet-18 for 32 px, batches of 128, random crops and mirrors on the device, channels last).",
        "",
        f"**Machine.** {table[0]}.",
        "",
        f"**Date.** {measured}",
        "",
        *table[2:],
        "",
    ]
    said: list[str] = []
    single = [row for row in rows if row["step"] == COMPILED and row["rate"] and "not compiled" not in row["remark"]]
    joint = [row for row in rows if row["step"].endswith(JOINT) and row["rate"]]
    for row in single:
        relation = "reaches" if row["rate"] >= BAR else "does not reach"
        said.append(f"One training, compiled: {row['rate']:,.0f} images/s {relation} the bar of {BAR:,}.")
    for row in joint:
        epochs = 100 * 50_000 / row["rate"]
        said.append(f"{row['step']}: {row['rate']:,.0f} images/s, {epochs:.0f} s for 100 epochs of CIFAR-10 a network.")
    shares = {
        row["recipe"]: int(row["remark"].split(" %")[0])
        for row in rows
        if row["rate"] and "of its share" in str(row["remark"])
    }
    low = [f"{name} ({value} %)" for name, value in shares.items() if value < SHARE]
    if shares:
        said.append(
            f"{len(shares) - len(low)} of {len(shares)} recipes and augmentations that were measured reach {SHARE} % "
            f"of their share; below it: {', '.join(low) or 'none'}."
        )
    out = [f"{row['step']} {row['recipe']}" for row in rows if not row["rate"]]
    said.append(f"Not measured: {', '.join(out) or 'nothing'}.")
    answered = [f"**Answer.** {' '.join(said)}" if line is ANSWER else line for line in lines]
    return "\n".join(answered) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--images", type=int)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--precisions")
    parser.add_argument("--network", default=NETWORK[0])
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--page", type=Path, help="write the page of what --output holds; measures nothing")
    parser.add_argument("--measured", default=str(date.today()), help="date of the measurements")
    options = parser.parse_args()
    if options.page:
        write_text(options.page, page(options.output, options.measured))
        return
    quick = options.quick
    NETWORK[0] = options.network
    options.precisions = options.precisions or ("bf16-mixed" if quick else "32-true,tf32,bf16-mixed")
    options.steps = options.steps or (150 if quick else 400)
    device = resolve_device(options.device, "32-true")
    report = Report(device, options.output, options.seconds or (95 if quick else float("inf")))
    train, val, outliers = open_sets(options.data, options.images or (12_800 if quick else 50_000))
    base = measure_steps(report, Sets(train, None, None), options, device)
    measure_shares(report, Sets(train, val, outliers), options, device, base)
    if options.epochs:
        measure_training(report, Sets(train, val, None), options)


if __name__ == "__main__":
    main()

"""Minutes that each recipe takes with its default settings on one GPU, from a few seconds of each.

    FOLDER=docs/results/data/recipe-minutes
    python benchmarks/recipe_minutes.py --output FOLDER [--recipes vos,mcd] [--minutes 4] [--seconds 1.2]
    python benchmarks/recipe_minutes.py --output FOLDER --write docs/results/recipe-minutes.md   # of what is there

50,000 random images of 32 px, 10 classes and 35,000 outliers stand in for CIFAR-10: the speed is the same. The step of
every phase of a recipe is timed after it is recorded, for ``--seconds`` each, and so is what a recipe does over whole
sets before an epoch; the minutes are those of all steps and epochs together. Not in it: validation, checkpoints, the
last pass of some recipes, and the kernels that long trainings compile, which save up to a fifth. What is measured is
kept in FOLDER/recipes.json after each recipe and never measured again; a recipe that fails is named and left out. A row
may have a ``note`` that the page prints, and that another measurement of it takes away.
``--write`` makes the page, and enters the minutes into ``src/oodscope/training/minutes.json``, which
``oodscope list recipes`` prints.
"""

import argparse
import gc
import json
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

import oodscope as oods
from oodscope.base.files import write_text
from oodscope.data.imageset import ImageSet
from oodscope.training.loop.fabric import arithmetic, resolve_device
from oodscope.training.loop.lockstep import Lockstep
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.sets import Sets, check_sets, facts_of
from oodscope.training.loop.streams import Streams
from oodscope.training.network import NetworkRecord
from oodscope.training.recipe import Recipe
from oodscope.training.registry import RECIPES, create_recipe
from train_speed import SIZE, wait

LISTED = Path(__file__).parent.parent / "src" / "oodscope" / "training" / "minutes.json"
FLOAT32 = ("autoencoder", "glow", "pixelcnn", "nae", "good")
"""Trained in float32 with rounded factors; all others in bf16."""
KEPT = "docs/results/data/recipe-minutes"
NETWORKS = {"good": "plain_cnn_32"}
REHEARSED = 6
"""Steps before the clock: the three that are rehearsed, the recording, and two replays."""


def images_of(number: int, outliers: int) -> Sets:
    """Random images of ten classes in two groups, and outliers."""
    draws = np.random.default_rng(0)

    def noise(name: str, many: int) -> ImageSet:
        pixels = draws.integers(0, 256, (many, 32, 32, 3), dtype=np.uint8)
        return ImageSet.from_arrays(name, pixels, np.arange(many) % 10, [str(label) for label in range(10)])

    train = noise("train", number)
    train.hierarchy["kind"] = np.where(train.labels % 2, "odd", "even")
    return Sets(train, None, noise("outliers", outliers))


def made(name: str, options: argparse.Namespace, teacher: Path) -> tuple[Recipe, torch.nn.Module]:
    """A recipe with its default settings, and the network that it starts from."""
    cuda = options.device.type == "cuda"
    precision = ("tf32" if name in FLOAT32 else "bf16-mixed") if cuda else "32-true"
    more: dict[str, Any] = {"teachers": [str(teacher)]} if name == "distill" else {}
    torch.manual_seed(0)
    network = oods.create_model(NETWORKS.get(name, options.network), num_classes=10)[0]
    return create_recipe(name, precision=precision, patience=0, **more), network


def write_teacher(folder: Path, network: str) -> Path:
    """A network that was never trained, in the form that distillation reads."""
    model = oods.create_model(network, num_classes=10)[0]
    save_file({key: value.contiguous() for key, value in model.state_dict().items()}, folder / "model.safetensors")
    NetworkRecord(architecture=network, num_classes=10, stages=()).write(folder)
    return folder


def measured(name: str, every: Sets, options: argparse.Namespace, teacher: Path) -> dict[str, Any]:
    """Seconds of a step in each phase, of what precedes an epoch, and the minutes that follow."""
    recipe, network = made(name, options, teacher)
    sets = check_sets(recipe, every.train, None, every.ood)
    streams = Streams(recipe, sets, SIZE, options.device)
    loop = Loop(recipe.prepare(network, facts_of(sets, SIZE)), recipe, streams, compiled=False)
    driver, epochs = Lockstep([loop]), Counter(recipe.phase(epoch) for epoch in range(recipe.epochs))
    steps, opened = dict[int, float](), dict[int, float]()
    with arithmetic(options.device, recipe.precision):
        for phase in epochs:
            first = next(epoch for epoch in range(recipe.epochs) if recipe.phase(epoch) == phase)
            later = [epoch for epoch in range(first + 1, recipe.epochs) if recipe.phase(epoch) == phase]
            loop.epoch, loop.step = first, 0
            seconds = [timed(loop.open_epoch, options.device)]
            if later:  # the first epoch may have more to do than all that follow
                loop.epoch = later[0]
                seconds.append(timed(loop.open_epoch, options.device))
            opened[phase] = seconds[0] + (epochs[phase] - 1) * seconds[-1]
            steps[phase] = step_seconds(driver, options.seconds)
    share = recipe.total_steps(streams.steps) / (streams.steps * recipe.epochs)
    in_steps = sum(epochs[phase] * streams.steps * steps[phase] for phase in epochs)
    return {
        "minutes": share * (in_steps + sum(opened.values())) / 60,
        "milliseconds": {str(phase): 1000 * seconds for phase, seconds in steps.items()},
        "between_epochs": sum(opened.values()),
        "epochs": recipe.epochs,
        "batch_size": recipe.batch_size,
        "precision": recipe.precision,
        "recorded": driver.replay.recorded,
    }


def timed(work: Any, device: torch.device) -> float:
    wait(device)
    begun = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - begun


def step_seconds(driver: Lockstep, seconds: float) -> float:
    """The mean time of a step, over so many seconds and at least four steps."""
    loop = driver.loops[0]
    # batches come in two sizes, and the second would be rehearsed and recorded while the clock runs
    every = (raws for _ in count() for raws in zip(loop.streams.serve(loop.epoch)))
    size = -(-len(loop.streams.train) // loop.streams.steps)
    served = (raws for raws in every if len(raws[0][0].labels) == size)
    for _, raws in zip(range(REHEARSED), served):
        driver.descend(raws)
        loop.step = 0
    wait(loop.device)
    begun, taken = time.perf_counter(), 0
    while taken < 4 or time.perf_counter() - begun < seconds:
        for _, raws in zip(range(4), served):  # the host may run ahead of the device by these
            driver.descend(raws)
            loop.step = 0
            taken += 1
        wait(loop.device)
    return (time.perf_counter() - begun) / taken


def measure(options: argparse.Namespace) -> None:
    """All recipes that are asked for and not measured yet."""
    path, end = options.output / "recipes.json", time.monotonic() + 60 * options.minutes
    found = json.loads(path.read_text()) if path.exists() else {}
    device = options.device
    found["machine"] = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU: the numbers mean nothing"
    rows = found.setdefault("recipes", {})
    every = images_of(options.images, max(256, options.images * 7 // 10))
    with tempfile.TemporaryDirectory() as folder:
        teacher = write_teacher(Path(folder), options.network)
        for name in options.recipes.split(",") if options.recipes else RECIPES:
            if "minutes" in rows.get(name, {}):
                continue
            if time.monotonic() > end:
                print("the minutes are over; call again to go on", flush=True)
                break
            begun = time.monotonic()
            try:
                rows[name] = measured(name, every, options, teacher)
            except Exception as error:  # one recipe's fault must not cost the others their time
                traceback.print_exc()
                rows[name] = {"failed": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"}
            gc.collect()  # a recording holds its memory until the loop that points to itself is collected
            if device.type == "cuda":
                torch.cuda.empty_cache()
            write_text(path, json.dumps(found, indent=1) + "\n")
            shown = f"{rows[name]['minutes']:.2f} minutes" if "minutes" in rows[name] else rows[name]["failed"]
            print(f"{name:>18}: {shown} ({time.monotonic() - begun:.1f} s to measure)", flush=True)


def page(found: dict[str, Any], day: str) -> str:
    """The page of what was measured; each sentence is a function of the numbers."""
    rows = {name: row for name, row in found["recipes"].items() if "minutes" in row}
    failed = {name: row["failed"] for name, row in found["recipes"].items() if "failed" in row}
    order = sorted(rows, key=lambda name: rows[name]["minutes"])
    plain = [name for name in order if not rows[name]["recorded"]]
    longest = f"; the longest is {order[-1]} with {rows[order[-1]]['minutes']:.1f}" if order else ""
    absent = [name for name in RECIPES if name not in rows and name not in failed]
    lines = [
        "# Minutes of training of every recipe",
        "",
        "**Question.** How long does each recipe train with its default settings on 50,000 images of 32 px?",
        "",
        f"**Answer.** {len(rows)} of {len(list(RECIPES))} recipes are measured; "
        f"{sum(row['minutes'] <= 2 for row in rows.values())} take at most two minutes{longest}.",
        "",
        f"**Command.** `python benchmarks/recipe_minutes.py --output {KEPT}` measures what is",
        "missing; then the same with `--write docs/results/recipe-minutes.md`.",
        "",
        f"**Machine.** One {found['machine']}, nothing else running. **Date.** {day}",
        "",
        "ResNet-18 for 32 px (plain convolutions for `good`; the networks of `autoencoder`, `glow`, `pixelcnn` and",
        "`nae` are their own). Minutes follow from the time of a step in each phase of the recipe and of what is done",
        "before its epochs, timed for a second or two; they hold no validation, checkpoints or last pass.",
        "",
        "| recipe | minutes | epochs | batch | precision | milliseconds a step, by phase | recorded |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in order:
        row = rows[name]
        steps = ", ".join(f"{each:.2f}" for each in row["milliseconds"].values())
        cells = [name, f"{row['minutes']:.2f}", row["epochs"], row["batch_size"], row["precision"], steps]
        lines.append("| " + " | ".join(map(str, [*cells, "yes" if row["recorded"] else "no"])) + " |")
    lines += ["", f"- Taken step by step, because a step or its optimiser asks the host: {', '.join(plain) or 'none'}."]
    lines += [f"- Failed: {name}: {why}" for name, why in failed.items()]
    lines.append(f"- Not measured here (`train-speed.md` has some of them): {', '.join(absent) or 'nothing'}.")
    notes = dict.fromkeys(row["note"] for row in rows.values() if "note" in row)
    lines += [f"- {', '.join(name for name in order if rows[name].get('note') == note)}: {note}." for note in notes]
    return "\n".join(lines) + "\n"


def enter(found: dict[str, Any], path: Path) -> None:
    """Add the minutes to the list of all recipes, those of whole trainings kept."""
    listed = json.loads(path.read_text(encoding="utf-8"))
    fresh = {name: round(row["minutes"], 2) for name, row in found["recipes"].items() if "minutes" in row}
    listed["minutes"] = dict(sorted({**fresh, **listed["minutes"]}.items()))
    write_text(path, json.dumps(listed, indent=1, sort_keys=True) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--recipes", help="separated by commas; by default all")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seconds", type=float, default=1.2, help="of each phase")
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--network", default="resnet18_32", help="anything smaller is for trying the script")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--write", type=Path, help="write the page of what --output holds; measures nothing")
    parser.add_argument("--listed", type=Path, default=LISTED, help="the list that --write enters the minutes into")
    parser.add_argument("--measured", default=str(date.today()), help="date of the measurements")
    options = parser.parse_args(arguments)
    if options.write:
        found = json.loads((options.output / "recipes.json").read_text())
        write_text(options.write, page(found, options.measured))
        enter(found, options.listed)
        return
    options.device = resolve_device(options.device, "32-true")
    options.output.mkdir(parents=True, exist_ok=True)
    measure(options)


if __name__ == "__main__":
    main()

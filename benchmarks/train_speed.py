"""How many images a second the trainer takes: the plain and the recorded step, by precision; then a whole training.

    OODSCOPE_DATA=path/to/packs python benchmarks/train_speed.py [--steps 200] [--epochs 100] [--output FOLDER]

ResNet-18 on CIFAR-10 with OpenOOD's recipe: batches of 128, crops and mirrors. Without ``cifar10_train.npz``, beside
the packs or in ``artifacts/``, the test images are repeated: the speed is the same. The whole training validates after
each epoch and writes checkpoints.
"""

import argparse
import os
import tempfile
import time
from itertools import count
from pathlib import Path

import numpy as np
import torch

import oodscope.training.loop.replay as replay
from oodscope.data.imageset import ImageSet
from oodscope.models.zoo.zoo import create_model
from oodscope.training.loop.fabric import arithmetic, resolve_device
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.sets import Sets
from oodscope.training.registry import create_recipe
from oodscope.training.train import train
from openood_cifar import ARTIFACTS, TRANSFORM, pack

REHEARSALS = replay.REHEARSALS
WARM = 20


def open_sets(folder: Path, limit: int) -> tuple[ImageSet, ImageSet]:
    """Training and validation images."""
    whole = pack(folder, "cifar10_test")
    home = next((place for place in (folder, ARTIFACTS) if (place / "cifar10_train.npz").exists()), None)
    if home is None:
        rows = np.resize(np.arange(len(whole)), min(limit, 50_000))
        return whole.take(rows, "cifar10_test, repeated"), whole.take(np.arange(1000), "val")
    return pack(folder, "cifar10_train", home).take(np.arange(min(limit, 50_000))), whole.take(np.arange(1000), "val")


def build() -> torch.nn.Module:
    return create_model("resnet18_32", num_classes=10)[0]


def rate(images: ImageSet, recipe: str, precision: str, steps: int, device: torch.device, recorded: bool) -> float:
    """Images a second over ``steps`` steps, everything between two steps included."""
    replay.REHEARSALS = REHEARSALS if recorded else 10**9
    made = create_recipe(recipe, precision=precision)
    loop = Loop(build(), made, Sets(images, None, None), TRANSFORM["cifar10"], None, device)
    loop.objective.train()
    begun, seen = 0.0, 0
    with arithmetic(device, precision):
        served = (raws for epoch in count() for raws in loop.streams.serve(epoch))
        for step, raws in zip(range(WARM + steps), served):
            if step == WARM:
                wait(device)
                begun = time.perf_counter()
            loop._descend(raws)
            loop.step += 1
            seen += len(raws[0].labels) * (step >= WARM)
        wait(device)
    seconds = time.perf_counter() - begun
    assert loop.replay.recorded == (recorded and device.type == "cuda"), "a step that should be recorded was not"
    replay.REHEARSALS = REHEARSALS
    return seen / seconds


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--recipes", default="cross_entropy")
    parser.add_argument("--precisions", default="32-true,tf32,bf16-mixed")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    device = resolve_device(options.device, "32-true")
    images, val = open_sets(Path(os.environ["OODSCOPE_DATA"]), options.images)
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name(device) if device.type == 'cuda' else device}")
    print("\n| recipe | precision | plain step, images/s | recorded step, images/s |\n|---|---|---|---|", flush=True)
    for recipe in options.recipes.split(","):
        for precision in options.precisions.split(","):
            found = [rate(images, recipe, precision, options.steps, device, recorded) for recorded in (False, True)]
            print(f"| {recipe} | {precision} | {found[0]:,.0f} | {found[1]:,.0f} |", flush=True)
    if not options.epochs:
        return
    recipe = create_recipe("cross_entropy", epochs=options.epochs, precision="bf16-mixed", keep="best")
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place = options.output or Path(folder)
        trained = train(build, recipe, images, TRANSFORM["cifar10"], val=val, folder=place, device=options.device)
    seconds = time.perf_counter() - begun
    inside = sum(epoch.seconds for epoch in trained.history)
    print(f"\n{options.epochs} epochs of {len(images)} images in bf16-mixed: {seconds:.1f} s in all, {inside:.1f} s in")
    print(f"epochs; {len(images) * options.epochs / inside:,.0f} images/s with validation and checkpoints;")
    print(f"validation accuracy {100 * max(epoch.val_accuracy or 0 for epoch in trained.history):.2f} % at best")


if __name__ == "__main__":
    main()

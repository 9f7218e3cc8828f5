"""Train the generator of evaluation via generation on digits: the first 5,000 images of the SVHN pack.

    OODSCOPE_DATA=path/to/packs python benchmarks/svhn_gan.py --output FOLDER [--stop-after SECONDS] [--work FOLDER]

The other 5,000 images stay unseen, for attacks that start from real images. Writes generator.safetensors, samples.png
(64 fixed latents) and real.png (64 training images) to --output; checkpoints lie in --work, where the same command
goes on. Prints the speed of training, the variety of the samples, and how fast a search can draw.
"""

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from oodscope.execution.console import ConsoleProgress
from oodscope.generation.gan.recipe import GanRecipe
from oodscope.generation.gan.stage import write_grid
from oodscope.generation.gan.trained import FILE, GRID, train_gan
from oodscope.generation.variations.gan import GanVariation
from oodscope.models.classifier.network import choose_device
from openood_cifar import pack

TRAINING = 5_000
"""First images of the pack, which generator and judge learn from; the others are attacked."""


def drawing_speed(variation: GanVariation, device: torch.device, batch: int) -> float:
    """Images per second that the generator hands to a detector, in bfloat16 where there is a GPU."""
    variation = variation.to(device)
    points = variation.domain.draw(batch, torch.Generator().manual_seed(0)).to(device)

    def draw(times: int) -> float:
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            started = time.perf_counter()
            for _ in range(times):
                images = variation(points)
            float(images.sum())
        return time.perf_counter() - started

    draw(3)
    return 10 * batch / draw(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--stop-after", type=float, default=240.0, help="seconds of training")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--r1", type=float, default=0.01)
    parser.add_argument("--augment", type=float, default=0.5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp())
    device = choose_device(options.device)
    images = pack(Path(os.environ["OODSCOPE_DATA"]).resolve(), "svhn_test_10k").take(np.arange(TRAINING), "svhn_5k")
    recipe = GanRecipe(
        steps=options.steps,
        batch_size=options.batch_size,
        width=options.width,
        discriminator_width=max(1, options.width * 4 // 3),
        r1=options.r1,
        augment=options.augment,
        seed=options.seed,
        precision="bf16-mixed" if device.type == "cuda" else "32-true",
    )
    done = train_gan(
        images,
        recipe,
        folder=work,
        stop_after=options.stop_after,
        device=options.device,
        progress=ConsoleProgress(),
    )
    options.output.mkdir(parents=True, exist_ok=True)
    for name in (FILE, GRID):
        shutil.copyfile(work / name, options.output / name)
    rows = np.random.default_rng(0).choice(len(images), 64, replace=False)
    real = torch.from_numpy(np.stack(images.images(rows))).permute(0, 3, 1, 2) / 255
    write_grid(real, options.output / "real.png")

    print(f"{done.steps} steps of {recipe.batch_size} in {done.seconds:.0f} s: {done.steps / done.seconds:.1f} steps/s")
    for losses in done.history[:: max(1, len(done.history) // 20)]:
        print(f"step {losses.step}: discriminator {losses.discriminator:.3f}, generator {losses.generator:.3f}")
    print(f"variety: drawn {done.variety.drawn:.4f}, real {done.variety.real:.4f}, share {done.variety.share:.3f}")
    batch = 5_000 if device.type == "cuda" else 64
    speed = drawing_speed(GanVariation(done.generator), device, batch)
    print(f"drawing: {speed:,.0f} images/s at batch {batch} on {device}")
    print(f"file: {(options.output / FILE).stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()

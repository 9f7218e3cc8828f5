"""What drawing costs beyond the bare generator, and what a step of training costs with and without a recording.

    python benchmarks/generator_speed.py [--device cuda] [--images 51200] [--batches 256 2048] [--steps 30]

Random weights and made-up images: what they cost does not depend on what they show. Drawing: images per second of
``sample`` and ``shift`` beside the same passes on inputs that lie ready, at the same batch. Training: seconds of one
step of each loop, recorded as a CUDA graph and taken plainly; the terms are those of the study of generated sets, the
distance of a ResNet-18's features and the information of four networks. Prints two tables in markdown.
"""

import argparse
import time
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch

import oodscope as oods
import oodscope.training.loop.replay as replay
from oodscope.generation.distances.perceptual import FeatureDistance
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.gan.real import RealImages
from oodscope.generation.gan.resumable import ResumableLoop
from oodscope.generation.near.loop import NearLoop
from oodscope.generation.near.objective import NearObjective
from oodscope.generation.near.recipe import NearRecipe
from oodscope.generation.near.stages import sample
from oodscope.generation.near.trained import build_networks, near_shape
from oodscope.generation.sets.ensemble import HETEROGENEOUS
from oodscope.generation.shifted.loop import ShiftedLoop, ShiftedObjective
from oodscope.generation.shifted.recipe import ShiftedRecipe
from oodscope.generation.shifted.trained import shift
from oodscope.models.classifier.network import choose_device
from oodscope.models.generators.pix2pix import UnetGenerator, UnetShape


def made_up(side: int, channels: int) -> oods.ImageSet:
    rng = np.random.default_rng(0)
    shape = (1000, side, side, channels) if channels == 3 else (1000, side, side)
    pixels = rng.integers(0, 256, shape, dtype=np.uint8)
    return oods.ImageSet.from_arrays("noise", pixels, np.arange(1000) % 10, tuple("abcdefghij"))


def seconds(act: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Of one call, the median of three runs of ``repeats``."""
    taken = []
    for _ in range(3):
        wait(device)
        begun = time.perf_counter()
        for _ in range(repeats):
            act()
        wait(device)
        taken.append((time.perf_counter() - begun) / repeats)
    return sorted(taken)[1]


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@torch.no_grad()
def drawing(device: torch.device, images: int, batch: int) -> None:
    draw_latents("dcgan", made_up(28, 1), device, images, batch)
    draw_latents("biggan", made_up(32, 3), device, images, batch)
    unet = UnetGenerator(UnetShape()).to(device).eval()
    given, draws = torch.rand(images, 3, 32, 32, device=device), torch.Generator(device).manual_seed(0)
    ready = given[:batch] * 2 - 1
    bare = batch / seconds(lambda: unet(ready, draws), device, images // batch)
    told("pix2pix, 32 px", batch, bare, images / seconds(lambda: shift(unet, given, 0, batch), device, 1))


def draw_latents(
    network: Literal["dcgan", "biggan"], real: oods.ImageSet, device: torch.device, images: int, batch: int
) -> None:
    recipe = NearRecipe(network=network)
    shape = near_shape(recipe, real, None)
    generator = build_networks(recipe, shape)[0].to(device).eval()
    latents = torch.randn(batch, generator.latent_dimension, device=device)
    classes = torch.arange(batch, device=device) % max(1, generator.classes)
    bare = batch / seconds(lambda: generator(latents, classes), device, images // batch)
    drawn = images / seconds(lambda: sample(generator, images, 0, batch), device, 1)
    told(f"{network}, {shape.size} px", batch, bare, drawn)


def told(name: str, batch: int, bare: float, drawn: float) -> None:
    print(f"| {name} | {batch:,} | {bare:,.0f} | {drawn:,.0f} | {drawn / bare:.3f} |", flush=True)


def loops(device: torch.device, precision: str) -> dict[str, Callable[[], ResumableLoop]]:
    members = []
    for name in HETEROGENEOUS:
        model, transform = oods.create_model(name, num_classes=10, weights=None)
        members.append(oods.Classifier(model, transform or oods.Preprocess(size=32), device=device, name=name))
    distance, information = FeatureDistance(members[0]), EnsembleInformation(members)

    def near(network: str, batch: int, fine: bool) -> NearLoop:
        recipe = NearRecipe(network=network, batch_size=batch, precision=precision)
        images = made_up(28, 1) if network == "dcgan" else made_up(32, 3)
        shape = near_shape(recipe, images, None)
        real = RealImages(images, shape.size, shape.channels, device, conditional=network == "biggan")
        objective = NearObjective(distance, information, 1.0, 1.0) if fine else None
        return NearLoop(recipe, *build_networks(recipe, shape), real, objective, 1, None, lambda generator: None)

    def shifted() -> ShiftedLoop:
        real = RealImages(made_up(32, 3), 32, 3, device, conditional=True)
        objective = ShiftedObjective(distance, information, 2.0, 1.0, 1.0)
        recipe = ShiftedRecipe(precision=precision)
        return ShiftedLoop(recipe, UnetShape(), real, objective, None, lambda generator: None)

    return {
        "dcgan, batch 256": lambda: near("dcgan", 256, False),
        "biggan, batch 128": lambda: near("biggan", 128, False),
        "biggan, batch 256": lambda: near("biggan", 256, False),
        "biggan with both terms, batch 128": lambda: near("biggan", 128, True),
        "pix2pix with both terms, batch 128": shifted,
    }


def training(device: torch.device, steps: int) -> None:
    precision = "bf16-mixed" if device.type == "cuda" else "32-true"
    rehearsals = replay.REHEARSALS
    print("\n| training | plain step, ms | replayed step, ms | times as fast |\n|---|---|---|---|")
    for name, make in loops(device, precision).items():
        found = []
        for plain in (True, False):
            replay.REHEARSALS = 10**9 if plain else rehearsals
            loop = make()
            with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=True):
                for _ in range(rehearsals + 2):
                    loop._descend()
                found.append(1000 * seconds(loop._descend, device, steps // 3))
        print(f"| {name} | {found[0]:.1f} | {found[1]:.1f} | {found[0] / found[1]:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--images", type=int, default=51_200)
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 2048])
    parser.add_argument("--steps", type=int, default=30, help="of each training; 0 for none")
    options = parser.parse_args()
    device = choose_device(options.device)
    print("| generator | batch | bare, images/s | drawn, images/s | share |\n|---|---|---|---|---|")
    for batch in options.batches:
        drawing(device, options.images, batch)
    if options.steps:
        training(device, options.steps)


if __name__ == "__main__":
    main()

"""``oodscope generate gan``: a generator of images like those of a set."""

from pathlib import Path
from typing import Annotated

import typer


def gan(
    on: Annotated[str, typer.Option(help="Images to learn from: a folder, list, .npz, ..., or BENCHMARK:SET.")],
    output: Annotated[Path, typer.Option(help="Folder for generator, sample grid and checkpoints.")],
    steps: Annotated[int, typer.Option(help="Training steps.", min=1)] = 10_000,
    minutes: Annotated[
        float | None, typer.Option(help="Stop after so many minutes, with the generator of that moment.", min=0.0)
    ] = None,
    size: Annotated[int | None, typer.Option(help="Side of the images; that of the set, if 28, 32 or 64.")] = None,
    batch_size: Annotated[int, typer.Option(help="Images per step, a multiple of 4.")] = 128,
    width: Annotated[int, typer.Option(help="Channels of the generator at full size.")] = 48,
    learning_rate: Annotated[float, typer.Option(help="Of generator and discriminator.")] = 2.5e-3,
    r1: Annotated[float, typer.Option(help="Weight of the gradient penalty; raise it where training is unstable.")] = (
        0.01
    ),
    augment: Annotated[float, typer.Option(help="Share of images that the discriminator sees varied.")] = 0.5,
    flip: Annotated[bool, typer.Option("--flip", help="Mirror every second image; not for digits or letters.")] = False,
    root: Annotated[
        Path | None, typer.Option(help="Folder of public datasets; $OODSCOPE_ROOT, or the cache, unless given.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of weights, latents and batches.", min=0)] = 0,
) -> None:
    """Train a compact StyleGAN2-style generator with a latent of 64 on the unit sphere.

    Interrupted or stopped by --minutes, the same command goes on from there. The output holds generator.safetensors
    and samples.png, a grid of 64 fixed latents that is renewed while training runs.
    """
    from oodscope.base.config import parse
    from oodscope.execution.console import ConsoleProgress
    from oodscope.generation.gan.recipe import GanRecipe
    from oodscope.generation.gan.trained import train_gan
    from oodscope.jobs.opening import open_one
    from oodscope.models.classifier.network import choose_device

    declared = {
        "steps": steps,
        "batch_size": batch_size,
        "width": width,
        "discriminator_width": max(1, width * 4 // 3),
        "learning_rate": learning_rate,
        "r1": r1,
        "augment": augment,
        "flip": flip,
        "seed": seed,
        "precision": "bf16-mixed" if choose_device(device).type == "cuda" else "32-true",
    }
    recipe, progress = parse(GanRecipe, declared, "generate gan"), ConsoleProgress()
    images = open_one(on, root, progress)
    stop_after = None if minutes is None else 60 * minutes
    done = train_gan(images, recipe, folder=output, size=size, stop_after=stop_after, device=device, progress=progress)
    if done.steps < steps:
        typer.echo(f"stopped at step {done.steps:,} of {steps:,}; the same command goes on from there")
    typer.echo(f"variety: {done.variety.share:.0%} of that of the {len(images):,} images of {images.name}")
    typer.echo(f"saved: {output / 'generator.safetensors'} and {output / 'samples.png'} after {done.seconds:.0f} s")

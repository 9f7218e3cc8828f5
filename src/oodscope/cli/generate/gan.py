"""``oodscope generate gan``: a generator of images like those of a set."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.command import EXECUTION, loading, progress
from oodscope.cli.options import OUTPUT, Device, Root


def gan(
    on: Annotated[str, typer.Option(help="Images to learn from: a folder, list, .npz, ..., or BENCHMARK:SET.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", rich_help_panel=OUTPUT, help="Folder for generator, sample grid and checkpoints."
        ),
    ],
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
    root: Root = None,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Of weights, latents and batches.", min=0)] = 0,
) -> None:
    """Train a generator of images like those of a set.

    A compact StyleGAN2-style network with a latent of 64 on the unit sphere. Interrupted or stopped by --minutes, the
    same command continues from there. The output holds generator.safetensors
    and samples.png, a grid of 64 fixed latents that is renewed while training runs.
    """
    loading()
    shown = progress()

    from oodscope.base.config import parse_declared
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
    recipe = parse_declared(GanRecipe, declared, "generate gan")
    images = open_one(on, root, shown)
    stop_after = None if minutes is None else 60 * minutes
    done = train_gan(images, recipe, folder=output, size=size, stop_after=stop_after, device=device, progress=shown)
    if done.steps < steps:
        typer.echo(f"stopped at step {done.steps:,} of {steps:,}; the same command continues from there")
    typer.echo(f"variety: {done.variety.share:.0%} of that of the {len(images):,} images of {images.name}")
    typer.echo(f"saved: {output / 'generator.safetensors'} and {output / 'samples.png'} after {done.seconds:.0f} s")

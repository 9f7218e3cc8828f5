"""``oodscope generate shifted``: covariate-shifted images, which look different and show the same classes."""

from typing import Annotated

import typer

from oodscope.cli.command import loading
from oodscope.cli.generate import options
from oodscope.cli.options import MODEL, Device, Root


def shifted(
    id_images: options.Id,
    output: options.Output,
    val: options.Val = None,
    preset: options.Preset = None,
    count: options.Count = None,
    pool: options.PoolSize = None,
    ensemble: options.Architectures = None,
    epochs: options.Epochs = None,
    flip: options.Flip = False,
    perceptual: options.Distance = None,
    steps: options.Steps = None,
    lambda_perceptual: options.Perceptual = None,
    lambda_semantic: Annotated[
        float | None, typer.Option(rich_help_panel=MODEL, help="Weight of the disagreement; 1.", min=0.0)
    ] = None,
    lambda_label: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Weight of the right class; 1. With 0, as in the paper, it is never looked at.",
            min=0.0,
        ),
    ] = None,
    keep_all: Annotated[
        bool,
        typer.Option(
            "--keep-all", help="Keep images in which the ensemble sees another class: calibration is then not decided."
        ),
    ] = False,
    batch_size: options.BatchSize = None,
    width: options.Width = None,
    learning_rate: options.LearningRate = None,
    work: options.Work = None,
    root: Root = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    yes: options.Yes = False,
) -> None:
    """Make a covariate-shifted ID set from ID images.

    Drawn by a network that was trained to change their look. Kept are images in which the ensemble sees the class that
    they were drawn from, as certain as of 95 % of the validation images. Whether other networks see the class, another
    ensemble must check.
    """
    loading()

    from oodscope.cli.generate.writing import Request, trained, write_set

    recipe = trained(
        device,
        seed,
        flip,
        steps=steps,
        lambda_perceptual=lambda_perceptual,
        lambda_semantic=lambda_semantic,
        lambda_label=lambda_label,
        batch_size=batch_size,
        width=width,
        discriminator_width=width,
        learning_rate=learning_rate,
    )
    write_set(
        Request(id_images, val, output, count, pool, ensemble, epochs, flip, work, root, device, seed, yes),
        "shifted",
        preset is not None,
        perceptual=perceptual,
        shifted=recipe,
        keep_all=keep_all,
    )

"""``oodscope generate shifted``: covariate-shifted images, which look different and show the same classes."""

from typing import Annotated

import typer

from oodscope.cli.command import loading
from oodscope.cli.generate import options
from oodscope.cli.options import Device, Root


def shifted(
    id_images: options.Id,
    output: options.Output,
    val: options.Val = None,
    count: options.Count = None,
    pool: options.PoolSize = None,
    ensemble: options.Architectures = None,
    epochs: options.Epochs = 30,
    flip: options.Flip = False,
    perceptual: options.Distance = "ensemble",
    steps: options.Steps = None,
    lambda_label: Annotated[
        float, typer.Option(help="Weight of the right class; 0, as in the paper, never looks at it.", min=0.0)
    ] = 1.0,
    work: options.Work = None,
    root: Root = None,
    device: Device = "auto",
    seed: options.Seed = 0,
) -> None:
    """Make a covariate-shifted ID set from ID images.

    Drawn by a network that was trained to change their look. Kept are images in which the ensemble sees the class that
    they were drawn from, as certain as of 95 % of the validation images. Whether other networks see the class, another
    ensemble must check.
    """
    loading()

    from oodscope.cli.generate.writing import Request, trained, write_set

    write_set(
        Request(id_images, val, output, count, pool, ensemble, epochs, flip, work, root, device, seed),
        kind="shifted",
        method="gan",
        perceptual=perceptual,
        shifted=trained(device, seed, flip, steps=steps, lambda_label=lambda_label),
    )

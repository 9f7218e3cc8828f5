"""``oodscope generate near``: near-OOD images, which look like ID images and show none of their classes."""

from typing import Annotated

import typer

from oodscope.cli.choices import NearMethod, NearNetwork
from oodscope.cli.command import loading
from oodscope.cli.generate import options
from oodscope.cli.options import Device, Root


def near(
    id_images: options.Id,
    output: options.Output,
    val: options.Val = None,
    method: Annotated[
        NearMethod,
        typer.Option(help="gan: train generators; latent: search those of --generator; recombination: patches."),
    ] = NearMethod.RECOMBINATION,
    count: options.Count = None,
    pool: options.PoolSize = None,
    ensemble: options.Architectures = None,
    epochs: options.Epochs = 30,
    flip: options.Flip = False,
    perceptual: options.Distance = "ensemble",
    network: Annotated[NearNetwork, typer.Option(help="Generator to train, for gan.")] = NearNetwork.BIGGAN,
    steps: options.Steps = None,
    fine_steps: Annotated[int | None, typer.Option(help="Steps for each weight of the semantic term.", min=1)] = None,
    generator: Annotated[
        str | None, typer.Option(help="Generator of ID images (oodscope generate gan), for latent.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Energies per chain, for latent.", min=1)] = 200,
    pieces: Annotated[int, typer.Option(help="Cells along each side, for recombination.", min=2)] = 4,
    window: Annotated[
        str | None, typer.Option(help="LOW,HIGH mutual information in nats, instead of the rule's.")
    ] = None,
    work: options.Work = None,
    root: Root = None,
    device: Device = "auto",
    seed: options.Seed = 0,
) -> None:
    """Make a near-OOD set from ID images.

    Pooled, filtered by the disagreement of an ensemble, reproducible. The folder can be used wherever images are asked
    for (--near DIR, or source: generated in a benchmark). Interrupted, the same command continues with what it had
    trained.
    """
    loading()

    from oodscope.cli.generate.writing import Request, trained, two_numbers, write_set

    write_set(
        Request(id_images, val, output, count, pool, ensemble, epochs, flip, work, root, device, seed),
        kind="near",
        method=method.value,
        generator=generator,
        perceptual=perceptual,
        near=trained(device, seed, flip, network=network.value, steps=steps, fine_steps=fine_steps),
        budget=budget,
        pieces=pieces,
        window=None if window is None else two_numbers(window, "window"),
    )

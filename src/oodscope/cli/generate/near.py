"""``oodscope generate near``: near-OOD images, which look like ID images and show none of their classes."""

from typing import Annotated

import typer

from oodscope.cli.choices import NearMethod, NearNetwork, Pairing
from oodscope.cli.command import loading
from oodscope.cli.generate import options
from oodscope.cli.options import LIST, MODEL, Device, Root


def near(
    id_images: options.Id,
    output: options.Output,
    val: options.Val = None,
    preset: options.Preset = None,
    method: Annotated[
        NearMethod | None,
        typer.Option(
            help="gan: train generators; latent: search those of --generator; recombination: patches, unless given."
        ),
    ] = None,
    count: options.Count = None,
    pool: options.PoolSize = None,
    ensemble: options.Architectures = None,
    epochs: options.Epochs = None,
    flip: options.Flip = False,
    perceptual: options.Distance = None,
    network: Annotated[
        NearNetwork | None, typer.Option(help="Generator to train, for gan; biggan, of grey images dcgan.")
    ] = None,
    steps: options.Steps = None,
    fine_steps: Annotated[int | None, typer.Option(help="Steps for each weight of the semantic term.", min=1)] = None,
    lambda_perceptual: options.Perceptual = None,
    lambdas: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=MODEL, help=f"Weights of the semantic term; 0.5, 0.75, ... 3. {LIST}"),
    ] = None,
    semantic_ceiling: Annotated[
        float | None,
        typer.Option(rich_help_panel=MODEL, help="Information in nats above which an image earns no more.", min=0.0),
    ] = None,
    pairing: Annotated[
        Pairing | None, typer.Option(rich_help_panel=MODEL, help="Real image that each is kept close to.")
    ] = None,
    batch_size: options.BatchSize = None,
    width: options.Width = None,
    learning_rate: options.LearningRate = None,
    generator: Annotated[
        str | None, typer.Option(help="Generator of ID images (oodscope generate gan), for latent.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Energies per chain, for latent.", min=1)] = 200,
    pieces: Annotated[int, typer.Option(help="Cells along each side, for recombination.", min=2)] = 4,
    window: Annotated[
        str | None, typer.Option(help="LOW,HIGH mutual information in nats, instead of the rule's.")
    ] = None,
    class_share: Annotated[
        float,
        typer.Option(help="Largest share of a class's images in which the ensemble may see it.", min=0.0, max=1.0),
    ] = 0.5,
    work: options.Work = None,
    root: Root = None,
    device: Device = "auto",
    seed: options.Seed = 0,
    yes: options.Yes = False,
) -> None:
    """Make a near-OOD set from ID images.

    Pooled, filtered by the disagreement of an ensemble, reproducible. The folder can be used wherever images are asked
    for (--near DIR, or source: generated in a benchmark). Interrupted, the same command continues with what it had
    trained.
    """
    from oodscope.base.errors import UsageError

    if (method == NearMethod.LATENT) != (generator is not None):
        raise UsageError(
            "--method latent needs --generator FILE (made by 'oodscope generate gan', or of your own), and no other "
            "method takes one"
        )
    loading()

    from oodscope.cli.generate.writing import Request, numbers, trained, two_numbers, write_set

    request = Request(id_images, val, output, count, pool, ensemble, epochs, flip, work, root, device, seed, yes)
    recipe = trained(
        device,
        seed,
        flip,
        network=None if network is None else network.value,
        steps=steps,
        fine_steps=fine_steps,
        lambda_perceptual=lambda_perceptual,
        semantic_ceiling=semantic_ceiling,
        pairing=None if pairing is None else pairing.value,
        batch_size=batch_size,
        width=width,
        discriminator_width=width,
        learning_rate=learning_rate,
    )
    write_set(
        request,
        "near",
        preset is not None,
        method=None if method is None else method.value,
        generator=generator,
        perceptual=perceptual,
        near=recipe,
        lambdas=None if lambdas is None else numbers(lambdas, "lambdas"),
        lambda_perceptual=lambda_perceptual,
        budget=budget,
        pieces=pieces,
        window=None if window is None else two_numbers(window, "window"),
        class_share=class_share,
    )

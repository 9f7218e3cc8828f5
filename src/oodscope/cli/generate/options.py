"""Options that the commands which write generated sets share."""

from pathlib import Path
from typing import Annotated

import typer

Id = Annotated[
    str,
    typer.Option("--id", help="ID images: a benchmark, a place (folder, .npz, ...), or BENCHMARK:SET."),
]
Output = Annotated[Path, typer.Option(help="Folder for the set: images, recipe.json and index.html.")]
Val = Annotated[
    str | None, typer.Option(help="Validation images; those of the benchmark, or a fifth of --id held out.")
]
Count = Annotated[int | None, typer.Option(help="Images of the set; as many as the test set has.", min=1)]
PoolSize = Annotated[int | None, typer.Option("--pool", help="Images to choose from; five times --count.", min=1)]
Architectures = Annotated[
    str | None, typer.Option("--ensemble", help="Members of the ensemble, comma-separated; two or more.")
]
Epochs = Annotated[int, typer.Option(help="Training epochs of each member.", min=1)]
Flip = Annotated[bool, typer.Option("--flip", help="Mirror images in training; not for digits or letters.")]
Distance = Annotated[
    str, typer.Option("--perceptual", help="lpips, ensemble, efficientnet-lite0, timm:NAME or python:MODULE:FUNCTION.")
]
Steps = Annotated[int | None, typer.Option(help="Training steps of a generator; those of its recipe.", min=1)]
Work = Annotated[Path | None, typer.Option(help="Folder for trained networks and searches; in the cache.")]
Root = Annotated[Path | None, typer.Option(help="Folder of public datasets; $OODSCOPE_ROOT, or the cache.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
Seed = Annotated[int, typer.Option(help="Of images, choice and networks.", min=0)]

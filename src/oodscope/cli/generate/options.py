"""Options that the commands which write generated sets share."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.choices import GeneratePreset
from oodscope.cli.command import EXECUTION
from oodscope.cli.options import DATA, LIST, MODEL, OUTPUT

Id = Annotated[
    str,
    typer.Option(
        "--id", rich_help_panel=DATA, help="ID images: a benchmark, a place (folder, .npz, ...), or BENCHMARK:SET."
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", rich_help_panel=OUTPUT, help="Folder for the set: images, recipe.json and index.html."
    ),
]
Val = Annotated[
    str | None,
    typer.Option(rich_help_panel=DATA, help="Validation images; those of the benchmark, or a fifth of --id held out."),
]
Count = Annotated[int | None, typer.Option(help="Images of the set; as many as the test set has.", min=1)]
PoolSize = Annotated[int | None, typer.Option("--pool", help="Images to choose from; five times --count.", min=1)]
Architectures = Annotated[
    list[str] | None,
    typer.Option("--ensemble", rich_help_panel=MODEL, help=f"Members of the ensemble, two or more. {LIST}"),
]
Epochs = Annotated[
    int | None,
    typer.Option(rich_help_panel=MODEL, help="Training epochs of each member; 30, of grey images 8.", min=1),
]
Flip = Annotated[
    bool, typer.Option("--flip", rich_help_panel=MODEL, help="Mirror images in training; not for digits or letters.")
]
Distance = Annotated[
    str | None,
    typer.Option(
        "--perceptual",
        rich_help_panel=MODEL,
        help="lpips, ensemble, efficientnet-lite0, timm:NAME or python:MODULE:FUNCTION; lite0 where installed.",
    ),
]
Preset = Annotated[
    GeneratePreset | None,
    typer.Option(help="paper: LPIPS and the weights of the paper, for whatever is not given."),
]
Perceptual = Annotated[
    float | None,
    typer.Option(
        "--lambda-perceptual", rich_help_panel=MODEL, help="Weight of the distance; by distance unless given.", min=0.0
    ),
]
BatchSize = Annotated[int | None, typer.Option(rich_help_panel=MODEL, help="Images of a training step.", min=2)]
Width = Annotated[
    int | None, typer.Option(rich_help_panel=MODEL, help="Channels of both networks at full size.", min=1)
]
LearningRate = Annotated[float | None, typer.Option(rich_help_panel=MODEL, help="Of both networks.", min=0.0)]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", rich_help_panel=EXECUTION, help="Start even if it takes more than an hour.")
]
Steps = Annotated[
    int | None, typer.Option(rich_help_panel=MODEL, help="Training steps of a generator; those of its recipe.", min=1)
]
Work = Annotated[
    Path | None, typer.Option(rich_help_panel=EXECUTION, help="Folder for trained networks and searches; in the cache.")
]
Seed = Annotated[int, typer.Option(rich_help_panel=EXECUTION, help="Of images, choice and networks.", min=0)]

"""``oodscope leaderboard pin``: which images a benchmark is judged on."""

from pathlib import Path
from typing import Annotated

import typer


def pin(
    run: Annotated[Path, typer.Argument(help="Folder of a run that you made yourself.")],
    board: Annotated[Path, typer.Option(help="Folder of entries.")] = Path("leaderboard"),
) -> None:
    """Pin the images that a benchmark is judged on.

    Entries with other images, labels or orders are refused from then on.
    """
    from oodscope.leaderboard.verify.publishing import pin_lists

    typer.echo(f"pinned: {pin_lists(board, run)}")

"""``oodscope leaderboard supersede``: a better entry takes the place of another, and the reason is public."""

from pathlib import Path
from typing import Annotated

import typer


def supersede(
    old: Annotated[str, typer.Argument(help="Id of the entry that was wrong.")],
    new: Annotated[str, typer.Argument(help="Id of the entry that takes its place.")],
    reason: Annotated[str, typer.Option(help="Why; everybody can read it.")],
    board: Annotated[Path, typer.Option(help="Folder of entries.")] = Path("leaderboard"),
) -> None:
    """Let one entry take the place of another.

    Both stay, and the reason is added to the errata.
    """
    from oodscope.leaderboard.records.keeping import append_erratum as append
    from oodscope.leaderboard.verify.verifying import verify

    verify(board / new)
    erratum = append(board, old, new, reason)
    typer.echo(f"{erratum.old} is superseded by {erratum.new} ({erratum.date}): {erratum.reason}")

"""``oodscope leaderboard build``: the board as pages."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli.options import OUTPUT


def build(
    folder: Annotated[Path, typer.Argument(help="Folder of entries.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", rich_help_panel=OUTPUT, help="Folder of the site; an earlier site there is replaced."
        ),
    ] = Path("site"),
) -> None:
    """Verify all entries and write the leaderboard's pages.

    The site is plain files. Refused entries are named and left out, and the exit status is 1. Numbers that this code
    computed before from the same scores are taken from the cache; ``leaderboard verify`` never does that.
    """
    from dataclasses import replace

    from oodscope.leaderboard.published.table import published_standings
    from oodscope.leaderboard.records.text import one_line
    from oodscope.leaderboard.site.render import sound_pages, write_pages
    from oodscope.leaderboard.verify.remembered import RememberedExaminer
    from oodscope.leaderboard.verify.verifying import verify_each

    found = verify_each(folder, RememberedExaminer())
    board = replace(found.board, standings=(*found.board.standings, *published_standings()))
    site = sound_pages(board, scores=True)
    page = write_pages(site, output, scores=folder) / "index.html"
    refused = {**found.refused, **site.refused}
    for name, reason in refused.items():
        typer.echo(one_line(f"{name}: REFUSED: {reason}"))
    count = sum(not each.curated for each in site.board.standings)
    typer.echo(f"{count} entries and the published tables: {page}")
    if refused:
        raise typer.Exit(1)

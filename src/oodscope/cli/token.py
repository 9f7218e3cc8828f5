"""``oodscope serve token``: who may submit entries to a board."""

from pathlib import Path
from typing import Annotated

import typer

token = typer.Typer(
    name="token", help="Tokens of those who may submit entries.", no_args_is_help=True, rich_markup_mode=None
)
_Name = Annotated[str, typer.Argument(help="Of the submitter; entries carry it.")]
_Board = Annotated[Path, typer.Option(help="Folder of entries.")]


@token.command()
def add(name: _Name, board: _Board = Path("leaderboard")) -> None:
    """Make a token for a submitter and print it, once: only its hash is kept."""
    from oodscope.serve.submitters import Submitters

    typer.echo(Submitters(board).add(name))
    typer.echo(f"the token of {name}; it is kept nowhere, so pass it on now", err=True)


@token.command()
def revoke(name: _Name, board: _Board = Path("leaderboard")) -> None:
    """Let a submitter's token count no longer, also on a server that runs. Accepted entries stay."""
    from oodscope.serve.submitters import Submitters

    Submitters(board).revoke(name)
    typer.echo(f"the token of {name} is revoked")


@token.command("list")
def listing(board: _Board = Path("leaderboard")) -> None:
    """List the submitters of a board."""
    from oodscope.serve.submitters import Submitters

    for name, each in Submitters(board).names().items():
        typer.echo(f"{name}  added {each.added}{f'  revoked {each.revoked}' if each.revoked else ''}")

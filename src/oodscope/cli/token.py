"""``oodscope serve token``: who may submit entries to a board."""

from pathlib import Path
from typing import Annotated

import typer

from oodscope.cli import options
from oodscope.cli.command import add as add_command
from oodscope.cli.command import group
from oodscope.cli.examples import EXAMPLES

token = group("token", "Manage the tokens of those who may submit entries.")
_Name = Annotated[str, typer.Argument(help="Of the submitter; entries carry it.")]
_Board = Annotated[Path, typer.Option(rich_help_panel=options.DATA, help="Folder of entries.")]


def add(name: _Name, board: _Board = Path("leaderboard")) -> None:
    """Make a token for a submitter and print it.

    It is printed once; only its hash is kept.
    """
    from oodscope.serve.submitters import Submitters

    typer.echo(Submitters(board).add(name))
    typer.echo(f"the token of {name}; it is kept nowhere, so pass it on now", err=True)


def revoke(name: _Name, board: _Board = Path("leaderboard")) -> None:
    """Revoke the token of a submitter.

    A running server refuses it at once; accepted entries stay.
    """
    from oodscope.serve.submitters import Submitters

    Submitters(board).revoke(name)
    typer.echo(f"the token of {name} is revoked")


def listing(board: _Board = Path("leaderboard")) -> None:
    """List the submitters of a board."""
    from oodscope.serve.submitters import Submitters

    for name, each in Submitters(board).names().items():
        typer.echo(f"{name}  added {each.added}{f'  revoked {each.revoked}' if each.revoked else ''}")


add_command(token, add, examples=EXAMPLES["serve token add"])
add_command(token, revoke, examples=EXAMPLES["serve token revoke"])
add_command(token, listing, name="list", examples=EXAMPLES["serve token list"])

"""``oodscope leaderboard``: entries whose every number is computed again."""

import typer

from oodscope.cli.leaderboard.build import build
from oodscope.cli.leaderboard.pin import pin
from oodscope.cli.leaderboard.publish import publish
from oodscope.cli.leaderboard.rerun import rerun
from oodscope.cli.leaderboard.submit import submit
from oodscope.cli.leaderboard.supersede import supersede
from oodscope.cli.leaderboard.verify import verify

leaderboard = typer.Typer(
    name="leaderboard",
    help="Entries whose every number is computed again from their scores.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
leaderboard.command()(submit)
leaderboard.command()(verify)
leaderboard.command()(rerun)
leaderboard.command()(supersede)
leaderboard.command()(pin)
leaderboard.command()(publish)
leaderboard.command()(build)

"""``oodscope leaderboard``: entries whose every number is computed again."""

from oodscope.cli.command import add, group
from oodscope.cli.examples import EXAMPLES
from oodscope.cli.leaderboard.build import build
from oodscope.cli.leaderboard.pin import pin
from oodscope.cli.leaderboard.publish import publish
from oodscope.cli.leaderboard.rerun import rerun
from oodscope.cli.leaderboard.submit import submit
from oodscope.cli.leaderboard.supersede import supersede
from oodscope.cli.leaderboard.verify import verify

leaderboard = group("leaderboard", "Submit, verify and publish leaderboard entries.")
for command in (submit, verify, rerun, supersede, pin, publish, build):
    add(leaderboard, command, examples=EXAMPLES[f"leaderboard {command.__name__}"])

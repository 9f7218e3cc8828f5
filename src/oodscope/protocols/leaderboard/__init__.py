"""The leaderboard: entries are handed in with their scores, and every number is computed again from them."""

from oodscope.protocols.leaderboard.about import About
from oodscope.protocols.leaderboard.pinning import pin_lists
from oodscope.protocols.leaderboard.publishing import publish_activations
from oodscope.protocols.leaderboard.rerunning import rerun
from oodscope.protocols.leaderboard.submitting import submit
from oodscope.protocols.leaderboard.verifying import Verification, verify, verify_all, verify_each
from oodscope.results.leaderboard.keeping import append_erratum as supersede

__all__ = [
    "About",
    "Verification",
    "pin_lists",
    "publish_activations",
    "rerun",
    "submit",
    "supersede",
    "verify",
    "verify_all",
    "verify_each",
]

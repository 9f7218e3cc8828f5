"""Pin: which images a benchmark is judged on, from a run that the keeper of the board trusts."""

from pathlib import Path

from oodscope.results.leaderboard.keeping import PinnedLists, write_lists
from oodscope.results.leaderboard.lists import table_lists
from oodscope.runs.evaluation.run import Result


def pin_lists(board: Path | str, run: Path | str) -> Path:
    """Write the lists of a run's benchmark into the board; entries with other images are refused from then on."""
    result = Result.load(run)
    record = result.record
    pinned = PinnedLists(name=record.benchmark, version=record.benchmark_version, sets=table_lists(result.scores))
    return write_lists(Path(board), pinned)

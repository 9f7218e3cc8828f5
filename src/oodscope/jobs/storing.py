"""The store of a command: where its runs are collected, and how its progress is reported."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oodscope.execution.progress import Progress
from oodscope.report.page.page import write_report
from oodscope.results.store.reporting import reporting_to
from oodscope.results.store.store import ResultStore
from oodscope.runs.evaluation.run import Result

VARIABLE = "OODSCOPE_STORE"
_WAIT_SECONDS = 1.0


def store_of(output: Path | str, *, wait_seconds: float | None = None) -> ResultStore:
    """The store that ``$OODSCOPE_STORE`` names, a file or a URL; otherwise the one in the folder of results."""
    return ResultStore(os.environ.get(VARIABLE) or Path(output) / "results.sqlite", wait_seconds=wait_seconds)


def save_result(result: Result, output: Path | str) -> Path:
    """Save an evaluation with its report below the output folder, and add it to the store; the folder."""
    folder = result.save(Path(output) / result.record.id)
    write_report(result, folder / "report.html")
    store_of(output).add(result, folder)
    return folder


@contextmanager
def reporting_to_store(output: Path | str, what: str, progress: Progress) -> Iterator[Progress]:
    """A progress sink whose stages the store hears of too, for those who watch (``oodscope serve``)."""
    with reporting_to(store_of(output, wait_seconds=_WAIT_SECONDS), what, progress) as sink:
        yield sink

"""Progress bars: bars in a terminal, one line per stage elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from oodscope.execution.progress import Advance

ERRORS = Console(stderr=True)


class ConsoleProgress:
    """Shows each stage on stderr, so that stdout stays clean for tables and JSON.

    Examples
    --------
    >>> result = oods.evaluate(clf, bench, ["msp"], progress=ConsoleProgress())
    """

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        started = perf_counter()
        if ERRORS.is_terminal:
            columns = (
                TextColumn("{task.description:<24}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[remark]}"),
            )
            with Progress(*columns, console=ERRORS, transient=True) as bars:
                task = bars.add_task(description, total=total, remark="")

                def advance(finished: int, remark: Callable[[], str] | None = None, /) -> None:
                    if remark is not None:
                        bars.update(task, remark=remark())
                    bars.advance(task, finished)

                yield advance
        else:
            yield lambda finished, remark=None: None
        sys.stderr.write(f"{description:<24} {total:>9,} in {perf_counter() - started:.1f} s\n")
        sys.stderr.flush()

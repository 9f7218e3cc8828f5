"""Progress bars: bars in a terminal, one line per stage elsewhere."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from oodscope.execution.progress import Advance

ERRORS = Console(stderr=True)

_UNITS = (
    (r"extract|draw|look at|score images|predict|verify|ID images", "images"),
    (r"fit|score", "detectors"),
    (r"measure", "protocols"),
    (r"train \d+ heads", "epochs"),
    (r"train|search", "steps"),
    (r"compare sets", "pairs of sets"),
    (r"transfer", "variations"),
    (r"cross-validate", "draws"),
    (r"index", "files"),
    (r"unpack", "bytes"),
)
"""What a stage counts, by how its description begins."""


def unit_of(description: str) -> str:
    """What the stage counts, such as ``images``; ``items`` where that is not known.

    >>> unit_of("fold 3: train small_cnn")
    'steps'
    """
    words = description.rpartition(": ")[2]
    return next((unit for pattern, unit in _UNITS if re.match(rf"({pattern})\b", words)), "items")


class ConsoleProgress:
    """Shows each stage on stderr, so that stdout stays clean for tables and JSON.

    Examples
    --------
    >>> result = oods.evaluate(clf, bench, ["msp"], progress=ConsoleProgress())
    """

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Advance]:
        started = perf_counter()
        if not total:
            sys.stderr.write(f"{description}\n")
            sys.stderr.flush()
            yield lambda finished, remark=None: None
            return
        if ERRORS.is_terminal:
            columns = (
                TextColumn("{task.description:<24}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(unit_of(description)),
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
        sys.stderr.write(f"{description:<28} {total:>9,} {unit_of(description)} in {perf_counter() - started:.1f} s\n")
        sys.stderr.flush()

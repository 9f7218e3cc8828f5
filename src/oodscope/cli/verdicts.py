"""Verdicts on image files: judged batch by batch, printed as they come."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from oodscope.base.errors import OodscopeError
from oodscope.data.images.decoding import EXTENSIONS, UnreadableImageError, decode
from oodscope.deploy.scorer import Scorer
from oodscope.execution.progress import Progress
from oodscope.metrics.rejection.fdr import select_outliers

Rows: TypeAlias = Iterable[dict[str, Any]]
FIELDS = ("path", "class_name", "class_index", "score", "p_value", "accepted", "error")


def judge_files(scorer: Scorer, paths: Sequence[Path], batch_size: int, progress: Progress) -> Iterator[dict[str, Any]]:
    """One row of ``FIELDS`` per file, in order; where ``error`` is set, the rest is None."""
    files = list(_expand(paths))
    if not files:
        raise OodscopeError(f"no image found (looked for {', '.join(sorted(EXTENSIONS))})")
    with progress.stage("predict", len(files)) as advance:
        for start in range(0, len(files), batch_size):
            batch = files[start : start + batch_size]
            read = {file: _read(file) for file in batch}
            good = [file for file in batch if not isinstance(read[file], str)]
            judged = dict(zip(good, scorer.predict([read[file] for file in good])))
            for file in batch:
                row: dict[str, Any] = dict.fromkeys(FIELDS)
                row["path"] = str(file)
                yield row | (judged[file]._asdict() if file in judged else {"error": read[file]})
            advance(len(batch))


def decide_batch(
    scorer: Scorer, rows: list[dict[str, Any]], target: float, confidence: float | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows with verdicts on the batch as a whole, and what these promise; ``p_value`` becomes the one used."""
    judged = [row for row in rows if row["error"] is None]
    if scorer.calibration is None:
        raise OodscopeError("--fdr needs calibration scores, which this file does not hold; fit again")
    chosen = select_outliers(scorer.calibration, [row["score"] for row in judged], target, confidence)
    for row, flagged, p_value in zip(judged, chosen.flagged.tolist(), chosen.p_values.tolist()):
        row["accepted"], row["p_value"] = not flagged, p_value
    said = [f"flagged {int(chosen.flagged.sum()):,} of {len(judged):,} images: {chosen}"]
    return rows, said + ([f"warning: {chosen.warning}"] if chosen.warning else [])


def judge_shifted(
    scorer: Scorer, rows: list[dict[str, Any]], paths: Sequence[Path], batch_size: int, progress: Progress
) -> list[str]:
    """How many covariate-shifted ID images the rule of a decided batch would flag too; no line without such images."""
    if not paths:
        return []
    least = min((row["score"] for row in rows if row["accepted"] is False), default=None)
    shifted = [row["score"] for row in judge_files(scorer, paths, batch_size, progress) if row["error"] is None]
    if least is None:
        return [f"covariate-shifted images: 0 of {len(shifted):,} would be flagged, for nothing was"]
    count = sum(score >= least for score in shifted)
    return [f"covariate-shifted images: {count:,} of {len(shifted):,} would be flagged by the same rule"]


def as_lines(rows: Rows, form: Literal["json", "csv"]) -> int:
    """Print rows as they come; how many failed."""
    failed = 0
    writer = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
    if form == "csv":
        writer.writeheader()
    for row in rows:
        failed += row["error"] is not None
        if form == "csv":
            writer.writerow(row)
        else:
            sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
    return failed


def as_table(rows: Rows, scorer: Scorer | None) -> int:
    """Print a table for people, and what the threshold of ``scorer`` promises; how many failed."""
    table = Table("image", "class", "score", "p-value", "verdict", box=None, header_style="bold", pad_edge=False)
    failed = 0
    for row in rows:
        if row["error"] is not None:
            failed += 1
            table.add_row(Text(row["path"]), Text(row["error"], style="red"))
            continue
        verdict = {None: "", True: "accepted", False: "[bold]rejected[/bold]"}[row["accepted"]]
        p_value = "" if row["p_value"] is None else f"{row['p_value']:.4f}"
        table.add_row(Text(row["path"]), Text(row["class_name"]), f"{row['score']:.5g}", p_value, verdict)
    console = Console()
    console.print(table)
    if scorer is not None and scorer.calibration is not None:
        console.print(str(scorer.calibration.guarantee), markup=False, highlight=False)
    return failed


def _expand(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.rglob("*")) if file.suffix.lower() in EXTENSIONS)
        else:
            yield path


def _read(file: Path) -> Any:
    """Its pixels, or in words why there are none."""
    try:
        return np.asarray(decode(file, str(file)))
    except UnreadableImageError as error:
        return str(error).removeprefix(f"unreadable image {file}: ")

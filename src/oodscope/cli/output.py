"""What a command that measured something says at its end."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from oodscope.results import Result, Study
from oodscope.results.wording import heading, headline_metrics, percent


def show(result: Result, folder: Path, as_json: bool) -> None:
    """Tables and paths for people, or one JSON object for machines."""
    if as_json:
        rows = json.loads(result.to_dataframe().to_json(orient="records"))
        content = {"run": result.record.model_dump(mode="json"), "folder": str(folder), "measurements": rows}
        sys.stdout.write(json.dumps(content) + "\n")
        return
    console = Console()
    for protocol in result.record.protocols:
        for metric in headline_metrics(protocol):
            console.print(result.table(protocol, metric))
    for note in result.record.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    for detector, reason in result.record.skipped.items():
        console.print(f"skipped {detector}: {reason}", markup=False, highlight=False)
    console.print(f"result: {folder}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)


def show_study(study: Study, files: Sequence[Path], as_json: bool) -> None:
    """The mean error rate of each model and detector, and where the rest was written."""
    if as_json:
        rows = json.loads(study.to_dataframe().to_json(orient="records"))
        sys.stdout.write(json.dumps({"files": [str(path) for path in files], "rows": rows}) + "\n")
        return
    console = Console()
    table = Table("model", "accuracy", *study.detectors, box=None, pad_edge=False, header_style="bold")
    for name in (member.model.name for member in study.members):
        cells = [percent(study.value(name, detector, "der95_val_correct")) for detector in study.detectors]
        table.add_row(name, percent(study.accuracy(name)), *cells)
    console.print(f"{heading('der95_val_correct')}  mean over all sets, percent", highlight=False)
    console.print(table)
    for path in files:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)

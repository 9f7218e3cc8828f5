"""What a command that measured something says at its end."""

import json
import sys
from pathlib import Path

from rich.console import Console

from oodscope.results import Result
from oodscope.results.wording import headline_metrics


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

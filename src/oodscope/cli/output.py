"""What a command that measured something says at its end."""

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from oodscope.cli.job import Job, execute
from oodscope.execution import Progress
from oodscope.results import Result, over_seeds


def execute_and_show(job: Job, progress: Progress, as_json: bool) -> None:
    """Run a job, or one for each seed of a recipe, and say what came out; several seeds end in a table of all."""
    done = [execute(each, progress) for each in job.each_seed()]
    if len(done) == 1:
        show(*done[0], as_json)
        return
    summary = over_seeds([result for result, _ in done])
    if as_json:
        rows = json.loads(summary.to_dataframe().to_json(orient="records"))
        content = {"runs": [_content(result, folder) for result, folder in done], "over_seeds": rows}
        sys.stdout.write(json.dumps(content) + "\n")
        return
    for result, folder in done:
        show(result, folder, as_json=False)
    for protocol in job.protocols:
        Console().print(summary.table(protocol))


def show(result: Result, folder: Path, as_json: bool) -> None:
    """Tables and paths for people, or one JSON object for machines."""
    if as_json:
        sys.stdout.write(json.dumps(_content(result, folder)) + "\n")
        return
    console = Console()
    for protocol in result.record.protocols:
        console.print(result.table(protocol))
    for note in result.record.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    for detector, reason in result.record.skipped.items():
        console.print(f"skipped {detector}: {reason}", markup=False, highlight=False)
    console.print(f"result: {folder}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)


def _content(result: Result, folder: Path) -> dict[str, Any]:
    rows = json.loads(result.to_dataframe().to_json(orient="records"))
    return {"run": result.record.model_dump(mode="json"), "folder": str(folder), "measurements": rows}

"""What a cross-validation says at its end."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from oodscope.document.wording import percent
from oodscope.runs.crossval.outcome import CrossValidation
from oodscope.runs.crossval.study import MetricStudy, study_metric

HEADLINE = "auroc"
ALPHA = 0.05


def show_crossval(outcome: CrossValidation, files: Sequence[Path], as_json: bool) -> None:
    """The mean AUROC of each detector, who leads, how well the folds find the truth, and where the rest was written."""
    if as_json:
        rows = json.loads(outcome.table.frame.to_json(orient="records"))
        record = outcome.record.model_dump(mode="json")
        sys.stdout.write(json.dumps({"run": record, "files": [str(path) for path in files], "rows": rows}) + "\n")
        return
    console = Console()
    study = study_metric(outcome.table, HEADLINE)
    trainings = list(dict.fromkeys(cell.training for cell in study.cells))
    table = Table("detector", *(each.replace("_", " ") for each in trainings), box=None, pad_edge=False)
    for row, detector in enumerate(study.detectors):
        table.add_row(detector, *(percent(_mean(study, row, training)) for training in trainings))
    console.print(f"AUROC, percent, mean over {len(study.cells) // len(trainings)} pairs", highlight=False)
    console.print(table)
    for line in headline(study):
        console.print(line, markup=False, highlight=False)
    for note in outcome.record.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    console.print(f"page: {files[0]}", markup=False, highlight=False, soft_wrap=True)


def headline(study: MetricStudy) -> list[str]:
    """Who leads, and what cross-validation finds of the truth where there is one."""
    order = np.argsort(-study.estimate.mean(axis=1))
    best, *others = (study.detectors[row] for row in order)
    cells = int((study.estimate.argmax(axis=0) == order[0]).sum())
    lines = [
        f"{best} leads on average, and in {cells} of {len(study.cells)} cells"
        + (f"; then {others[0]}" if others else "")
    ]
    if study.has_truth and study.has_folds and study.testable:
        rates = study.rates(ALPHA)
        lines.append(
            f"differences of the truth found by a cross-validation (p <= {ALPHA}): hit rate {rates.hits}, error rate "
            f"{rates.errors}, both out of {len(study.folds)}"
        )
    return lines


def _mean(study: MetricStudy, row: int, training: str) -> float:
    return float(np.mean([value for value, cell in zip(study.estimate[row], study.cells) if cell.training == training]))

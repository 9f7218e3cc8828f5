"""What a command that measured something says at its end."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from oodscope.document.wording import heading, headline_metrics, percent
from oodscope.execution.progress import Progress
from oodscope.jobs.job import Job, execute
from oodscope.jobs.train import TrainedSeed
from oodscope.runs.crossval.outcome import CrossValidation
from oodscope.runs.crossval.study import MetricStudy, study_metric
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.seeds import over_seeds
from oodscope.runs.models.run import Study

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


def execute_and_show(job: Job, progress: Progress, as_json: bool) -> None:
    """Run a job, or one for each seed of a recipe, and say what came out; several seeds end in a table of all."""
    done = [execute(each, progress) for each in job.each_seed()]
    if len(done) == 1:
        show(done[0], as_json=as_json)
        return
    summary = over_seeds([result for result, _ in done])
    if as_json:
        rows = json.loads(summary.to_dataframe().to_json(orient="records"))
        told = {"runs": [content(result, folder) for result, folder in done], "over_seeds": rows}
        sys.stdout.write(json.dumps(told) + "\n")
        return
    for result, folder in done:
        show((result, folder), as_json=False)
    for protocol in job.protocols:
        for metric in headline_metrics(protocol):
            Console().print(summary.table(protocol, metric))


def show(*done: tuple[Result, Path], as_json: bool, page: Path | None = None) -> None:
    """Tables and paths for people, or one JSON object for machines: the first run, with an attack that followed.

    Parameters
    ----------
    page : the report over all of them, if one was written.
    """
    if as_json:
        told = content(*done[0]) | ({} if page is None else {"report": str(page)})
        if len(done) > 1:
            told["attack"] = content(*done[1])
        sys.stdout.write(json.dumps(told) + "\n")
        return
    console = Console()
    for result, folder in done:
        for protocol in result.record.protocols:
            for metric in headline_metrics(protocol):
                console.print(result.table(protocol, metric))
        for note in result.record.notes:
            console.print(f"note: {note}", markup=False, highlight=False)
        for detector, reason in result.record.skipped.items():
            console.print(f"skipped {detector}: {reason}", markup=False, highlight=False)
        console.print(f"result: {folder}", markup=False, highlight=False, soft_wrap=True)
        if page is None:
            console.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    if page is not None:
        console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)


def content(result: Result, folder: Path) -> dict[str, Any]:
    """A run for machines: record, folder and measurements."""
    rows = json.loads(result.to_dataframe().to_json(orient="records"))
    return {"run": result.record.model_dump(mode="json"), "folder": str(folder), "measurements": rows}


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


def show_training(done: Sequence[TrainedSeed], as_json: bool) -> None:
    """The last epoch and the test accuracy of each network, and where its weights are."""
    if as_json:
        rows = [
            {
                "seed": each.seed,
                "history": [epoch.model_dump() for epoch in each.trained.history],
                "test_accuracy": each.test_accuracy,
                "folder": str(each.folder),
            }
            for each in done
        ]
        sys.stdout.write(json.dumps({"recipe": done[0].trained.recipe.describe(), "networks": rows}) + "\n")
        return
    console = Console()
    table = Table("seed", "epochs", "loss", "test accuracy", "seconds", box=None, pad_edge=False, header_style="bold")
    for each in done:
        history = each.trained.history
        seconds = sum(epoch.seconds for epoch in history)
        cells = (f"{history[-1].loss:.4f}", percent(each.test_accuracy), f"{seconds:.1f}")
        table.add_row(str(each.seed), str(len(history)), *cells)
    console.print(table)
    for each in done:
        console.print(f"saved: {each.folder}", markup=False, highlight=False, soft_wrap=True)

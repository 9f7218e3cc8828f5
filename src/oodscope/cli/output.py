"""What a command that measured something prints at its end."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from oodscope.document.wording import percent
from oodscope.execution.plan import WorkPlan
from oodscope.execution.ranks import Ranks
from oodscope.jobs.mirror import published_as
from oodscope.jobs.outcome import Finished
from oodscope.protocols.registry import headline_metrics
from oodscope.results.record import ALARM
from oodscope.runs.attack.exporting import OUTLIERS
from oodscope.runs.comparison.recommendation import recommended
from oodscope.runs.crossval.fidelity import claims
from oodscope.runs.crossval.run import HEADLINE, CrossValidation
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.crossval.summary import summary
from oodscope.runs.encoders.run import Scorecard
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.seeds import SeedSummary
from oodscope.runs.fit.run import Fit
from oodscope.runs.models.run import Study
from oodscope.runs.stream.gains import summary as gain_summary
from oodscope.runs.stream.run import StreamRun
from oodscope.runs.training.run import Training


def show_crossval(outcome: CrossValidation, files: Sequence[Path], as_json: bool) -> None:
    """The mean AUROC of each detector, what the study says in sentences, and where the rest was written."""
    if as_json:
        rows = json.loads(outcome.draws.frame.to_json(orient="records"))
        record = outcome.record.model_dump(mode="json")
        sys.stdout.write(json.dumps({"run": record, "files": [str(path) for path in files], "rows": rows}) + "\n")
        return
    console = Console()
    study = study_metric(outcome.draws, HEADLINE)
    console.print(summary(outcome.draws))
    for line in claims(outcome.draws, study):
        console.print(line, markup=False, highlight=False)
    for note in outcome.record.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    console.print(f"page: {files[0]}", markup=False, highlight=False, soft_wrap=True)


def show_finished(finished: Finished | WorkPlan, as_json: bool) -> None:
    """What came out of a job, by its kind; of a plan that a queue has taken, how to watch it."""
    if isinstance(finished, WorkPlan):
        words = f"{len(finished.units)} units are with the queue; watch them: oodscope status {finished.folder}"
        told = json.dumps({"plan": str(finished.folder), "units": len(finished.units)})
        sys.stdout.write((told if as_json else words) + "\n")
        return
    result = finished.result
    if isinstance(result, CrossValidation):
        show_crossval(result, finished.files, as_json)
    elif isinstance(result, Study):
        show_study(result, finished.files, as_json)
    elif isinstance(result, Scorecard):
        show_scorecard(result, finished.files, as_json)
    elif isinstance(result, SeedSummary):
        show_seeds(result, finished.runs, as_json)
    elif isinstance(result, Fit):
        show_fit(result, finished.files[0], as_json)
    elif isinstance(result, Training):
        if Ranks.here().first:  # of those that shared it
            show_training(result, finished.files[0], as_json)
    elif isinstance(result, StreamRun):
        show_streams(result, finished.files[0], as_json)
    else:
        show(*finished.runs, as_json=as_json)
    if not as_json:
        show_published(finished)


def show_published(finished: Finished) -> None:
    """Where results are that a URL was given for; nothing where a folder was."""
    for path in (*(folder for _, folder in finished.runs), *finished.files):
        if (url := published_as(path)) != str(path):
            sys.stdout.write(f"published: {url}\n")


def show_seeds(summary: SeedSummary, runs: Sequence[tuple[Result, Path]], as_json: bool) -> None:
    """Every run, and the table over all of them."""
    if as_json:
        rows = json.loads(summary.to_dataframe().to_json(orient="records"))
        runs_content = [content(result, folder) for result, folder in runs]
        sys.stdout.write(json.dumps({"runs": runs_content, "over_seeds": rows}) + "\n")
        return
    for result, folder in runs:
        show((result, folder), as_json=False)
    for protocol in summary.first.record.protocols:
        for metric in headline_metrics(protocol, summary.first.measurements):
            Console().print(summary.table(protocol, metric))


def show_fit(fit: Fit, place: Path, as_json: bool) -> None:
    """The threshold, what it promises, and where the scorer was saved."""
    detector = fit.detector
    if as_json:
        content = {"detector": detector.id, "threshold": detector.threshold, "guarantee": str(detector.guarantee)}
        sys.stdout.write(json.dumps(content | {"file": detector.file, "folder": str(place)}) + "\n")
        return
    size = Path(detector.file).stat().st_size / 2**20
    sys.stdout.write(f"{detector.id}: reject above {detector.threshold:.6g}\n")
    sys.stdout.write(f"{detector.guarantee}\n")
    sys.stdout.write(f"saved: {detector.file} ({size:.1f} MiB)\n")
    sys.stdout.write(f"result: {place}\n")


def show(
    *done: tuple[Result, Path], as_json: bool, page: Path | None = None, further: Sequence[str] = ("attack",)
) -> None:
    """Tables and paths for people, or one JSON object for machines: the first run, and those that followed.

    Parameters
    ----------
    further : the keys of those that followed.
    page : the report over all of them, if one was written.
    """
    if as_json:
        shown = content(*done[0]) | ({} if page is None else {"report": str(page)})
        shown |= {name: content(*each) for name, each in zip(further, done[1:])}
        sys.stdout.write(json.dumps(shown) + "\n")
        return
    console = Console()
    for result, folder in done:
        for protocol in result.record.protocols:
            for metric in headline_metrics(protocol, result.measurements):
                console.print(result.table(protocol, metric))
        for line in recommended(result):
            console.print(line, markup=False, highlight=False)
        for line in tuned(result):
            console.print(line, markup=False, highlight=False)
        for note in result.record.notes:
            line = note if note.startswith(ALARM) else f"note: {note}"
            console.print(line, markup=False, highlight=False)
        for detector, reason in result.record.skipped.items():
            console.print(f"skipped {detector}: {reason}", markup=False, highlight=False)
        console.print(f"result: {folder}", markup=False, highlight=False, soft_wrap=True)
        if (found := folder / OUTLIERS).is_dir():
            told = f"outliers: {found}: {len(list(found.iterdir()))} sets, each for --near or --ood-train"
            console.print(told, markup=False, highlight=False, soft_wrap=True)
        if page is None:
            console.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    if page is not None:
        console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)


def tuned(result: Result) -> list[str]:
    """What a search chose for each detector, on which data and among how many; nothing for default parameters."""
    lines = []
    for detector, context in result.scores.context.detectors.items():
        if context.tuning == "default" or context.grid_size is None:
            continue
        chosen = ", ".join(f"{key}={value}" for key, value in context.params.items()) or "no parameters"
        reached = "" if context.validation_auroc is None else f", validation AUROC {percent(context.validation_auroc)}"
        lines.append(f"tuned {detector}: {chosen} ({context.tuning}, best of {context.grid_size}{reached})")
    return lines


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
    console.print(study.summary())
    for path in files:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)


def show_scorecard(card: Scorecard, files: Sequence[Path], as_json: bool) -> None:
    """Every table of the scorecard, what may be said of the order, and where the rest was written."""
    if as_json:
        rows = json.loads(card.measurements.to_dataframe().to_json(orient="records"))
        record = card.record.model_dump(mode="json")
        sys.stdout.write(json.dumps({"run": record, "files": [str(each) for each in files], "rows": rows}) + "\n")
        return
    console = Console()
    for table in card.tables().values():
        console.print(table)
    for line in (card.verdict(), *(str(path) for path in files)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_streams(run: StreamRun, place: Path, as_json: bool) -> None:
    """AUROC within windows, false alarms, what is gained over the baseline, and where the rest is."""
    if as_json:
        rows = json.loads(run.measurements.to_dataframe().to_json(orient="records"))
        record = run.record.model_dump(mode="json")
        sys.stdout.write(json.dumps({"run": record, "folder": str(place), "measurements": rows}) + "\n")
        return
    console = Console()
    console.print(run.table())
    console.print(run.table(metric="alarms_per_1000"))
    if len(run.scores.detectors) > 1:
        console.print(run.table("gains"))
        console.print(gain_summary(run.gains()), markup=False, highlight=False)
    for note in run.record.notes:
        console.print(f"note: {note}", markup=False, highlight=False)
    console.print(f"result: {place}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report: {place / 'report.html'}", markup=False, highlight=False, soft_wrap=True)


def show_training(training: Training, place: Path, as_json: bool) -> None:
    """The last epoch and the test accuracy of each network, and where its weights are."""
    if as_json:
        networks = [{**each.model_dump(), "test_accuracy": each.accuracy} for each in training.networks]
        content = {"run": training.record.model_dump(mode="json"), "folder": str(place)}
        sys.stdout.write(json.dumps(content | {"recipes": list(training.recipes), "networks": networks}) + "\n")
        return
    console = Console()
    console.print(training.table())
    for each in training.networks:
        console.print(f"saved: {each.folder}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"result: {place}", markup=False, highlight=False, soft_wrap=True)

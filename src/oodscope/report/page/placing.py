"""Where the sections of each run stand on a page that shows several: ids are unique, links lead to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from oodscope.document.trial import Trial
from oodscope.document.weakness import Subject, Weakness
from oodscope.protocols.registry import in_order
from oodscope.report.page.networks import distinctions
from oodscope.results.run import Run
from oodscope.runs.evaluation.run import Result
from oodscope.runs.evaluation.trials import trials_of

TEMPLATES = ("evaluation", "attack", "crossval", "generated")
"""Kinds that have templates of their own, with a section for each of their anchors; all others are shown by the blocks
of their chapter, in one section."""


def numbered_runs(runs: Sequence[Run]) -> Iterator[tuple[Run, int]]:
    """Every run with its number among those of its kind."""
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.kind] = counts.get(run.kind, 0) + 1
        yield run, counts[run.kind]


def place(run: Run, number: int, anchor: str) -> str:
    """The id on the page of a section that the run calls ``anchor``."""
    return f"{anchor}-{number}" if run.kind in TEMPLATES else f"run-{run.kind}-{number}"


def placed_trials(runs: Sequence[Run], metric: str = "") -> list[Trial]:
    """The trials of all runs, protocol by protocol.

    Parameters
    ----------
    metric : in place of the headlines; evaluations alone have others.
    """
    apart = distinctions(runs)
    trials = [
        replace(trial, anchor=place(run, number, trial.anchor), where=_where(trial, apart))
        for run, number in ordered(runs)
        for trial in (_other_trials(run, metric) if metric else run.trials())
    ]
    order = in_order(trial.protocol for trial in trials)
    return sorted(trials, key=lambda trial: order.index(trial.protocol))


def _where(trial: Trial, apart: Mapping[str, str]) -> str:
    return f"{trial.where} ({apart[trial.model]})" if trial.model in apart else trial.where


def _other_trials(run: Run, metric: str) -> list[Trial]:
    return trials_of(run, metric) if isinstance(run, Result) else []


def placed_weaknesses(runs: Sequence[Run], subject: Subject) -> list[Weakness]:
    """What any of the runs knows against a detector."""
    return [
        replace(weakness, anchor=place(run, number, weakness.anchor))
        for run, number in ordered(runs)
        for weakness in run.weaknesses(subject)
    ]


def ordered(runs: Sequence[Run]) -> list[tuple[Run, int]]:
    """Every run with its number, in the order in which the page shows kinds."""

    def position(numbered: tuple[Run, int]) -> int:
        kind = numbered[0].kind
        return TEMPLATES.index(kind) if kind in TEMPLATES else len(TEMPLATES)

    return sorted(numbered_runs(runs), key=position)

"""Finished: what the execution of a job leaves."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from oodscope.runs.attack.run import Attack
    from oodscope.runs.crossval.run import CrossValidation
    from oodscope.runs.encoders.run import Scorecard
    from oodscope.runs.evaluation.run import Result
    from oodscope.runs.evaluation.seeds import SeedSummary
    from oodscope.runs.fit.run import Fit
    from oodscope.runs.models.run import Study
    from oodscope.runs.stream.run import StreamRun
    from oodscope.runs.training.run import Training

    Outcome = Result | SeedSummary | Study | Scorecard | CrossValidation | Attack | StreamRun | Fit | Training


class Finished(NamedTuple):
    """A job that was executed.

    Parameters
    ----------
    kind : evaluation, seeds, study, encoders, crossval, attack, stream, fit or training.
    result : what the Python function of that kind returns.
    runs : saved evaluations or the attack, each with its folder.
    files : what else was written.
    """

    kind: str
    result: "Outcome"
    runs: "tuple[tuple[Result, Path], ...]" = ()
    files: tuple[Path, ...] = ()

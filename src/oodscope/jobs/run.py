"""``run``: one function for whatever a YAML file declares."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from oodscope.base.config import read_yaml
from oodscope.base.errors import UnknownNameError, UsageError
from oodscope.execution.progress import SILENT, Progress
from oodscope.jobs.checking import check_declared

if TYPE_CHECKING:
    from oodscope.runs.attack.run import Attack
    from oodscope.runs.crossval.run import CrossValidation
    from oodscope.runs.evaluation.run import Result
    from oodscope.runs.evaluation.seeds import SeedSummary
    from oodscope.runs.fit.run import Fit
    from oodscope.runs.models.run import Study
    from oodscope.runs.training.run import Training

    Outcome = Result | SeedSummary | Study | CrossValidation | Attack | Fit | Training

PACKAGED = Path(__file__).parent / "packaged"
"""Job files that come with the package, run by their name."""

_KINDS = {
    "plan": "crossval",
    "models": "study",
    "attack": "attack",
    "fit": "fit",
    "train": "training",
    "activations": "activations",
    "scores": "scores",
}
"""The key that makes a declaration another kind of job than an evaluation."""


class Finished(NamedTuple):
    """A job that was executed.

    Parameters
    ----------
    kind : evaluation, seeds, study, crossval, attack, fit or training.
    result : what the Python function of that kind returns.
    runs : saved evaluations or the attack, each with its folder.
    files : what else was written.
    """

    kind: str
    result: "Outcome"
    runs: "tuple[tuple[Result, Path], ...]" = ()
    files: tuple[Path, ...] = ()


def run(job: str | Path, *, output: str | Path | None = None, progress: Progress = SILENT) -> "Outcome":
    """Execute what a YAML file declares, and return what the Python function of that kind returns.

    An evaluation gives a ``Result`` (with ``as_seeds`` the summary over seeds), a list ``models`` a ``Study``, a
    ``plan`` a ``CrossValidation``, ``attack`` an ``Attack``, ``fit`` a ``Fit``, ``train`` a ``Training``,
    ``activations`` and ``scores`` a ``Result`` from arrays. Names, places, device and output folder are checked before
    the first image is read::

        result = oods.run("job.yaml")
        print(result.table())

    Parameters
    ----------
    job : the file, or the name of a packaged one, such as ``demo``.
    output : where results go, instead of what the file says.
    progress : receives how far the work has come; ``ConsoleProgress()`` of ``oodscope.execution.console`` shows bars.

    Examples
    --------
    >>> import json
    >>> job = {"benchmark": "glyphs", "images_per_class": 4, "detectors": ["msp"], "device": "cpu"}
    >>> job |= {"model": {"architecture": "small_cnn", "train": {"epochs": 1}}, "output": str(folder)}
    >>> _ = (folder / "job.yaml").write_text(json.dumps(job))
    >>> oods.run(folder / "job.yaml").scores.detectors
    ['msp']
    """
    return execute_file(job, output=output, progress=progress).result


def execute_file(
    job: str | Path,
    *,
    output: str | Path | None = None,
    progress: Progress = SILENT,
    ready: Callable[[], None] = lambda: None,
) -> Finished:
    """``run``, with the folders and files that were written."""
    path = find_job(job)
    declared = read_yaml(path)
    if not isinstance(declared, Mapping):
        raise UsageError(f"{path}: not a job; it has keys such as benchmark, model and detectors")
    if output is not None:
        declared = {**declared, "output": str(output)}
    return execute_declared(declared, str(path), folder=path.parent, progress=progress, ready=ready)


def execute_declared(
    declared: Mapping[str, Any],
    where: str,
    *,
    folder: Path = Path(),
    progress: Progress = SILENT,
    ready: Callable[[], None] = lambda: None,
) -> Finished:
    """Execute a job given by its keys.

    Parameters
    ----------
    where : what messages begin with: a file, or a command.
    folder : what paths in it are relative to.
    ready : called when names and places have been checked, before torch is imported.
    """
    kind = kind_of(declared, where)
    check_declared(declared, where)
    ready()
    return _EXECUTE[kind](declared, where, folder, progress)


def kind_of(declared: Mapping[str, Any], where: str) -> str:
    """Which kind of job the keys declare."""
    keys = [key for key in _KINDS if key in declared]
    if "plan" in keys and "train" in keys:
        keys.remove("train")  # how the networks of folds are trained
    if len(keys) > 1:
        raise UsageError(f"{where}: {keys[0]} and {keys[1]} are two jobs; put each into a file of its own")
    return _KINDS[keys[0]] if keys else "evaluation"


def find_job(job: str | Path) -> Path:
    """The file itself, or the packaged one of that name."""
    path = Path(job)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return path
    names = sorted(each.stem for each in PACKAGED.glob("*.yaml"))
    if str(job) not in names:
        raise UnknownNameError("job", str(job), names, f"Packaged: {', '.join(names)} (or give a YAML file)")
    return PACKAGED / f"{job}.yaml"


# what executes a job imports torch, which a misspelt name must not wait for: hence the late imports below


def _evaluation(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.job import Job, execute
    from oodscope.runs.evaluation.seeds import over_seeds

    job = Job.read(declared, where, folder)
    job.check()
    runs = tuple(execute(each, progress) for each in job.each_seed())
    if not job.as_seeds:
        return Finished("evaluation", runs[0][0], runs)
    return Finished("seeds", over_seeds([result for result, _ in runs]), runs)


def _study(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.study import execute_study, read_study

    jobs = read_study(declared, where, folder)
    study, files = execute_study(jobs, Path(jobs[0].job.output), progress)
    return Finished("study", study, files=tuple(files))


def _crossval(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.crossval import CrossvalJob, execute_crossval

    outcome, files = execute_crossval(CrossvalJob.read(declared, where, folder), progress)
    return Finished("crossval", outcome, files=tuple(files))


def _attack(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.attack import AttackJob, execute_attack

    attack, place = execute_attack(AttackJob.read(declared, where, folder), progress)
    return Finished("attack", attack, runs=((attack.result, place),))


def _fit(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.fit import FitJob, execute_fit

    fit, place = execute_fit(FitJob.read(declared, where, folder), progress)
    return Finished("fit", fit, files=(place,))


def _training(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.train import execute_training, read_training

    training, place = execute_training(read_training(declared, where, folder), progress)
    return Finished("training", training, files=(place,))


def _activations(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.arrays import ActivationsJob

    runs = (ActivationsJob.read(declared, where, folder).execute(progress),)
    return Finished("evaluation", runs[0][0], runs)


def _scores(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.arrays import ScoresJob

    runs = (ScoresJob.read(declared, where, folder).execute(),)
    return Finished("evaluation", runs[0][0], runs)


_EXECUTE = {
    "evaluation": _evaluation,
    "study": _study,
    "crossval": _crossval,
    "attack": _attack,
    "fit": _fit,
    "training": _training,
    "activations": _activations,
    "scores": _scores,
}

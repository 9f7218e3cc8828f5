"""``run``: one function for whatever a YAML file declares."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oodscope.base.config import read_yaml
from oodscope.base.errors import UnknownNameError, UsageError
from oodscope.base.place import is_url
from oodscope.execution.progress import SILENT, Progress
from oodscope.execution.ranks import Ranks
from oodscope.jobs.checking import check_declared
from oodscope.jobs.mirror import output_folder, publish
from oodscope.jobs.outcome import Finished

if TYPE_CHECKING:
    from oodscope.execution.launch.launcher import Launcher
    from oodscope.execution.plan import WorkPlan
    from oodscope.jobs.outcome import Outcome
    from oodscope.jobs.units.divided import Declared

PLAN = "plan.json"
"""The file of a folder that holds a plan of work."""

PACKAGED = Path(__file__).parent / "packaged"
"""Job files that come with the package, run by their name."""

_KINDS = {
    "stream": "stream",
    "plan": "crossval",
    "models": "study",
    "encoders": "encoders",
    "attack": "attack",
    "fit": "fit",
    "train": "training",
    "activations": "activations",
    "scores": "scores",
}
"""The key that makes a declaration another kind of job than an evaluation."""


def run(
    job: str | Path, *, output: str | Path | None = None, workers: int | None = None, progress: Progress = SILENT
) -> "Outcome":
    """Execute what a YAML file declares, and return what the Python function of that kind returns.

    An evaluation gives a ``Result`` (with ``as_seeds`` the summary over seeds), a list ``models`` a ``Study``,
    a list ``encoders`` a ``Scorecard``, a ``plan`` a ``CrossValidation``, ``attack`` an ``Attack``, ``stream`` a
    ``StreamRun``, ``fit`` a ``Fit``, ``train`` a ``Training``, ``activations`` and ``scores`` a ``Result`` from arrays.
    Names, places, device and output folder are checked before the first image is read::

        result = oods.run("job.yaml")
        print(result.table())

    Parameters
    ----------
    job : the file, or the name of a packaged one, such as ``demo``; or the folder of a plan (``oodscope plan``), of
        which is done what is left.
    output : where results go, instead of what the file says.
    workers : processes of this machine that share the work, with the same numbers; by default it is done in this one.
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
    finished = execute_file(job, output=output, launcher=_local(workers), progress=progress)
    assert isinstance(finished, Finished), "processes of this machine are waited for"
    return finished.result


def _local(workers: int | None) -> "Launcher | None":
    if workers is None:
        return None
    from oodscope.execution.launch.local import LocalLauncher

    return LocalLauncher(workers)


def execute_file(
    job: str | Path,
    *,
    output: str | Path | None = None,
    launcher: "Launcher | None" = None,
    progress: Progress = SILENT,
    ready: Callable[[], None] = lambda: None,
) -> "Finished | WorkPlan":
    """``run``, with the folders and files that were written; the plan where a queue has taken it."""
    if is_url(str(job)) or (Path(job) / PLAN).is_file():
        ready()
        return execute_plan(job, launcher, progress)
    path, declared = _read_file(job)
    if output is not None:
        declared = {**declared, "output": str(output)}
    return execute_declared(declared, str(path), folder=path.parent, launcher=launcher, progress=progress, ready=ready)


def declared_file(job: str | Path) -> "Declared":
    """What a YAML file declares, its names checked."""
    from oodscope.jobs.units.divided import Declared

    path, declared = _read_file(job)
    kind = kind_of(declared, str(path))
    check_declared(declared, str(path))
    return Declared(kind, in_a_folder(declared), str(path), path.parent)


def _read_file(job: str | Path) -> tuple[Path, dict[str, Any]]:
    path = find_job(job)
    declared = read_yaml(path)
    if not isinstance(declared, Mapping):
        raise UsageError(f"{path}: not a job; it has keys such as benchmark, model and detectors")
    return path, dict(declared)


def execute_plan(folder: Path | str, launcher: "Launcher | None", progress: Progress = SILENT) -> "Finished | WorkPlan":
    """Do what is left of a plan, and join its results."""
    from oodscope.execution.launch.launcher import refuse_unfinished
    from oodscope.execution.plan import WorkPlan
    from oodscope.execution.work import work
    from oodscope.jobs.units.divided import join_plan
    from oodscope.jobs.units.kinds import do

    plan = WorkPlan(folder)
    kind = kind_of(plan.contents.job, plan.contents.where)
    plan.forgive()
    if launcher is not None:
        launcher.run(plan, progress)
        if not launcher.waits:
            return plan
    else:
        work(plan, do, progress=progress)
        refuse_unfinished(plan)
    finished = join_plan(plan, kind, progress)
    publish(Path(plan.contents.output))
    return finished


def execute_declared(
    declared: Mapping[str, Any],
    where: str,
    *,
    folder: Path = Path(),
    launcher: "Launcher | None" = None,
    progress: Progress = SILENT,
    ready: Callable[[], None] = lambda: None,
) -> "Finished | WorkPlan":
    """Execute a job given by its keys.

    Parameters
    ----------
    where : what messages begin with: a file, or a command.
    folder : what paths in it are relative to.
    launcher : who does the work, divided; by default it is done in this process.
    ready : called when names and places have been checked, before torch is imported.
    """
    kind = kind_of(declared, where)
    check_declared(declared, where)
    _check_ranks(kind, where)
    declared = in_a_folder(declared)
    ready()
    if launcher is not None:
        from oodscope.jobs.units.divided import Declared, run_divided

        finished = run_divided(Declared(kind, declared, where, folder), launcher, progress)
    else:
        finished = _EXECUTE[kind](declared, where, folder, progress)
    if isinstance(finished, Finished) and "output" in declared:
        publish(Path(str(declared["output"])))
    return finished


def in_a_folder(declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The declaration with a folder in the place of an output that is a URL."""
    output = declared.get("output")
    return {**declared, "output": output_folder(output)} if isinstance(output, str) else declared


def _check_ranks(kind: str, where: str) -> None:
    ranks = Ranks.here()
    # srun may start many processes that share a study; torchrun starts ranks of one training
    if kind != "training" and not ranks.alone and "TORCHELASTIC_RUN_ID" in os.environ:
        raise UsageError(
            f"{where}: torchrun started {ranks.count} ranks, and only a training is shared by ranks; "
            f"run it without torchrun, with --workers {ranks.count}"
        )


def kind_of(declared: Mapping[str, Any], where: str) -> str:
    """Which kind of job the keys declare."""
    keys = [key for key in _KINDS if key in declared]
    if "plan" in keys and "train" in keys:
        keys.remove("train")  # how the networks of folds are trained
    if "stream" in keys and "activations" in keys:
        keys.remove("activations")  # what streams are drawn from
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
    return _together("study", declared, where, folder, progress)


def _encoders(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    return _together("encoders", declared, where, folder, progress)


def _together(kind: str, declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.execution.launch.launcher import refuse_unfinished
    from oodscope.execution.work import work
    from oodscope.jobs.units.divided import Declared, join_plan, write_plan
    from oodscope.jobs.units.kinds import do

    # a study is always divided: whoever runs it at the same time, each model is evaluated once
    plan = write_plan(Declared(kind, declared, where, folder), progress=progress)
    work(plan, do, progress=progress)
    refuse_unfinished(plan)
    return join_plan(plan, kind, progress)


def _crossval(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.crossval import CrossvalJob, execute_crossval

    outcome, files = execute_crossval(CrossvalJob.read(declared, where, folder), progress)
    return Finished("crossval", outcome, files=tuple(files))


def _attack(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.attack import AttackJob, execute_attack

    attack, place = execute_attack(AttackJob.read(declared, where, folder), progress)
    return Finished("attack", attack, runs=((attack.result, place),))


def _stream(declared: Mapping[str, Any], where: str, folder: Path, progress: Progress) -> Finished:
    from oodscope.jobs.stream import StreamArraysJob, StreamJob

    kind = StreamArraysJob if "activations" in declared else StreamJob
    run, place = kind.read(declared, where, folder).execute(progress)
    return Finished("stream", run, files=(place,))


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
    "encoders": _encoders,
    "crossval": _crossval,
    "attack": _attack,
    "stream": _stream,
    "fit": _fit,
    "training": _training,
    "activations": _activations,
    "scores": _scores,
}

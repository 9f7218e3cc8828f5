"""A study as a configuration: one evaluation of many models, resumed where it stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oodscope import __version__
from oodscope.base.config import parse_declared
from oodscope.base.errors import UsageError
from oodscope.base.files import atomic_path, file_sha256, write_text
from oodscope.base.hashing import fingerprint
from oodscope.jobs.job import Job
from oodscope.jobs.task import make_detectors
from oodscope.results.measurement import Measurements
from oodscope.runs.evaluation.run import Result
from oodscope.runs.models.run import STUDIED, Study, StudyMember, StudyModel


@dataclass(frozen=True)
class StudyJob:
    """One model of a study: what it is called, and its evaluation."""

    model: StudyModel
    job: Job

    @property
    def key(self) -> str:
        """Of everything that decides the result: the declaration, its labels, the files that it names, this version."""
        named = [self.job.benchmark] if isinstance(self.job.benchmark, str) else []
        files = [Path(name) for name in (*self.job.model.files, *named)]
        digests = [file_sha256(path) for path in files if path.is_file()]
        detectors = make_detectors(self.job.detectors)
        if not isinstance(detectors, str):
            # networks of detectors are named by their folders
            digests += [each.identity for each in detectors if each.identity != each.id]
        declared = self.job.model_dump(mode="json", exclude={"output", "device", "batch_size"})
        return fingerprint(declared, self.labels, digests, __version__)[:24]

    @property
    def labels(self) -> dict[str, Any]:
        """What is recorded of the model with its result."""
        return self.model.model_dump(exclude_defaults=True)


def read_study(declared: Mapping[str, Any], where: str, folder: Path = Path()) -> list[StudyJob]:
    """The keys of a job, with a list ``models`` in the place of ``model``; each may add its name and labels.

    Parameters
    ----------
    where : what messages begin with.
    folder : what paths are relative to.
    """
    declared = {"protocols": [STUDIED], **declared}
    if STUDIED not in protocol_names(declared):
        raise UsageError(f"{where}: a study shows the numbers of {STUDIED}; add it to protocols")
    jobs = read_members(declared, "models", where, folder)
    # names and pairs first: a study should not fail after its last model
    Study([StudyMember(each.model, Measurements()) for each in jobs])
    return jobs


def protocol_names(declared: Mapping[str, Any]) -> list[str]:
    """The names in ``protocols: [a, {b: {option: value}}]``."""
    return [name for each in declared["protocols"] for name in ([each] if isinstance(each, str) else each)]


def read_members(declared: Mapping[str, Any], key: str, where: str, folder: Path) -> list[StudyJob]:
    """One job for each network of the list under ``key``; all other keys are shared."""
    shared = {name: value for name, value in declared.items() if name != key}
    models = declared[key]
    if not isinstance(models, list) or not all(isinstance(entry, Mapping) for entry in models):
        raise UsageError(f"{where}: {key} must be a list of models, each with an architecture")
    jobs = []
    for number, entry in enumerate(models):
        labels = {name: entry[name] for name in entry if name in StudyModel.model_fields}
        labels.setdefault("name", str(entry.get("architecture", "")))
        spec = {name: entry[name] for name in entry if name not in StudyModel.model_fields}
        model = parse_declared(StudyModel, labels, f"{where}: {key}.{number}")
        jobs.append(StudyJob(model, Job.read({**shared, "model": spec}, where, folder)))
    return jobs


def join_study(jobs: list[StudyJob], folders: Sequence[Path], output: Path) -> tuple[Study, list[Path]]:
    """The study of models that are evaluated, and the files that were written, in its folder ``study`` and beside it.

    Parameters
    ----------
    folders : of the evaluations, in the order of the models.
    """
    from oodscope.report.paper.study import write_study_figures

    study = Study(
        [StudyMember(each.model, Result.load(folder).measurements) for each, folder in zip(jobs, folders, strict=True)]
    )
    study.save(output / "study")
    with atomic_path(output / "study.csv") as temporary:
        study.to_dataframe().to_csv(temporary, index=False, lineterminator="\n")
    write_text(output / "study.md", study.table().render("markdown"))
    figures = write_study_figures(study, output / "figures")
    return study, [output / "study.csv", output / "study.md", *figures]

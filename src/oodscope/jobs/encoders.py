"""A scorecard of encoders as a configuration: each evaluated under the detectors and protocols that fit it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oodscope.base.files import write_text
from oodscope.jobs.study import StudyJob, read_members
from oodscope.protocols.registry import read_protocols
from oodscope.runs.encoders.run import Scorecard, check_names, scorecard_of
from oodscope.runs.evaluation.run import Result
from oodscope.runs.models.run import STUDIED

DETECTORS = ("mcm", "gl_mcm", "neglabel", "negrefine", "logitgap", "msp", "ebo", "knn", "maha_free")
"""Those that are tried on every encoder: of words, of patches, of negative labels, of logits, of features alone."""

PROTOCOLS = ("standard", "full_spectrum", STUDIED)
"""Near and far; the same with covariate-shifted images as ID; the error rate, where an encoder classifies."""


def read_encoders(declared: Mapping[str, Any], where: str, folder: Path = Path()) -> list[StudyJob]:
    """The keys of a job, with a list ``encoders`` in the place of ``model``; each may add its name and labels.

    Detectors that do not apply to an encoder are left out and named in its record. One that ends in an embedding has no
    classes: protocols that judge its classification are left out for it.

    Parameters
    ----------
    where : what messages begin with.
    folder : what paths are relative to.
    """
    filled = {"detectors": list(DETECTORS), "protocols": list(PROTOCOLS), **declared, "skip_inapplicable": True}
    jobs = [_fitting(each) for each in read_members(filled, "encoders", where, folder)]
    check_names([each.model.name for each in jobs])
    return jobs


def _fitting(each: StudyJob) -> StudyJob:
    if not each.job.model.embedding:
        return each
    kept = [entry for entry in each.job.protocols if not any(one.classification for one in read_protocols(entry))]
    return StudyJob(each.model, each.job.model_copy(update={"protocols": kept}))


def join_encoders(jobs: Sequence[StudyJob], folders: Sequence[Path], output: Path) -> tuple[Scorecard, list[Path]]:
    """The scorecard of encoders that are evaluated, and the files that were written.

    Parameters
    ----------
    folders : of the evaluations, in the order of the encoders.
    """
    card = scorecard_of((each.model, Result.load(folder)) for each, folder in zip(jobs, folders, strict=True))
    card.save(output / "scorecard")
    write_text(output / "encoders.md", "\n".join(table.render("markdown") for table in card.tables().values()))
    write_text(output / "encoders.csv", card.table("encoders").render("csv"))
    return card, [output / "encoders.csv", output / "encoders.md"]

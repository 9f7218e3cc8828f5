"""What a figure asks of studies of generated sets."""

from collections.abc import Sequence

from oodscope.base.errors import DataError
from oodscope.runs.generated.run import GeneratedStudy
from oodscope.runs.opened import OpenedRuns


def studies(runs: OpenedRuns) -> Sequence[GeneratedStudy]:
    """Those among some runs."""
    if not runs.generated:
        raise DataError("no study of generated sets among these runs")
    return runs.generated


def only_study(runs: OpenedRuns) -> GeneratedStudy:
    """The one study that a figure shows."""
    found = studies(runs)
    if len(found) > 1:
        raise DataError(f"{len(found)} studies of generated sets given, one needed")
    return found[0]


def foreign(study: GeneratedStudy) -> list[str]:
    """Sets of foreign images, generated ones first; there must be both kinds."""
    near, real = study.sanity.near(), study.real
    if not near:
        raise DataError("no generated near set in the study")
    if not real:
        raise DataError("no real near or far set beside the generated ones")
    return [*near, *real]

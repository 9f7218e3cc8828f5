"""What a figure asks of studies of generated sets."""

from collections.abc import Sequence

from oodscope.base.errors import DataError
from oodscope.results.opening import of_kind
from oodscope.results.run import Run
from oodscope.runs.generated.run import GeneratedStudy


def studies(runs: Sequence[Run]) -> Sequence[GeneratedStudy]:
    """Those among some runs."""
    found = of_kind(runs, GeneratedStudy)
    if not found:
        raise DataError("no study of generated sets among these runs")
    return found


def only_study(runs: Sequence[Run]) -> GeneratedStudy:
    """The one study that a figure shows."""
    found = studies(runs)
    if len(found) > 1:
        raise DataError(f"{len(found)} studies of generated sets given, one needed")
    return found[0]


def ood_sets(study: GeneratedStudy) -> list[str]:
    """Sets of OOD images, generated ones first; there must be both kinds."""
    near, real = study.sanity.near(), study.real
    if not near:
        raise DataError("no generated near set in the study")
    if not real:
        raise DataError("no real near or far set beside the generated ones")
    return [*near, *real]

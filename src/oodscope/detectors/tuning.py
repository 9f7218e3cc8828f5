"""Hyper-parameter search on validation data, and the record of what it chose."""

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.data.benchmark import Validation
from oodscope.detectors.base import Detector
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.results.measurement import Tuning


@dataclass(frozen=True)
class Choice:
    """What a search found; part of every result row.

    Parameters
    ----------
    track : ``default`` for parameters as given; ``id_only`` for a search against outliers made from known
        images; ``ood_val`` for a search on real validation outliers. Rows of different tracks are never ranked
        together.
    grid_size : how many combinations were tried.
    validation_auroc : of the best one, which is reported here and nowhere else.
    """

    track: Tuning
    params: dict[str, Any]
    grid_size: int = 1
    validation_auroc: float | None = None


def tune(
    detector: Detector,
    train: Activations | None,
    validation: Validation[Activations],
    track: Tuning = "ood_val",
) -> tuple[Detector, Choice]:
    """The detector with the parameters of its grid that rank the validation's outliers above its known images best.

    Only a ``Validation`` is accepted: there is no way to hand in a test set by mistake. Ties go to the
    first candidate. A detector without a grid comes back unchanged.
    """
    if not detector.grid:
        return detector, Choice(track, detector.get_params(deep=False))
    if train is None:
        train = validation.id
    candidates = detector.search_space(train)
    if not candidates:
        raise DetectorError(f"{detector.name}: no value of its grid fits these activations")
    judged = [validation.id, validation.ood]
    best: tuple[float, dict[str, Any]] | None = None
    for candidate, (known, foreign) in zip(candidates, detector.score_grid(candidates, train, validation.id, judged)):
        auroc = Ranking(known.cpu().numpy(), foreign.cpu().numpy()).auroc
        if best is None or auroc > best[0]:
            best = auroc, dict(candidate)
    assert best is not None, "there was at least one candidate"
    tuned = clone(detector).set_params(**best[1]).to(detector.device)
    return tuned, Choice(track, best[1], len(candidates), best[0])

"""Fit detectors, with their parameters as given or searched on validation data, and record choice and cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from oodscope.activations.activations import Activations
from oodscope.activations.probes.probe import RECORDED
from oodscope.base.errors import DetectorError
from oodscope.data.benchmark import Validation
from oodscope.detectors.base import Detector, Needs, parameters_json
from oodscope.detectors.estimator import clone
from oodscope.execution.memory import PeakMemory
from oodscope.metrics.metric import Tuning
from oodscope.metrics.ranking.ranking import Ranking


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
    for candidate, (id_scores, ood_scores) in zip(
        candidates, detector.score_grid(candidates, train, validation.id, judged)
    ):
        auroc = Ranking(id_scores.cpu().numpy(), ood_scores.cpu().numpy()).auroc
        if best is None or auroc > best[0]:
            best = auroc, dict(candidate)
    assert best is not None, "there was at least one candidate"
    tuned = clone(detector).set_params(**best[1]).to(detector.device)
    return tuned, Choice(track, best[1], len(candidates), best[0])


@dataclass(frozen=True)
class Fitted:
    """A detector ready to score, how its parameters were chosen, and what fitting cost.

    Parameters
    ----------
    id : the column's name: what the user asked for. A search changes parameters, not the name.
    fit_seconds, fit_mib : of the final fit.
    learned_from : how many images of which split it was fitted on; empty for a detector that does not learn.
    """

    id: str
    detector: Detector
    choice: Choice
    fit_seconds: float
    fit_mib: float | None
    learned_from: Mapping[str, int] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """What a score table says of its column."""
        probes = self.detector.probes
        return {
            "name": self.detector.name,
            "version": self.detector.version,
            "params": parameters_json(self.detector),
            "tuning": self.choice.track,
            "grid_size": self.choice.grid_size,
            "validation_auroc": self.choice.validation_auroc,
            "fit_seconds": self.fit_seconds,
            "learned_from": dict(self.learned_from),
            # the recorded pass gives the plain outputs too, so it comes in the place of the plain one
            "extra_forwards": len({name for probe in probes for name in probe.forwards} - {RECORDED}),
            "extra_backwards": len({name for probe in probes for name in probe.backwards}),
        }


def fit_detector(
    detector: Detector,
    train: Activations | None,
    val: Activations | None,
    *,
    search: Validation[Activations] | None = None,
    track: Tuning = "default",
) -> Fitted:
    """Fit one detector; with ``search``, its grid is searched on those validation activations first.

    The seconds are those of the final fit: what a user pays who knows the parameters.
    """
    asked, choice = detector.id, Choice("default", parameters_json(detector))
    if search is not None:
        detector, choice = tune(detector, train, search, track)
    started = perf_counter()
    with PeakMemory(str(detector.device)) as memory:
        detector.fit(train, val, ood_val=None if search is None else search.ood)
    return Fitted(asked, detector, choice, perf_counter() - started, memory.mib, _learned_from(detector, train, val))


def _learned_from(detector: Detector, train: Activations | None, val: Activations | None) -> dict[str, int]:
    """As ``Detector.fit`` chooses: training images for those who need them, held-out ones first for the others."""
    if not detector.learns:
        return {}
    given = {"id_train": train, "id_val": val}
    if Needs.TRAIN not in detector.needs and val is not None:
        given.pop("id_train")
    return {split: len(part) for split, part in given.items() if part is not None}

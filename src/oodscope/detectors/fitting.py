"""Fit detectors, with their parameters as given or searched, and time it."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from oodscope.activations import Activations
from oodscope.data import Validation
from oodscope.detectors.base import Detector, parameters_json
from oodscope.detectors.tuning import Choice, tune


@dataclass(frozen=True)
class Fitted:
    """A detector ready to score, how its parameters were chosen, and what fitting cost.

    Parameters
    ----------
    id : the column's name: what the user asked for. A search changes parameters, not the name.
    """

    id: str
    detector: Detector
    choice: Choice
    fit_seconds: float

    def record(self) -> dict[str, Any]:
        """What a score table says of its column."""
        return {
            "name": self.detector.name,
            "params": parameters_json(self.detector),
            "tuning": self.choice.track,
            "grid_size": self.choice.grid_size,
            "validation_auroc": self.choice.validation_auroc,
            "fit_seconds": self.fit_seconds,
        }


def fit_detector(
    detector: Detector,
    train: Activations | None,
    val: Activations | None,
    *,
    search: Validation[Activations] | None = None,
) -> Fitted:
    """Fit one detector; with ``search``, its grid is searched on those validation activations first.

    The seconds are those of the final fit: what a user pays who knows the parameters.
    """
    asked, choice = detector.id, Choice("default", parameters_json(detector))
    if search is not None:
        detector, choice = tune(detector, train, search)
    started = perf_counter()
    detector.fit(train, val, ood_val=None if search is None else search.ood)
    return Fitted(asked, detector, choice, perf_counter() - started)

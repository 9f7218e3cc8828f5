"""Fit detectors, with their parameters as given or searched, and measure what it costs."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

from oodscope.activations import Activations
from oodscope.data import Validation
from oodscope.detectors.base import Detector, parameters_json
from oodscope.detectors.tuning import Choice, tune
from oodscope.execution import PeakMemory
from oodscope.results.measurement import Tuning


@dataclass(frozen=True)
class Fitted:
    """A detector ready to score, how its parameters were chosen, and what fitting cost.

    Parameters
    ----------
    id : the column's name: what the user asked for. A search changes parameters, not the name.
    fit_seconds, fit_mib : of the final fit.
    """

    id: str
    detector: Detector
    choice: Choice
    fit_seconds: float
    fit_mib: float | None

    def record(self) -> dict[str, Any]:
        """What a score table says of its column."""
        return {
            "name": self.detector.name,
            "version": self.detector.version,
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
    return Fitted(asked, detector, choice, perf_counter() - started, memory.mib)

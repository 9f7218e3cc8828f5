"""ScoreContext: what a table of scores says of itself, enough to measure it again."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field

from oodscope.base.config import StrictModel, parse
from oodscope.metrics.interval import Intervals
from oodscope.metrics.metric import Population, Tuning


class DetectorContext(StrictModel):
    """How a column of scores came about.

    Parameters
    ----------
    name, version, params : the detector, the version of its score, its parameters.
    tuning, grid_size, validation_auroc : how parameters were chosen, among how many, and what the choice reached.
    learned_from : how many images of which roles it was fitted on.
    extra_forwards, extra_backwards : passes through the network beside the plain one, per image.
    fit_seconds, microseconds_per_image, peak_mib : what it cost; ``None`` where nobody measured.
    """

    name: str = ""
    version: int | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    tuning: Tuning = "default"
    grid_size: int | None = None
    validation_auroc: float | None = None
    learned_from: dict[str, int] | None = None
    extra_forwards: int | None = None
    extra_backwards: int | None = None
    fit_seconds: float | None = None
    microseconds_per_image: float | None = None
    peak_mib: float | None = None

    @property
    def passes(self) -> int:
        """Passes through the network beside the plain one; a backward pass counts as two forward ones."""
        return (self.extra_forwards or 0) + 2 * (self.extra_backwards or 0)

    @property
    def cost(self) -> tuple[int, float] | None:
        """What an image costs, in an order that puts passes first: each outweighs a detector's own arithmetic."""
        return None if self.microseconds_per_image is None else (self.passes, self.microseconds_per_image)

    def row(self) -> dict[str, Any]:
        """What every measurement of the detector says of it."""
        costs = self.model_dump(include={"params", "tuning", "fit_seconds", "microseconds_per_image", "peak_mib"})
        return costs | {"passes": None if self.extra_forwards is None else 1 + self.passes}


class ScoreContext(StrictModel):
    """What all scores of a table share; it travels with them, so that they suffice to measure again.

    Parameters
    ----------
    run, benchmark, benchmark_version, model, recipe, seed : what every measurement of the table carries.
    intervals : how intervals of its measurements are made: ``full``, ``fast`` or ``none``.
    fingerprint : of the network's weights and structure; empty where it is not known.
    detectors : each column of scores by its id.
    classes : the class names of each set.
    populations : what the classes of each OOD set are, where somebody said it; see :data:`Population`.
    exposure : which images of each set the network has met before, in words; sets without any are left out.
    protocols : the options of each protocol that was asked for.
    training_rows : how many images of ``id_train`` were fitted on and scored, where some were scored.
    extra : what a kind of run adds (an attack its searches, a study of generated sets its bins), by key.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    run: str = ""
    benchmark: str = ""
    benchmark_version: str = ""
    model: str = ""
    recipe: str = ""
    seed: int | None = None
    intervals: Intervals = "full"
    fingerprint: str = ""
    detectors: dict[str, DetectorContext] = Field(default_factory=dict)
    classes: dict[str, list[str]] = Field(default_factory=dict)
    populations: dict[str, Population] = Field(default_factory=dict)
    exposure: dict[str, str] = Field(default_factory=dict)
    protocols: dict[str, dict[str, Any]] = Field(default_factory=dict)
    training_rows: dict[str, int] | None = None
    extra: dict[str, Any] = Field(default_factory=dict)

    def row(self, detector: str | None = None) -> dict[str, Any]:
        """What every measurement of the table, or of one of its detectors, says of the run."""
        shared = self.model_dump(include={"run", "benchmark", "benchmark_version", "model", "recipe", "seed"})
        return shared if detector is None else {**shared, "detector": detector, **self.detectors[detector].row()}

    def changed(self, **changes: Any) -> "ScoreContext":
        """The same with other values, checked like new ones."""
        return read_context({**self.model_dump(), **changes})

    def plain(self) -> dict[str, Any]:
        """As JSON values, without what nobody said; what a kind of run adds stands beside the rest."""
        said = self.model_dump(exclude_unset=True, exclude={"extra"})
        return {**said, **self.extra}


def read_context(values: "ScoreContext | Mapping[str, Any]", where: str = "the context of the scores") -> ScoreContext:
    """A context from plain values; keys that it does not know belong to a kind of run and are kept as ``extra``."""
    if isinstance(values, ScoreContext):
        return values
    own = {key: value for key, value in values.items() if key in ScoreContext.model_fields}
    added = {key: value for key, value in values.items() if key not in ScoreContext.model_fields}
    if added:
        own["extra"] = {**own.get("extra", {}), **added}
    return parse(ScoreContext, own, where)

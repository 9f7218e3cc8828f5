"""Fit: a detector fitted for deployment, with its threshold and the scores that it was calibrated on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field

from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError
from oodscope.base.files import atomic_path
from oodscope.document.chapter import Card, Cards, Chapter, Prose
from oodscope.document.number import Number
from oodscope.document.table import Entry, Row, Table, columns
from oodscope.document.wording import percent
from oodscope.metrics.catalog import FALSE_ALARMS
from oodscope.metrics.interval import wilson_interval
from oodscope.metrics.rejection.conformal import Calibration, Guarantee
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord
from oodscope.results.run import Run
from oodscope.results.runfile import expect_kind, read_runfile, write_runfile

if TYPE_CHECKING:
    from oodscope.deploy.scorer import Scorer

_SCORES = "calibration.npy"
_LEVEL = 0.95


class FittedDetector(StrictModel):
    """The detector in a ``.oodscope`` file.

    Parameters
    ----------
    id : the detector as tables call it, a combination such as ``react+msp`` included.
    params : its parameters.
    threshold : a score above it is rejected.
    guarantee : what the threshold promises.
    file : where the scorer lies.
    sha256 : of that file.
    """

    id: str = Field(min_length=1)
    version: int
    params: dict[str, Any]
    threshold: float
    guarantee: Guarantee
    file: str
    sha256: str


@dataclass(frozen=True, eq=False)
class Fit(Run):
    """A detector fitted for deployment: parameters, threshold, guarantee and calibration scores.

    ``oodscope.load(fit.detector.file)`` opens the scorer itself.

    Parameters
    ----------
    calibration : the sorted scores of the calibration images, and the threshold through them.
    scorer : the scorer, where it was fitted in this process.
    """

    kind: ClassVar[str] = "fit"

    record: RunRecord
    detector: FittedDetector
    calibration: Calibration
    scorer: "Scorer | None" = field(default=None, repr=False)

    @property
    def measurements(self) -> Measurements:
        """The share of calibration images above the threshold."""
        scores = self.calibration.scores
        rejected = int((~self.calibration.accepts(scores)).sum())
        interval = wilson_interval(rejected, scores.size, _LEVEL)
        row = Measurement(
            run=self.record.id,
            benchmark=self.record.benchmark,
            benchmark_version=self.record.benchmark_version,
            model=self.record.model,
            detector=self.detector.id,
            params=self.detector.params,
            protocol=self.kind,
            set="calibration",
            group="id",
            metric=FALSE_ALARMS.name,
            value=rejected / scores.size,
            low=interval.low,
            high=interval.high,
            interval=interval.method,
            level=interval.level,
            n_id=scores.size,
            seed=self.record.seed,
        )
        return Measurements([row])

    def tables(self) -> Mapping[str, Table]:
        """``threshold``: where it lies and what it rejects; ``parameters``: those of the detector."""
        (row,) = self.measurements
        guarantee = self.detector.guarantee
        cells = (
            Entry(f"{self.detector.threshold:.6g}", self.detector.threshold),
            Entry(guarantee.kind),
            Number(guarantee.target),
            Number(row.value, row.low, row.high),
            Entry(f"{guarantee.n:,}", guarantee.n),
        )
        heads = columns("threshold", "guarantee", "tolerated", "rejected here", "calibration images")
        title = f"{self.detector.id} for {self.record.model}: the threshold"
        parameters = tuple(Row((Entry(key),), (Entry(str(value)),)) for key, value in self.detector.params.items())
        return {
            "threshold": Table(
                "threshold",
                title,
                columns("detector"),
                heads,
                (Row((Entry(self.detector.id),), cells),),
                notes=(f"{guarantee}.",),
            ),
            "parameters": Table(
                "parameters", f"{self.detector.id}: parameters", columns("parameter"), columns("value"), parameters
            ),
        }

    def chapter(self) -> Chapter:
        """The threshold and what it promises, the calibration scores, the parameters."""
        from oodscope.runs.fit.figures import calibration_scores

        tables, guarantee = self.tables(), self.detector.guarantee
        cards = Cards(
            (
                Card("Threshold", f"{self.detector.threshold:.6g}", "a score above it is rejected"),
                Card("False alarms", f"at most {percent(guarantee.target)}", f"{guarantee.kind} guarantee"),
            )
        )
        blocks = (cards, tables["threshold"], calibration_scores(self), Prose(f"{guarantee}."), tables["parameters"])
        verdict = (
            f"{self.detector.id} rejects at most {percent(guarantee.target)} of in-distribution images like the "
            f"{guarantee.n:,} calibration images."
        )
        return Chapter(f"Fit: {self.detector.id} for {self.record.model}", self.kind, verdict, blocks)

    def save(self, folder: Path | str) -> Path:
        """Write the calibration scores and, last, ``run.json``. A detector fitted again replaces the older fit."""
        folder = Path(folder)
        with atomic_path(folder / _SCORES) as temporary, temporary.open("wb") as stream:
            np.save(stream, self.calibration.scores, allow_pickle=False)
        placed = self.detector.model_copy(update={"file": os.path.relpath(self.detector.file, folder)})
        return write_runfile(folder, self.kind, self.record, [_SCORES], placed.model_dump(mode="json"))

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what ``save`` wrote."""
        folder = Path(folder)
        file = expect_kind(read_runfile(folder), folder, cls.kind)
        detector = parse(FittedDetector, dict(file.about), str(folder))
        try:
            scores = np.load(folder / _SCORES, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{folder / _SCORES}: not the scores of a calibration: {error}") from error
        if scores.dtype != np.float64 or scores.ndim != 1 or not scores.size:
            raise DataError(f"{folder / _SCORES}: a list of scores is needed, not {scores.dtype} of {scores.shape}")
        detector = detector.model_copy(update={"file": os.path.normpath(folder / detector.file)})
        return cls(file.record, detector, Calibration(scores, detector.threshold, detector.guarantee))

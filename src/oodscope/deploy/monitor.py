"""Monitor: what a deployed scorer sees, watched for the day it no longer is like the calibration images."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from pydantic import Field

from oodscope.base.boundedjson import read_bounded_json
from oodscope.base.config import StrictModel, parse
from oodscope.base.errors import DataError
from oodscope.base.files import write_text
from oodscope.base.hashing import fingerprint
from oodscope.metrics.rejection.conformal import Calibration
from oodscope.metrics.rejection.exchangeability import ExchangeabilityAlarm

FORMAT = 1
_MOST_BYTES = 256 * 2**20
"""Of a state: about ten million images."""


class MonitorState(StrictModel):
    """What a file of a monitor holds: all that its alarm is computed from."""

    format: int = Field(ge=1, le=FORMAT)
    calibration: str
    alpha: float = Field(gt=0, lt=1)
    seed: int
    scores: list[float]


class Monitor:
    """An anytime-valid alarm on the scores of one stream of images, which can be stopped and taken up again.

    Parameters
    ----------
    calibration : of the scorer whose scores are watched.
    alpha, seed : see ``oodscope.metrics.rejection.exchangeability.ExchangeabilityAlarm``.
    """

    def __init__(self, calibration: Calibration, alpha: float = 0.01, seed: int = 0) -> None:
        self._of = fingerprint(calibration.scores)
        self.alarm = ExchangeabilityAlarm(calibration.scores, alpha, seed)
        self.scores: list[float] = []

    def observe(self, scores: Iterable[float]) -> list[float]:
        """Take the next scores in, in the order of the stream; their online p-values."""
        p_values = []
        for score in scores:
            p_values.append(self.alarm.observe(float(score)))
            self.scores.append(float(score))
        return p_values

    def save(self, path: Path | str) -> None:
        """Write what was seen, whole or not at all."""
        state = MonitorState(
            format=FORMAT, calibration=self._of, alpha=self.alarm.alpha, seed=self.alarm.seed, scores=self.scores
        )
        write_text(path, json.dumps(state.model_dump()))

    @classmethod
    def load(cls, path: Path | str, calibration: Calibration) -> Self:
        """Go on where ``save`` stopped. A file of another scorer is refused: its ranks mean nothing here."""
        state = parse(MonitorState, read_bounded_json(Path(path), _MOST_BYTES), str(path))
        monitor = cls(calibration, state.alpha, state.seed)
        if state.calibration != monitor._of:
            raise DataError(f"{path}: watched another detector, or one calibrated otherwise; start a new state file")
        monitor.observe(state.scores)
        return monitor

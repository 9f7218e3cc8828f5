"""The protocol of cross-validation: train on some OOD classes, evaluate on others, over folds of both."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from oodscope.base.errors import DataError
from oodscope.base.paper import Paper
from oodscope.metrics.catalog import CROSSVAL, METRICS
from oodscope.metrics.crossval.metrics import crossval_metrics, fold_metric
from oodscope.metrics.metric import columns_of
from oodscope.protocols.base import Protocol
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable

if TYPE_CHECKING:
    from oodscope.data.benchmark import Benchmark

OOD_ROLE = "near"
"""The role of the OOD test images of a pair in its score table."""


class CrossValidated(Protocol):
    """Metrics of every fold, from the scores that a cross-validation has stored; ``unit`` of a row is its draw.

    Parameters
    ----------
    extra_metrics : names of further metrics of the catalogue, such as one that was registered after the study.
    """

    name, title = "crossval", "Cross-validation"
    summary = "Train on some classes, evaluate on others, over folds of both."
    paper = Paper(
        "DCV-ROOD Evaluation Framework: Dual Cross-Validation for Robust Out-of-Distribution Detection",
        "Urrea-Castaño et al.",
        "arXiv 2509.05778",
    )
    position = 4
    metrics, headline = CROSSVAL, ("auroc",)
    negatives, groups = (), {}

    def __init__(self, extra_metrics: Sequence[str] = ()) -> None:
        self.extra_metrics = list(extra_metrics)
        for name in self.extra_metrics:
            METRICS[name]  # an unknown name suggests the nearest

    def measure(self, scores: ScoreTable) -> Measurements:
        return Measurements(self._rows(scores))

    def _rows(self, scores: ScoreTable) -> Iterator[Measurement]:
        training = str(scores.context.extra.get("training", ""))
        for unit, frame in scores.frame.groupby("unit", sort=False, observed=True):
            parts = {role: frame[(frame["role"] == role).to_numpy()] for role in ("id_val", "id_test", OOD_ROLE)}
            if missing := [role for role, part in parts.items() if part.empty]:
                raise DataError(f"cross-validation: draw {unit} has no scores of {missing[0]}")
            for detector in scores.detectors:
                for metric, value in self._values(parts, detector).items():
                    yield Measurement(
                        **scores.context.row(detector),
                        protocol=self.name,
                        group=training,
                        set=str(unit),
                        metric=metric,
                        value=value,
                        n_id=len(parts["id_test"]),
                        n_ood=len(parts[OOD_ROLE]),
                    )

    def _values(self, parts: dict[str, pd.DataFrame], detector: str) -> dict[str, float]:
        val, test, ood = (parts[role][detector].to_numpy() for role in ("id_val", "id_test", OOD_ROLE))
        known = parts["id_test"]
        columns = columns_of(
            test,
            ood,
            id_correct=(known["label"] == known["prediction"]).to_numpy(),
            ood_class=parts[OOD_ROLE]["own_class"].to_numpy(),
        )
        extra = {name: fold_metric(METRICS[name], columns) for name in self.extra_metrics}
        return crossval_metrics(test, ood, val) | extra

    def check(self, benchmark: "Benchmark") -> None:
        raise DataError("folds are made by a cross-validation; use oodscope.cross_validate or `oodscope crossval`")

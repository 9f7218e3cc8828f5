"""Judging: every detector, fitted to a fold's network, and what its scores are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from oodscope.activations import Activations
from oodscope.detectors import Detector
from oodscope.metrics.crossval import dual_metrics

Scores = NDArray[np.float64]
Cell = dict[str, Any]
"""One network, pair and detector: sizes of the test sets, and the value of each metric."""


@dataclass(frozen=True)
class FoldScores:
    """Scores of one network's images under all detectors, on the host: a row per detector.

    Parameters
    ----------
    training : ``plain`` or ``outlier_exposure``.
    outliers : by pair; the ID side is scored once for all of them.
    """

    training: str
    detectors: tuple[str, ...]
    id_val: Scores
    id_test: Scores
    outliers: Mapping[str, Scores]

    def cells(self) -> list[Cell]:
        """Every metric of every pair and detector."""
        return [
            {
                "training": self.training,
                "pair": pair,
                "detector": detector,
                "n_id": self.id_test.shape[1],
                "n_ood": outliers.shape[1],
                "metrics": dual_metrics(self.id_test[row], outliers[row], self.id_val[row]),
            }
            for pair, outliers in self.outliers.items()
            for row, detector in enumerate(self.detectors)
        ]


def score_fold(
    detectors: Sequence[Detector],
    training: str,
    train: Activations,
    val: Activations,
    id_test: Activations,
    outliers: Mapping[str, Activations],
    device: torch.device,
) -> FoldScores:
    """Fit each detector to ``train`` and ``val`` and score the rest.

    Scores stay on the device until the last detector is done, and come to the host in one copy.
    """
    parts = [val, id_test, *outliers.values()]
    columns = []
    for detector in detectors:
        fitted = clone(detector).to(device).fit(train, val)
        columns.append(torch.cat([fitted.score(part) for part in parts]))
    table = torch.stack(columns).cpu().numpy().astype(np.float64, copy=False)
    ends = np.cumsum([len(part) for part in parts])
    held_out, tested, *strange = np.split(table, ends[:-1], axis=1)
    ids = tuple(detector.id for detector in detectors)
    return FoldScores(training, ids, held_out, tested, dict(zip(outliers, strange)))

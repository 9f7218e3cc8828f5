"""Judging: every detector, fitted to a fold's network, and what its scores are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from oodscope.activations.activations import Activations
from oodscope.data.imageset import UNLABELLED
from oodscope.detectors.base import Detector
from oodscope.detectors.estimator import clone
from oodscope.metrics.crossval.metrics import crossval_metrics
from oodscope.runs.crossval.protocol import OOD_ROLE

Scores = NDArray[np.float64]
Cell = dict[str, Any]
"""One network, pair and detector: sizes of the test sets, and the value of each metric."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Some images of a set: the name of the set, and name and class of each image."""

    set: str
    ids: NDArray[Any]
    classes: NDArray[np.int64]


@dataclass(frozen=True)
class FoldScores:
    """Scores of one network's images under all detectors, on the host: a row per detector.

    Parameters
    ----------
    training : ``plain`` or ``outlier_exposure``.
    outliers : by pair; the ID side is scored once for all of them.
    predictions, samples : of the ID validation images, the ID test images and the outliers of each pair.
    """

    training: str
    detectors: tuple[str, ...]
    id_val: Scores
    id_test: Scores
    outliers: Mapping[str, Scores]
    predictions: tuple[NDArray[np.int64], ...] = ()
    samples: tuple[Sample, ...] = ()

    def frame(self, unit: str) -> pd.DataFrame:
        """Every score as rows of a score table, each with its training and pair; see ``read_unit``."""
        shared = "" if self.training == "plain" else next(iter(self.outliers))
        places = [(shared, "id_val", self.id_val), (shared, "id_test", self.id_test)]
        places += [(pair, OOD_ROLE, outliers) for pair, outliers in self.outliers.items()]
        parts = []
        for (pair, role, scores), prediction, sample in zip(places, self.predictions, self.samples, strict=True):
            known: dict[str, Any] = {
                "training": self.training,
                "pair": pair,
                "sample_id": sample.ids,
                "set": sample.set,
                "role": role,
            }
            known |= {"label": UNLABELLED if role == OOD_ROLE else sample.classes, "own_class": sample.classes}
            known |= {"prediction": prediction, "unit": unit}
            parts.append(pd.DataFrame(known | dict(zip(self.detectors, scores))))
        return pd.concat(parts, ignore_index=True)

    def cells(self) -> list[Cell]:
        """Every metric of every pair and detector."""
        return [
            {
                "training": self.training,
                "pair": pair,
                "detector": detector,
                "n_id": self.id_test.shape[1],
                "n_ood": outliers.shape[1],
                "metrics": crossval_metrics(self.id_test[row], outliers[row], self.id_val[row]),
            }
            for pair, outliers in self.outliers.items()
            for row, detector in enumerate(self.detectors)
        ]


class Judges:
    """Detectors on one device, fitted anew to every network.

    Parameters
    ----------
    detectors : copied, and moved to ``device``.
    """

    def __init__(self, detectors: Sequence[Detector], device: torch.device) -> None:
        self.ids = tuple(detector.id for detector in detectors)
        self.detectors = [clone(detector).to(device) for detector in detectors]

    def score(
        self,
        training: str,
        train: Activations,
        val: Activations,
        id_test: Activations,
        outliers: Mapping[str, Activations],
    ) -> FoldScores:
        """Fit each detector to ``train`` and ``val`` and score the rest.

        All images are scored in one piece, and the scores come to the host in one copy when the last detector is done:
        an accelerator is asked once per network.
        """
        parts = [val, id_test, *outliers.values()]
        everything = _joined(parts)
        columns = [detector.fit(train, val).score(everything) for detector in self.detectors]
        # class numbers are exact in float64, and so need no second copy
        predicted = everything.prediction.to(columns[0])
        table = torch.stack([*columns, predicted]).cpu().numpy().astype(np.float64, copy=False)
        ends = np.cumsum([len(part) for part in parts])
        held_out, tested, *ood_tests = np.split(table[:-1], ends[:-1], axis=1)
        predictions = tuple(np.split(table[-1].astype(np.int64), ends[:-1]))
        return FoldScores(training, self.ids, held_out, tested, dict(zip(outliers, ood_tests)), predictions)


def _joined(parts: Sequence[Activations]) -> Activations:
    """The logits and features of several activations under one head, one after the other."""
    logits, features = (
        torch.cat([part[name] for part in parts]) if name in parts[0] else None for name in ("logits", "features")
    )
    return Activations(logits=logits, features=features, head=parts[0].head)

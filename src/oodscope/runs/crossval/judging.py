"""Judging: every detector, fitted to a fold's network, and what its scores are worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from oodscope.activations.activations import Activations
from oodscope.base.errors import DetectorError
from oodscope.data.imageset import UNLABELLED
from oodscope.detectors.estimator import clone
from oodscope.metrics.crossval.class_units import class_aurocs
from oodscope.metrics.crossval.metrics import crossval_metrics
from oodscope.runs.crossval.plan import FoldDetector
from oodscope.runs.crossval.protocol import OOD_ROLE
from oodscope.training.heads.trained import PRE_ACTIVATION

Scores = NDArray[np.float64]
Cell = dict[str, Any]
"""One network, pair and detector: sizes of the test sets, the accuracy of the network on ID images, the value of each
metric, and of each OOD class its AUROC and size."""


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

    @property
    def id_accuracy(self) -> float:
        """The share of the ID test images that the network classifies rightly."""
        return float(np.mean(self.predictions[1] == self.samples[1].classes))

    def cells(self) -> list[Cell]:
        """Every metric of every pair and detector."""
        tested = dict(zip(self.outliers, self.samples[2:], strict=True))
        return [
            {
                "training": self.training,
                "pair": pair,
                "detector": detector,
                "n_id": self.id_test.shape[1],
                "n_ood": outliers.shape[1],
                "id_accuracy": self.id_accuracy,
                "metrics": crossval_metrics(self.id_test[row], outliers[row], self.id_val[row]),
                "classes": self._classes(self.id_test[row], outliers[row], tested[pair]),
            }
            for pair, outliers in self.outliers.items()
            for row, detector in enumerate(self.detectors)
        ]

    def _classes(self, id_scores: Scores, ood_scores: Scores, sample: Sample) -> list[list[float]]:
        found = class_aurocs(id_scores, ood_scores, sample.classes)
        return [[int(number), float(value), int(size)] for number, value, size in zip(*found)]


class Judges:
    """Detectors on one device, fitted anew to every network.

    Parameters
    ----------
    detectors : copied, and moved to ``device``; each reads the form of the features that it names.
    """

    def __init__(self, detectors: Sequence[FoldDetector], device: torch.device) -> None:
        self.ids = tuple(each.id for each in detectors)
        self.detectors = [FoldDetector(clone(each.detector).to(device), each.reads) for each in detectors]

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
        forms = {each.reads for each in self.detectors}
        fitted, scored = ({form: _reading(part, form) for form in forms} for part in (train, everything))
        held = {form: _reading(val, form) for form in forms}
        columns = [
            each.detector.fit(fitted[each.reads], held[each.reads]).score(scored[each.reads]) for each in self.detectors
        ]
        # class numbers are exact in float64, and so need no second copy
        predicted = everything.prediction.to(columns[0])
        table = torch.stack([*columns, predicted]).cpu().numpy().astype(np.float64, copy=False)
        ends = np.cumsum([len(part) for part in parts])
        held_out, tested, *ood_tests = np.split(table[:-1], ends[:-1], axis=1)
        predictions = tuple(np.split(table[-1].astype(np.int64), ends[:-1]))
        return FoldScores(training, self.ids, held_out, tested, dict(zip(outliers, ood_tests)), predictions)


def _joined(parts: Sequence[Activations]) -> Activations:
    """The logits and features of several activations under one head, one after the other."""
    logits, features, before = (
        torch.cat([part[name] for part in parts]) if name in parts[0] else None
        for name in ("logits", "features", PRE_ACTIVATION)
    )
    more = {} if before is None else {PRE_ACTIVATION: before}
    return Activations(logits=logits, features=features, head=parts[0].head, columns=more)


def _reading(activations: Activations, form: str) -> Activations:
    """The activations as a detector reads them that takes this form for the features.

    Where the form is not the head's input there is no head: it would not give the logits.
    """
    if form == "features":
        return activations
    if form not in activations:
        raise DetectorError(f"these networks give no {form}; only two-layer heads on frozen embeddings do")
    labels = activations.labels if "labels" in activations else None
    return Activations(logits=activations.logits, features=activations[form], labels=labels)

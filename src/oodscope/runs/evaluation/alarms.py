"""Alarms: signs that network and data do not belong together, each named in one line.

Detectors give full tables for any network. A wrong normalisation, another order of the classes or weights that were
never trained show first in the accuracy on ``id_test``, which is known anyway once the scores are there.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import UNLABELLED, ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.data.similarity.classnames import clashing_names
from oodscope.models.classifier.classifier import Classifier
from oodscope.results.record import ALARM
from oodscope.results.scoretable import ScoreTable

_SURE = 5.0
"""Standard errors by which one explanation must beat another."""
_GOOD = 0.75
"""Of the way from guessing to perfect: a network above it needs no better normalisation."""
_LOW = 0.25
"""Of the same way: a network below it is not worth detecting with."""
PROBED = 128
"""Images on which other normalisations are tried; of fewer, nothing is said."""

_USUAL: dict[int, dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    1: {
        "MNIST's": ((0.1307,), (0.3081,)),
        "Fashion-MNIST's": ((0.2860,), (0.3530,)),
        "values in [-1, 1]": ((0.5,), (0.5,)),
        "values in [0, 1]": ((0.0,), (1.0,)),
        "values in [0, 255]": ((0.0,), (1 / 255,)),
    },
    3: {
        "CIFAR-10's": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
        "CIFAR-100's": ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761)),
        "ImageNet's": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        "values in [-1, 1]": ((0.5,) * 3, (0.5,) * 3),
        "values in [0, 1]": ((0.0,) * 3, (1.0,) * 3),
        "values in [0, 255]": ((0.0,) * 3, (1 / 255,) * 3),
    },
}


@dataclass(frozen=True)
class Answers:
    """What a classifier said of ``id_test``.

    Parameters
    ----------
    label, prediction : one class each per image.
    class_names : in the order of the logits.
    """

    label: NDArray[np.int64]
    prediction: NDArray[np.int64]
    class_names: tuple[str, ...]

    @property
    def accuracy(self) -> float:
        return float((self.label == self.prediction).mean())

    @property
    def chance(self) -> float:
        """What always naming the commonest class gives."""
        return float(np.bincount(self.label).max() / len(self.label))

    @property
    def skill(self) -> float:
        """The accuracy as a share of the way from guessing to perfect."""
        return (self.accuracy - self.chance) / max(1 - self.chance, 1e-9)


def answers_of(scores: ScoreTable, benchmark: Benchmark) -> Answers | None:
    """Labels and predictions of ``id_test``; None where either is not known."""
    rows = scores.frame[scores.frame["role"] == "id_test"]
    label, prediction = (rows[column].to_numpy(dtype=np.int64) for column in ("label", "prediction"))
    if len(rows) == 0 or (label == UNLABELLED).any() or (prediction == UNLABELLED).any():
        return None
    return Answers(label, prediction, benchmark.class_names)


def accuracy_alarms(answers: Answers | None) -> list[str]:
    """At most one line: the classes in another order, accuracy as by guessing, or one too low to believe."""
    if answers is None:
        return []
    if renamed := _renamed(answers):
        return [renamed]
    count, accuracy = len(answers.label), answers.accuracy
    noise = math.sqrt(answers.chance * (1 - answers.chance) / count)
    reached = f"the accuracy on id_test is {accuracy:.1%} over {len(answers.class_names)} classes"
    if count >= 10 and accuracy <= answers.chance + 2 * noise:
        return [
            f"{ALARM}{reached}, no more than guessing gives ({answers.chance:.1%}): are these the weights of a "
            "trained network, for these classes and this preprocessing?"
        ]
    if count >= 10 and answers.skill < _LOW:
        return [f"{ALARM}{reached}, too low to believe: check weights, preprocessing and the order of the classes"]
    return []


def _renamed(answers: Answers) -> str | None:
    """Whether another assignment of classes to logits fits the labels: matched on one half, counted on the other."""
    size = len(answers.class_names)
    matched = np.empty_like(answers.prediction)
    halves = np.arange(len(answers.label)) % 2 == 0
    for learnt, applied in ((halves, ~halves), (~halves, halves)):
        matched[applied] = _matching(answers, learnt, size)[answers.prediction[applied]]
    gained = int(((matched == answers.label) & (answers.prediction != answers.label)).sum())
    lost = int(((matched != answers.label) & (answers.prediction == answers.label)).sum())
    accuracy = float((matched == answers.label).mean())
    sure = gained - lost > _SURE * math.sqrt(gained + lost) and gained - lost >= 0.02 * len(matched)
    if not sure or accuracy < 0.5:
        return None
    order = _matching(answers, np.ones(len(matched), dtype=bool), size)
    moved = [number for number in np.flatnonzero(order != np.arange(size)) if number in answers.prediction]
    shown = ", ".join(f"logit {number} stands for {answers.class_names[order[number]]!r}" for number in moved[:3])
    more = ", ..." * (len(moved) > 3)
    return (
        f"{ALARM}the classes are in another order than the logits: the accuracy on id_test is {answers.accuracy:.1%} "
        f"as given and {accuracy:.1%} when {len(moved)} classes are renamed ({shown}{more}). Name the classifier's "
        "classes in the order of its logits (--classes FILE, or benchmark.in_classes)"
    )


def _matching(answers: Answers, rows: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """The class that each logit stands for: the one-to-one assignment that agrees with most labels."""
    counts = np.zeros((size, size), dtype=np.int64)
    np.add.at(counts, (answers.prediction[rows], answers.label[rows]), 1)
    # where nothing decides, a class keeps its place
    weight = counts * 2 * size + np.eye(size, dtype=np.int64)
    order: NDArray[np.int64] = linear_sum_assignment(weight, maximize=True)[1]
    return order


def better_normalisation(classifier: Classifier, images: ImageSet, answers: Answers) -> tuple[str | None, int]:
    """Whether the network does far better with another mean and deviation; tried only where accuracy is in doubt.

    The second value is how many images went through the network to find out.
    """
    transform = classifier.transform
    if answers.skill >= _GOOD or not isinstance(transform, Preprocess) or len(images) < PROBED or _renamed(answers):
        return None, 0
    rows = np.unique(np.linspace(0, len(images) - 1, PROBED).astype(np.int64))
    crops = np.stack([transform.crop(picture) for picture in images.pictures(rows)])
    given = answers.prediction[rows] == answers.label[rows]
    best, best_name, best_right, passes = transform, "", given, 0
    for name, candidate in _candidates(transform, crops):
        passes += len(rows)
        right = _predictions(classifier, candidate, crops) == answers.label[rows]
        if right.sum() > best_right.sum():
            best, best_name, best_right = candidate, name, right
    gained, lost = int((best_right & ~given).sum()), int((given & ~best_right).sum())
    if gained - lost <= _SURE * math.sqrt(gained + lost) or gained - lost < 0.1 * len(rows):
        return None, passes
    mean, std = (", ".join(f"{value:.4g}" for value in values) for values in (best.mean, best.std))
    return (
        f"{ALARM}the normalisation looks wrong: on {len(rows)} images of id_test the accuracy is {given.mean():.1%} "
        f"as given and {best_right.mean():.1%} with {best_name} (mean: [{mean}], std: [{std}]). Pass it with "
        "--transform, or Preprocess(mean=..., std=...)",
        passes,
    )


def _candidates(transform: Preprocess, crops: NDArray[np.uint8]) -> Iterator[tuple[str, Preprocess]]:
    channels = len(transform.mean)
    own = crops.reshape(-1, channels) / 255.0
    usual = {
        **_USUAL.get(channels, {}),
        "the mean and deviation of these images": (tuple(own.mean(axis=0)), tuple(np.maximum(own.std(axis=0), 1e-3))),
    }
    for name, (mean, std) in usual.items():
        candidate = transform.model_copy(update={"mean": tuple(map(float, mean)), "std": tuple(map(float, std))})
        if not (np.allclose(candidate.mean, transform.mean, atol=1e-3) and np.allclose(candidate.std, transform.std)):
            yield name, candidate


def _predictions(classifier: Classifier, transform: Preprocess, crops: NDArray[np.uint8]) -> NDArray[np.int64]:
    import torch

    logits = classifier.forward(transform.normalise(torch.from_numpy(crops))).logits
    found: NDArray[np.int64] = logits.argmax(dim=1).cpu().numpy()
    return found


def name_clashes(benchmark: Benchmark) -> list[str]:
    """OOD sets, or classes of them, that are called like an ID class: their images count as OOD all the same."""
    lines = []
    for role, images, clashing in clashing_names(benchmark):
        names = ", ".join(map(repr, clashing[:3])) + ", ..." * (len(clashing) > 3)
        lines.append(
            f"{ALARM}the OOD set {images.name!r} ({role}) has the name of an ID class: {names}. Its images count "
            "as OOD; remove them if they show that class (oodscope data audit looks closer)"
        )
    return lines

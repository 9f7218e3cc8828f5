"""Pairs small enough to cross-validate in a blink, and a trainer that remembers what it was asked."""

import hashlib

import numpy as np
import torch

from oodscope.activations.activations import Activations
from oodscope.data.imageset import ImageSet
from oodscope.runs.crossval.draws import Pair
from tests.tiny import images


def known(name="known", count=80, seed=1):
    pixels, labels = images(count, seed)
    return ImageSet.from_arrays(name, pixels, labels, [f"{name} {c}" for c in range(4)])


def strange(name="strange", count=60, seed=4, classes=6):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, size=(count, 8, 8, 3)).astype(np.uint8)
    names = [f"{name} {c}" for c in range(classes)]
    groups = np.array(["low", "high"])[np.arange(count) % classes % 2]
    return ImageSet.from_arrays(name, pixels, np.arange(count) % classes, names, {"group": groups})


def pairs():
    """Two ID sets; the first has two pairs, and both share an OOD set."""
    first, second, fog = known(), known("other", 60, 11), strange("fog", seed=5)
    return [Pair(first, strange()), Pair(first, fog), Pair(second, fog)]


class Remembered:
    """Says of each image a function of its place in its set and of the training that made the model."""

    def __init__(self, log, seed, outliers=()):
        self.log, self.seed, self.outliers = log, seed, outliers

    def activations(self, images, rows):
        self.log.append(("score", self.seed, images.name, tuple(rows)))
        key = hashlib.sha256(f"{self.seed}{images.name}{list(self.outliers)}".encode()).digest()
        noise = np.random.default_rng(list(key[:4])).normal(size=(len(images), 3))
        logits = torch.from_numpy(noise + 2 * np.eye(3)[images.labels % 3])[rows].float()
        return Activations(logits=logits, labels=torch.from_numpy(images.labels[rows]))


class RecordingTrainer:
    """Trains nothing; its log is the list of calls."""

    has_pre_activation = False

    def __init__(self, at_once=2, classifier=None):
        self.at_once, self.classifier, self.log = at_once, classifier, []
        self.device = torch.device("cpu")

    def describe(self):
        return {"backbone": "none", "model": "remembered", "transform": "", "recipe": {}, "at_once": self.at_once}

    def begins_from(self):
        return self.classifier

    def open(self, sets, progress):
        self.log.append(("open", *sorted(images.name for images in sets)))

    def train(self, images, folds, progress):
        self.log.append(("train", images.name, [fold.seed for fold in folds]))
        self.folds = folds
        return [Remembered(self.log, fold.seed) for fold in folds]

    def expose(self, models, images, outliers, folds, progress):
        self.log.append(("expose", images.name, outliers.name, [fold.seed for fold in folds]))
        return [Remembered(self.log, fold.seed, fold.outliers) for fold in folds]

    def calls(self, kind):
        return [call for call in self.log if call[0] == kind]

"""Scores with known truth: detectors that differ by class, by image and by network as real ones do."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

SVHN_SIZES = np.array([1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]) / 26032


@dataclass(frozen=True)
class World:
    """What scores are drawn from. OOD score = 1 + class + class x detector + image; ID score = image."""

    classes: int = 10
    per_class: int = 20
    n_id: int = 400
    spread: float = 0.4  # of classes, the same for all detectors
    own_spread: float = 0.3  # of classes, each detector's own
    sizes: str = "balanced"  # "svhn", "dominant"
    skewed: bool = False
    common: float = 0.8  # of images, the same for all detectors

    def class_sizes(self) -> np.ndarray:
        total = self.classes * self.per_class
        if self.sizes == "svhn":
            shares = np.resize(SVHN_SIZES, self.classes)
        elif self.sizes == "dominant":
            shares = np.r_[0.35, np.full(self.classes - 1, 0.65 / (self.classes - 1))]
        else:
            shares = np.ones(self.classes)
        return np.maximum(2, np.round(total * shares / shares.sum()).astype(int))

    def effects(self, rng: np.random.Generator, detectors: int) -> np.ndarray:
        """The effects of classes, ``[detector, class]``."""
        drawn = rng.normal(size=(detectors, self.classes))
        if self.skewed:
            drawn = rng.exponential(size=(detectors, self.classes)) - 1.0
        return self.spread * rng.normal(size=self.classes) + self.own_spread * drawn

    def draw(self, rng, detectors: int, shifts=0.0, effects=None):
        """ID scores, OOD scores ``[detector, image]`` and the class of each OOD image."""
        labels = np.repeat(np.arange(self.classes), self.class_sizes())
        effects = self.effects(rng, detectors) if effects is None else effects
        own = np.sqrt(1.0 - self.common**2)
        known = self.common * rng.normal(size=self.n_id) + own * rng.normal(size=(detectors, self.n_id))
        moved = 1.0 + effects + np.reshape(np.broadcast_to(shifts, detectors), (detectors, 1))
        images = self.common * rng.normal(size=labels.size) + own * rng.normal(size=(detectors, labels.size))
        return known, moved[:, labels] + images, labels

    def auroc(self, shift: float = 0.0) -> float:
        """The truth over all classes, where effects are normal."""
        assert not self.skewed
        return float(norm.cdf((1.0 + shift) / np.sqrt(2.0 + self.spread**2 + self.own_spread**2)))

"""Selecting: from a pool to a set, by the mutual information of an ensemble."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from oodscope.base.errors import DataError
from oodscope.generation.distances.semantic import EnsembleInformation
from oodscope.generation.sets.pool import Pool
from oodscope.metrics.generated.idness import class_criterion
from oodscope.metrics.generated.information import Window, overlap_window, raised_window
from oodscope.training.loop.randomness import generator as random_numbers

STEP = 0.05
"""Width of the bars of a histogram, in nats: the step in which a window's lower end is sought."""

KNOWN_SHARE = 0.95
"""Shifted images may be as doubtful as this share of the validation images, and not more."""

AGREED = 0.05
"""Information below which members agree in any meaning of the word, however much surer they are of known images."""


@dataclass(frozen=True)
class Selected:
    """A chosen part of a pool.

    Parameters
    ----------
    pool : the chosen images.
    information : ``[N]`` of the chosen images, in nats.
    window : that they fall into.
    kept : how many of the pool did, chosen or not.
    class_seen : share of the chosen images in which the members together see the class that they were made from.
    val_information, pool_information : of validation images and of the whole pool.
    dropped : images of the window that were left out, because their class would be seen too often.
    """

    pool: Pool
    information: NDArray[np.float64]
    window: Window
    kept: int
    class_seen: float
    val_information: NDArray[np.float64]
    pool_information: NDArray[np.float64]
    dropped: int = 0

    def per_class(self) -> dict[int, int]:
        """Images of each class that they were made from."""
        labels, counts = np.unique(self.pool.labels.numpy(), return_counts=True)
        return {int(label): int(count) for label, count in zip(labels, counts)}

    def histograms(self) -> dict[str, list[int]]:
        """Counts of validation, pool and chosen images in bars of .05 nats from 0 on, for a page."""
        parts = {"val": self.val_information, "pool": self.pool_information, "chosen": self.information}
        most = max(float(values.max()) for values in parts.values())
        edges = np.arange(int(most / STEP) + 2) * STEP
        return {name: np.histogram(values, edges)[0].tolist() for name, values in parts.items()}


def select_near(
    pool: Pool,
    val: Pool,
    semantic: EnsembleInformation,
    count: int,
    *,
    seed: int = 0,
    window: Window | None = None,
    class_share: float = 1.0,
) -> Selected:
    """Near outliers: images about which the members disagree, but not as they would about noise.

    The mutual information of every pooled and every validation image is measured; the window's lower end is where the
    two overlap least, its width is .4 nats. It is moved up, as far as ``count`` images allow, while the members still
    see in most images the class that they were made from. Images within it are kept, both ends included, and ``count``
    of them drawn.

    Parameters
    ----------
    pool : generated images, from all λ together.
    val : in-distribution validation images that no member was trained on.
    semantic : the ensemble.
    count : how many to draw at random; all that are kept, in their order, where they are fewer.
    window : a given one, instead of that of the rule.
    class_share : the largest share of each class's images in which the members may still see it; more are dropped.
    """
    information = _Information.of(pool, val, semantic)
    if window is None:
        window = raised_window(
            overlap_window(information.val, information.pool), information.pool, information.class_seen, enough=count
        )
    inside = window.keeps(information.pool)
    if class_share >= 1:
        return _selected(pool, information, window, inside, count, seed)
    rows, labels = np.flatnonzero(inside), pool.labels.numpy()
    bounds = np.full(max(int(labels.max(initial=0)) + 1, 1), class_share)
    kept = np.zeros_like(inside)
    kept[rows[class_criterion(labels[rows], information.class_seen[rows], bounds)]] = True
    if len(rows) and not kept.any():
        raise DataError(
            f"the ensemble sees the class that it was made from in all {len(rows)} images within {window} nats, "
            f"so a share of {class_share:g} leaves none. Generate more, set a higher window, or --class-share 1"
        )
    return replace(_selected(pool, information, window, kept, count, seed), dropped=int(inside.sum() - kept.sum()))


def select_shifted(
    pool: Pool,
    val: Pool,
    semantic: EnsembleInformation,
    count: int,
    *,
    seed: int = 0,
    window: Window | None = None,
    keep_all: bool = False,
) -> Selected:
    """Shifted images: in which the members still see the class, and agree as they do about known images.

    Agreement alone is not enough: a network that redraws every image as a frog pleases all of them. Whether the class
    is there for others too, another ensemble must say.

    Parameters
    ----------
    pool : redrawn images, with the class of what they were drawn from.
    window : by default from 0 to the information of 95 % of the validation images, or .05 where that is less.
    keep_all : filter by nothing: neither by the class that the members see, nor by their agreement.
    """
    information = _Information.of(pool, val, semantic)
    if keep_all:
        whole = Window(0.0, float(information.pool.max()))
        return _selected(pool, information, whole, np.ones(len(pool), dtype=bool), count, seed)
    if window is None:
        window = Window(0.0, max(float(np.quantile(information.val, KNOWN_SHARE)), AGREED))
    inside = window.keeps(information.pool)
    if inside.any() and not (inside & information.class_seen).any():
        raise DataError(
            f"the ensemble sees the class that it was drawn from in none of {len(pool)} shifted images; train the "
            "generator with a larger lambda_label"
        )
    return _selected(pool, information, window, inside & information.class_seen, count, seed)


@dataclass(frozen=True)
class _Information:
    """What the members say: their information about validation images and the pool, and where they see its classes."""

    val: NDArray[np.float64]
    pool: NDArray[np.float64]
    class_seen: NDArray[np.bool_]

    @classmethod
    def of(cls, pool: Pool, val: Pool, semantic: EnsembleInformation) -> "_Information":
        information, seen = semantic.information_and_class(pool.pixels)
        # rounding may leave members that agree perfectly a hair below 0
        return cls(semantic.of_pixels(val.pixels), information.clip(min=0), (seen == pool.labels).numpy())


def _selected(
    pool: Pool, information: _Information, window: Window, kept_ones: NDArray[np.bool_], count: int, seed: int
) -> Selected:
    rows = np.flatnonzero(kept_ones)
    if not len(rows):
        low, middle, high = np.quantile(information.pool, (0.0, 0.5, 1.0))
        raise DataError(
            f"none of {len(pool)} generated images has a mutual information within {window} nats; they range from "
            f"{low:.2f} to {high:.2f}, median {middle:.2f}. Generate more, or set the window"
        )
    kept = len(rows)
    if kept > count:
        order = torch.randperm(kept, generator=random_numbers("select", seed)).numpy()[:count]
        rows = rows[np.sort(order)]
    chosen, share = pool.take(torch.from_numpy(rows)), float(information.class_seen[rows].mean())
    return Selected(chosen, information.pool[rows], window, kept, share, information.val, information.pool)

"""What score tables of trained networks say of two trainings, or of one under two protocols: images, classes, seeds.

A placement is the share of the other side that a score lies above: the mean over OOD images, or over ID images, is the
AUROC. Differences of placements are paired by image. For other images of the same classes and networks each image is
drawn anew; for other OOD classes whole classes are (equal weights, ID images drawn anew beside them); for other
networks of both recipes the variance between seeds, pooled over all methods of the table, is added.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t

ALPHA = 0.05
FEWEST = 5
"""Effective classes below which nothing is said of other classes."""

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot say"


@dataclass(frozen=True)
class Estimate:
    """A difference in points, its standard error and its degrees of freedom."""

    value: float
    error: float
    freedom: float

    def verdict(self, sign: int) -> str:
        """Whether the difference has the sign that a finding gives it, beyond noise, at 5 % and two-sided."""
        if not isfinite(self.error) or self.error <= 0 or self.freedom < 1:
            return OPEN
        if 2 * t.sf(abs(self.value) / self.error, self.freedom) > ALPHA:
            return OPEN
        return HOLDS if np.sign(self.value) == sign else FAILS


@dataclass(frozen=True)
class Placements:
    """Of one near set: the placements of OOD images, those of ID images, and the OOD classes."""

    ood: np.ndarray
    known: np.ndarray
    classes: np.ndarray

    def minus(self, other: "Placements") -> "Placements":
        return Placements(self.ood - other.ood, self.known - other.known, self.classes)


Reader = Callable[..., list[dict[str, Placements]]]


def placements(frame: pd.DataFrame, detector: str, spectrum: bool = False, role: str = "near") -> dict[str, Placements]:
    """Of each near set, or that of another role, for the best epoch.

    In the full spectrum corrupted copies stand beside the ID images. An ID image and its copies are one image: their
    placements are averaged.
    """
    part = frame[frame["kept"] == "best"]
    roles = ["id_test", "csid"] if spectrum else ["id_test"]
    copies = [part.loc[part["role"] == role, detector].to_numpy() for role in roles]
    if any(len(each) != len(copies[0]) for each in copies):
        raise ValueError("every ID test image needs one corrupted copy")
    negatives = np.concatenate(copies)
    found = {}
    for name, outliers in part[part["role"] == role].groupby("set", observed=True):
        scores = outliers[detector].to_numpy()
        known = 1 - _above(negatives, scores).reshape(len(copies), -1).mean(axis=0)
        found[str(name)] = Placements(_above(scores, negatives), known, outliers["own_class"].to_numpy())
    return found


def _above(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The share of ``others`` that each value lies above; a tie counts half."""
    order = np.sort(others)
    left, right = (np.searchsorted(order, values, side=side) for side in ("left", "right"))
    return (left + right) / (2 * len(order))


def mean_placements(networks: Sequence[dict[str, Placements]]) -> dict[str, Placements]:
    """Averaged over networks, image by image."""
    return {
        name: Placements(
            np.mean([each[name].ood for each in networks], axis=0),
            np.mean([each[name].known for each in networks], axis=0),
            networks[0][name].classes,
        )
        for name in networks[0]
        if all(name in each for each in networks)
    }


def read_networks(scores: Path, method: str, detector: str, spectrum: bool = False) -> list[dict[str, Placements]]:
    """The placements of every network of a method whose scores are there; none if one has no corrupted images."""
    frames = [pd.read_parquet(path) for path in sorted(scores.glob(f"{method}-[0-9].parquet"))]
    if spectrum and not all((frame["role"] == "csid").any() for frame in frames):
        return []
    return [placements(frame, detector, spectrum) for frame in frames]


def contrast(first: dict[str, Placements], second: dict[str, Placements]) -> tuple[Estimate, Estimate]:
    """The difference of mean near AUROC for other images, and for other OOD classes."""
    names = [name for name in first if name in second]
    apart = [first[name].minus(second[name]) for name in names]
    by_class = [pd.Series(each.ood).groupby(each.classes).mean() for each in apart]
    shared = np.mean([each.known for each in apart], axis=0)
    known = shared.var(ddof=1) / len(shared)
    images = [each.ood.var(ddof=1) / len(each.ood) / len(names) ** 2 for each in apart]
    classes = [each.var(ddof=1) / len(each) / len(names) ** 2 for each in by_class]
    of_images = Estimate(
        100 * float(np.mean([each.ood.mean() for each in apart])), 100 * sqrt(sum(images) + known), inf
    )
    value = 100 * float(np.mean([each.mean() for each in by_class]))
    few = min(_effective(each.classes) for each in apart) < FEWEST
    parts = [*((each, len(values) - 1) for each, values in zip(classes, by_class)), (known, len(shared) - 1)]
    of_classes = Estimate(value, float("nan") if few else 100 * sqrt(sum(classes) + known), satterthwaite(parts))
    return of_images, of_classes


def _effective(classes: np.ndarray) -> float:
    """How many classes of equal size are worth as much as these."""
    counts = np.unique(classes, return_counts=True)[1]
    return float(counts.sum() ** 2 / (counts**2).sum())


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of a sum of variances, each with its own."""
    below = sum(variance**2 / freedom for variance, freedom in parts if freedom > 0)
    return float(sum(variance for variance, _ in parts) ** 2 / below) if below > 0 else inf


def pooled(values: pd.DataFrame, column: str) -> tuple[float, int]:
    """The variance of a column between seeds, pooled over methods that have several, and its degrees of freedom."""
    spreads = values.groupby("method")[column].agg(["var", "count"])
    spreads = spreads[spreads["count"] > 1]
    freedom = int((spreads["count"] - 1).sum())
    variance = float((spreads["var"] * (spreads["count"] - 1)).sum() / freedom) if freedom else float("nan")
    return variance, freedom


def over_seeds(value: float, classes: Estimate | None, luck: tuple[float, int], share: float) -> Estimate:
    """The difference for other networks of the recipes: between classes where scores are there, and between seeds.

    Parameters
    ----------
    luck : variance between seeds and its degrees of freedom.
    share : what it counts, 1/S for each training that is compared.
    """
    parts = [(luck[0] * share, float(luck[1]))]
    if classes is not None and isfinite(classes.error):
        parts.append((classes.error**2, classes.freedom))
    return Estimate(value, sqrt(sum(variance for variance, _ in parts)), satterthwaite(parts))


def against_plain(
    networks: pd.DataFrame, method: str, sign: int, read: Reader, other: str = "CE"
) -> tuple[str, ...] | None:
    """Difference from another method and its verdicts for images, classes and seeds; ``None`` where not yet run.

    Parameters
    ----------
    networks : near AUROC of each network, with ``method`` and ``seed``.
    other : what it is compared with, by default cross-entropy.
    read : gives the placements of the networks of a method, an empty list where there are no scores.
    """
    own, plain = (networks[networks["method"] == name]["near"] for name in (method, other))
    if own.empty or plain.empty:
        return None
    difference = float(own.mean() - plain.mean())
    images = classes = None
    scores = [read(name) for name in (method, other)]
    if all(scores):
        images, classes = contrast(*(mean_placements(each) for each in scores))
    seeds = f"{OPEN}: one seed"
    if min(len(own), len(plain)) > 1:
        share = 1 / len(own) + 1 / len(plain)
        seeds = over_seeds(difference, classes, pooled(networks, "near"), share).verdict(sign)
    return (f"{difference:+.2f}", *_words((images, classes), sign), seeds)


def falls(networks: pd.DataFrame, method: str, read: Reader) -> tuple[str, ...]:
    """By how much the near AUROC of a method is lower with corrupted ID images, and whether that holds.

    Parameters
    ----------
    networks : near AUROC and ``full``, that in the full spectrum, of each network.
    read : gives the placements of a method's networks; its second argument asks for the full spectrum.
    """
    own = networks[networks["method"] == method]
    drops = networks.assign(drop=networks["near"] - networks["full"])
    value = float((own["near"] - own["full"]).mean())
    images = classes = None
    scores = [read(method, spectrum) for spectrum in (False, True)]
    if all(scores):
        images, classes = contrast(*(mean_placements(each) for each in scores))
    seeds = f"{OPEN}: one seed"
    if len(own) > 1:
        seeds = over_seeds(value, classes, pooled(drops, "drop"), 1 / len(own)).verdict(1)
    return (f"{-value:+.2f}", *_words((images, classes), 1), seeds)


def _words(estimates: Sequence[Estimate | None], sign: int) -> list[str]:
    return ["no scores given" if each is None else each.verdict(sign) for each in estimates]

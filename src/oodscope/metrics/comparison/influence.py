r"""Influence: what each independent draw (an image, an OOD class, a seed) contributes to the values of all detectors.

Near the truth an estimate is a sum of contributions of independent units. With :math:`u_g` the vector over detectors
that unit g of a sample of G contributes, :math:`\bar u` their mean, the rows

.. math:: r_g = \sqrt{\tfrac{G}{G-1}}\; \frac{u_g - \bar u}{G} \qquad\text{give}\qquad
          \widehat{\mathrm{Cov}} = \sum_{\text{parts}} \sum_g r_g r_g^\top ,

so a difference of two detectors, a family of them, and their resampling by signs all come from one matrix of rows.
What is drawn decides the statement: images for *these classes*, whole OOD classes for *other OOD classes*, seeds for
*other networks of this recipe*. The parts are independent, and each knows its degrees of freedom.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, isinf, sqrt
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oodscope.base.errors import DataError, UnknownNameError
from oodscope.metrics.metric import Population
from oodscope.metrics.ranking.clusters import FEWEST, Noise
from oodscope.metrics.ranking.placements import Placements
from oodscope.metrics.scores import FloatArray

POPULATIONS: tuple[Population, ...] = get_args(Population)


@dataclass(frozen=True)
class Part:
    """One sample of independent units.

    Parameters
    ----------
    what : in words, such as ``"classes of cifar100"``.
    rows : ``[unit, detector]``, centred and scaled so that ``rows.T @ rows`` is the covariance that the part adds.
    freedom : degrees of freedom of that covariance; infinite where it is as good as known.
    resampled : the rows are resamples, or estimates, and say nothing of how well the covariance is known; ``freedom``
        alone does.
    """

    what: str
    rows: FloatArray
    freedom: float
    resampled: bool = False

    @property
    def units(self) -> int:
        """How many units were drawn."""
        return len(self.rows)

    @cached_property
    def covariance(self) -> FloatArray:
        """What the part adds to the covariance of the detectors."""
        return np.asarray(self.rows.T @ self.rows)

    def variances(self, weights: FloatArray) -> FloatArray:
        """What it adds to the variance of each contrast; what is left of two that cancel is rounding, not variance."""
        variance = np.einsum("dc,dc->c", self.covariance @ weights, weights)
        return np.where(variance > 1e-13 * (np.diagonal(self.covariance) @ weights**2), variance, 0.0)


@dataclass(frozen=True)
class Estimates:
    """The values of several detectors in one metric, with the noise that they share.

    Parameters
    ----------
    values : one per detector.
    parts : what was drawn at random.
    plain : the values with every image weighing the same, where ``values`` weigh classes the same.
    least : standard error that stands in where a difference shows no noise at all (see :func:`paired_delong`).
    """

    values: FloatArray
    parts: tuple[Part, ...]
    plain: FloatArray = field(default_factory=lambda: np.empty(0))
    least: float = 0.0

    def __len__(self) -> int:
        return self.values.size

    @property
    def fewest(self) -> float:
        """Units of the smallest part; infinite where all parts are as good as known."""
        return min((part.freedom + 1.0 for part in self.parts), default=inf)

    def contrasts(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Value, standard error and Satterthwaite's degrees of freedom of each ``weights[detector, contrast]``.

        :math:`\nu = (\sum_p v_p)^2 / \sum_p v_p^2 / \nu_p`, with :math:`v_p` the variance that part p adds.
        """
        values = self.values @ weights
        shares = [part.variances(weights) for part in self.parts]
        total = np.sum(shares, axis=0)
        spread = np.sum([share**2 / part.freedom for share, part in zip(shares, self.parts)], axis=0)
        freedom = np.full(total.shape, inf)
        np.divide(total**2, spread, out=freedom, where=spread > 0.0)
        return values, np.where((total == 0.0) & (values != 0.0), self.least, np.sqrt(total)), freedom

    def take(self, detectors: Sequence[int]) -> "Estimates":
        """Some of the detectors."""
        chosen = list(detectors)
        parts = tuple(replace(part, rows=part.rows[:, chosen]) for part in self.parts)
        plain = self.plain[chosen] if self.plain.size else self.plain
        return Estimates(self.values[chosen], parts, plain, self.least)

    def noise(self, detector: int) -> Noise:
        """The standard error of one value, and how well it is known."""
        _, error, freedom = self.contrasts(np.eye(len(self))[:, [detector]])
        return Noise(float(error[0]), float(freedom[0]))


def pairs_of(
    count: int, pairs: Sequence[tuple[int, int]] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Pairs of detectors (all a < b by default), and their differences as contrasts ``[detector, pair]``."""
    first, second = np.triu_indices(count, 1) if pairs is None else np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    weights = np.zeros((count, first.size))
    weights[first, np.arange(first.size)] = 1.0
    weights[second, np.arange(first.size)] = -1.0
    return first, second, weights


def part_of_units(what: str, values: FloatArray, *, share: float = 1.0) -> Part:
    """The part of a mean over independent units ``[unit, detector]``; ``share`` is its weight in the whole."""
    count = len(values)
    if count < 2:
        raise DataError(f"{what}: one has no spread; 2 or more are needed")
    rows = (values - values.mean(axis=0)) * (share * sqrt(count / (count - 1.0)) / count)
    return Part(what, rows, count - 1.0)


def from_replicates(
    values: FloatArray, replicates: FloatArray, what: str = "images", freedom: float | None = None
) -> Estimates:
    """Estimates whose joint noise is known from bootstrap replicates ``[replicate, detector]`` of shared draws.

    Parameters
    ----------
    freedom : how well a bootstrap of these images knows its own noise (:func:`noise_freedom`); as well as its
        replicates allow by default, which is right for smooth metrics.
    """
    spread = replicates - replicates.mean(axis=0)
    count = len(spread) - 1.0
    return Estimates(values, (Part(what, spread / sqrt(count), min(count, freedom or count), resampled=True),))


def noise_freedom(halves: Sequence[tuple[FloatArray, FloatArray]], replicates: int) -> float:
    r"""How well a bootstrap knows the noise of a difference, as degrees of freedom.

    More replicates do not help where the images themselves say little of the noise: the variance of a quantile, and so
    of FPR95, rests on the density at one point, and its bootstrap is off by a part of order :math:`n^{-1/4}` (Hall &
    Martin 1988): 12 % of a standard error at 800 images, enough that the largest of 1,770 statistics is false three
    times as often as promised. With :math:`v_1, v_2` the variances of one difference in two halves of the images,

    .. math:: \rho_{n/2} = 2\,\overline{\Bigl(\frac{v_1 - v_2}{v_1 + v_2}\Bigr)^2} - \frac{2}{B - 1}, \qquad
              \rho_n = \rho_{n/2} / \sqrt 2 + \frac{2}{R - 1}, \qquad \nu = 2 / \rho_n ,

    the mean over all pairs of detectors and over several ways to halve; the root is that of a quantile, and cautious
    for smooth metrics.

    Parameters
    ----------
    halves : for each way to halve the images, B replicates ``[replicate, detector]`` of either half.
    replicates : R, of the whole.
    """
    shares = []
    for first, second in halves:
        v1, v2 = (_pair_variances(half) for half in (first, second))
        shares.append(np.divide((v1 - v2) ** 2, (v1 + v2) ** 2, out=np.zeros_like(v1), where=v1 + v2 > 0.0))
    simulated = 2.0 / (len(halves[0][0]) - 1.0)
    spread = max(2.0 * float(np.mean(shares)) - simulated, 0.0) / sqrt(2.0) + 2.0 / (replicates - 1.0)
    return 2.0 / spread


def _pair_variances(replicates: FloatArray) -> FloatArray:
    """Of the difference of every pair of detectors."""
    covariance = np.atleast_2d(np.cov(replicates, rowvar=False))
    first, second = np.triu_indices(len(covariance), 1)
    own = np.diagonal(covariance)
    return np.asarray(own[first] + own[second] - 2.0 * covariance[first, second])


@dataclass(frozen=True)
class SetUnits:
    """One OOD set against the ID images: what every unit contributes to each detector.

    Parameters
    ----------
    name : of the set.
    values, plain : ``[detector]``; with equal class weights where classes are sampled, and with equal image weights.
    of_id : ``[ID unit, detector]``: contributions of ID images (or of groups of them); their mean is the value.
    of_ood : ``[unit, detector]``: class values where classes are sampled, else those of images (or groups).
    classes : names of the classes, where they are the units; a class that two sets share is one unit of both.
    id_freedom, ood_freedom : how well the contributions of either side are known where they were estimated, as degrees
        of freedom of the variance that they give; infinite where they are exact.
    """

    name: str
    values: FloatArray
    plain: FloatArray
    of_id: FloatArray
    of_ood: FloatArray
    classes: tuple[str, ...] | None = None
    id_freedom: float = inf
    ood_freedom: float = inf


def join_sets(sets: Sequence[SetUnits], least: float = 0.0, weights: Sequence[float] | None = None) -> Estimates:
    """The mean over sets, unweighted unless said: ID units counted once for all of them, shared classes one unit.

    A class that occurs in two sets errs in both together, so its contributions add before they are squared. Sets that
    share a class form one part, with as many degrees of freedom as it has units, less one for each set's mean.
    """
    if not sets:
        raise DataError("a mean over sets needs at least one set")
    given = np.ones(len(sets)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (len(sets),) or not (given >= 0.0).all() or not given.sum() > 0.0:
        raise DataError(
            f"weights of {len(sets)} sets are as many numbers from 0 up, not all 0; they are {given.tolist()}"
        )
    shares = {each.name: float(share) for each, share in zip(sets, given / given.sum())}
    values, plain = (
        np.sum([shares[each.name] * getattr(each, name) for each in sets], axis=0) for name in ("values", "plain")
    )
    parts = []
    known = [shares[each.name] * each.of_id for each in sets if len(each.of_id)]
    if known:
        freedom = len(sets) / sum(1.0 / each.id_freedom for each in sets) if isfinite(sets[0].id_freedom) else inf
        parts.append(_estimated(part_of_units("ID images", np.sum(known, axis=0)), freedom))
    for group in _linked(sets):
        if group[0].classes is not None:
            parts.append(_class_part(group, shares))
        elif len(group[0].of_ood):
            name = group[0].name
            part = part_of_units(f"images of {name}", group[0].of_ood, share=shares[name])
            parts.append(_estimated(part, group[0].ood_freedom))
    return Estimates(values, tuple(parts), plain, least)


def _estimated(part: Part, freedom: float) -> Part:
    """The part of contributions that are themselves estimates; as it is where they are exact."""
    return part if isinf(freedom) else replace(part, freedom=min(part.freedom, freedom), resampled=True)


def _linked(sets: Sequence[SetUnits]) -> list[list[SetUnits]]:
    """Sets in groups that share classes; a set without sampled classes is alone."""
    groups: list[list[SetUnits]] = []
    for each in sets:
        touched = [
            group
            for group in groups
            if each.classes and any(member.classes and {*member.classes} & {*each.classes} for member in group)
        ]
        groups = [group for group in groups if not any(group is other for other in touched)]
        groups.append([*(member for group in touched for member in group), each])
    return groups


def _class_part(group: Sequence[SetUnits], shares: Mapping[str, float]) -> Part:
    names = list(dict.fromkeys(name for each in group for name in each.classes or ()))
    where = {name: row for row, name in enumerate(names)}
    rows = np.zeros((len(names), group[0].of_ood.shape[1]))
    what = f"classes of {' and '.join(each.name for each in group)}"
    for each in group:
        own = part_of_units(f"classes of {each.name}", each.of_ood, share=shares[each.name])
        np.add.at(rows, [where[name] for name in each.classes or ()], own.rows)
    return Part(what, rows, float(len(names) - len(group)))


def placed_images(detectors: Sequence[Placements]) -> Estimates:
    """The same from placements that are there already, images as units: DeLong's noise of every detector."""
    if not detectors:
        raise DataError("a comparison needs at least one detector")
    names = list(detectors[0].of_ood)
    sets = [
        SetUnits(
            name,
            values := np.array([each.of_ood[name].mean() for each in detectors]),
            values,
            np.stack([each.of_id for each in detectors], axis=1),
            np.stack([each.of_ood[name] for each in detectors], axis=1),
        )
        for name in names
    ]
    found = join_sets(sets, half_a_failure(detectors[0]))
    # DeLong takes the variance as known
    return replace(found, parts=tuple(Part(part.what, part.rows, inf) for part in found.parts))


def half_a_failure(placed: Placements) -> float:
    """The standard error of half a failure in m + 1 trials, m the smallest sample: the least noise of a difference."""
    m = min(placed.n_id, *(values.size for values in placed.of_ood.values()))
    return sqrt((m + 0.5) * 0.5 / (m + 1) ** 2 / m)


def effective_classes(classes: ArrayLike) -> float:
    r"""How many classes of equal size would say as much: :math:`G^* = (\sum n_c)^2 / \sum n_c^2`."""
    _, sizes = np.unique(np.asarray(classes), return_counts=True)
    return float(sizes.sum() ** 2 / np.sum(sizes.astype(np.float64) ** 2))


def refusal(name: str, classes: ArrayLike | None, population: Population) -> str:
    """Why no statement about other classes can be made from a set; empty where one can."""
    if population not in POPULATIONS:
        raise UnknownNameError("kind of classes", population, POPULATIONS)
    if population != "sampled":
        return ""
    if classes is None:
        return f"{name} has no classes that could be drawn anew"
    if (count := effective_classes(classes)) < FEWEST:
        return f"{name} has {count:.1f} effective classes; {FEWEST} are needed"
    return ""


def place_sets(
    id_scores: FloatArray,
    ood_scores: Mapping[str, FloatArray],
    classes: Mapping[str, NDArray[np.int64]],
    populations: Mapping[str, Population],
    class_names: Mapping[str, Sequence[str]] | None = None,
    placed: Mapping[str, FloatArray] | None = None,
) -> dict[str, SetUnits]:
    """The units of the AUROC of every detector on every set, larger score = more OOD.

    Where classes are sampled, the value is the mean of the AUROCs of the classes, each class weighing the same, and
    the classes are the units; elsewhere it is the plain AUROC and the images are the units.

    Parameters
    ----------
    id_scores, ood_scores : ``[detector, image]``.
    classes : the class of each image, for sets that have classes.
    populations : what the classes of each set are; ``"none"`` unless said.
    class_names : by set, for classes that two sets share.
    placed : by set the share of ID scores below each of its own ``[detector, image]``, where that is known.
    """
    ascending = np.sort(id_scores, axis=1)
    shares = placed or {
        name: np.stack([_below(known, own) for known, own in zip(ascending, scores)])
        for name, scores in ood_scores.items()
    }
    found = {}
    for name, scores in ood_scores.items():
        sampled = populations.get(name, "none") == "sampled" and name in classes
        labels = np.unique(classes[name], return_inverse=True)[1] if sampled else np.arange(scores.shape[1])
        sizes = np.bincount(labels).astype(np.float64)
        weights = (1.0 / (sizes.size * sizes))[labels]
        of_ood = shares[name].T
        if sampled:
            of_ood = np.stack([np.bincount(labels, row) / sizes for row in shares[name]], axis=1)
        of_id = np.stack([_above(own, weights, known) for own, known in zip(scores, id_scores)], axis=1)
        keys = class_keys(name, classes[name], (class_names or {}).get(name)) if sampled else None
        found[name] = SetUnits(name, of_ood.mean(axis=0), shares[name].mean(axis=1), of_id, of_ood, keys)
    return found


def class_keys(name: str, classes: NDArray[np.int64], names: Sequence[str] | None) -> tuple[str, ...]:
    """What each class of a set is, in the order of its number, for finding those that two sets share.

    Its name, as far as that says what it is: a mere number means something else in every set.
    """

    def key(number: int) -> str:
        said = names[number].strip().lower() if names and 0 <= number < len(names) else ""
        return f"{name}/{number}" if not said or said.isdigit() else said

    return tuple(map(key, np.unique(classes).tolist()))


def _below(ascending: FloatArray, scores: FloatArray) -> FloatArray:
    sides = ascending.searchsorted(scores, "left") + ascending.searchsorted(scores, "right")
    return np.asarray(sides / (2.0 * ascending.size))


def _above(scores: FloatArray, weights: FloatArray, known: FloatArray) -> FloatArray:
    """The weight of ``scores`` above each known one, a tie counting half."""
    order = np.argsort(scores, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    sides = sums[scores[order].searchsorted(known, "left")] + sums[scores[order].searchsorted(known, "right")]
    return np.asarray(1.0 - sides / 2.0)

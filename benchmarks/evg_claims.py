"""What the searches of ``evg_table.py`` show: AUROC with intervals, the paper's six points, orders.

Every image has a place among the ID test images: the share of them that score lower. The AUROC is the mean of these
places, and rows that start from the same source images are compared image by image. Noise of a value has three parts:
source images, ID images, and search seeds (where there are several).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from scipy.stats import t as student

from evg_rows import KINDS, PROVEN, ROWS, SETS, STRONG, VARIED, WEAK

Floats = NDArray[np.float64]

REPLICATES = 2_000
HOLDS, NOT, OPEN = "holds", "does not", "cannot say"


def places(id_scores: Floats, scores: Floats) -> Floats:
    """For each score the share of ID images that score lower, ties counting half."""
    ordered = np.sort(id_scores)
    below, up_to = (np.searchsorted(ordered, scores, side) for side in ("left", "right"))
    return np.asarray((below + up_to) / (2 * len(ordered)))


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval at 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(images: Floats, by_seed: Floats, id_noise: float = 0.0) -> Estimate:
    """Of the mean over images, whose numbers are means over seeds.

    Parameters
    ----------
    images : one number per source image.
    by_seed : the mean of each search seed; one where nothing was searched.
    id_noise : variance that the ID images add.
    """
    parts = [(images.var(ddof=1) / len(images), len(images) - 1)] if len(images) > 1 else []
    if len(by_seed) > 1:
        parts.append((by_seed.var(ddof=1) / len(by_seed), len(by_seed) - 1))
    variance = sum(part for part, _ in parts) + id_noise
    value = float(images.mean())
    if variance == 0:
        return Estimate(value, value, value)
    # Satterthwaite's degrees of freedom
    freedom = variance**2 / max(sum(part**2 / count for part, count in parts), 1e-300)
    half = float(student.ppf(0.975, max(freedom, 1.0)) * np.sqrt(variance))
    return Estimate(value, value - half, value + half)


@dataclass(frozen=True)
class Cell:
    """The places of one row's outliers under one variation.

    Parameters
    ----------
    by_seed : of each search seed and source image, ``[seeds, images]``.
    clean : of the source images themselves; empty where images come from a generator or nothing was searched.
    id_noise : variance of the AUROC from the choice of ID images.
    """

    by_seed: Floats
    clean: Floats
    id_noise: float

    @cached_property
    def images(self) -> Floats:
        return np.asarray(self.by_seed.mean(axis=0))

    @cached_property
    def auroc(self) -> Estimate:
        found = estimate(self.images, self.by_seed.mean(axis=1), self.id_noise)
        return Estimate(found.value, max(0.0, found.low), min(1.0, found.high))

    @cached_property
    def drop(self) -> Estimate:
        """Clean less attacked, image by image; the ID images are the same on both sides."""
        return estimate(self.clean - self.images, -self.by_seed.mean(axis=1))


Cells = Mapping[tuple[str, str, str], Cell]


def read_cells(folder: Path) -> dict[tuple[str, str, str], Cell]:
    """What the files of units hold, by row, set and variation."""
    content: dict[tuple[str, str, str], list[Mapping[str, Floats]]] = {}
    for row in ROWS:
        for name in SETS:
            for kind in ("clean", PROVEN, *KINDS):
                files = sorted((folder / "units").glob(f"{row.name}-{name}-{kind}-[0-9].npz"))
                if files:
                    content[row.name, name, kind] = [dict(np.load(file)) for file in files]
    return {key: cell_of(units) for key, units in content.items()}


def cell_of(units: Sequence[Mapping[str, Floats]]) -> Cell:
    """The units of all search seeds as one cell."""
    first = units[0]
    by_seed = np.stack([places(unit["id_test"], unit["found"]) for unit in units])
    # what each ID image adds to the AUROC: the share of outliers that score above it
    above = 1 - places(first["found"], first["id_test"])
    clean = places(first["id_test"], first["clean"]) if "clean" in first else np.zeros(0)
    return Cell(by_seed, clean if clean.shape == by_seed.shape[1:] else np.zeros(0), float(above.var() / len(above)))


@dataclass(frozen=True)
class Claim:
    """A statement about one or several numbers, and what they say of it."""

    words: str
    parts: tuple[tuple[str, str], ...]

    @property
    def verdict(self) -> str:
        """``holds`` if all parts do, ``does not`` if one does not."""
        verdicts = [verdict for _, verdict in self.parts]
        if NOT in verdicts:
            return NOT
        return HOLDS if verdicts and all(each == HOLDS for each in verdicts) else OPEN


def at_most(what: str, found: Estimate | None, bar: float) -> tuple[str, str]:
    """Whether an interval lies below a bar."""
    if found is None:
        return f"{what}: not run", OPEN
    verdict = HOLDS if found.high <= bar else NOT if found.low > bar else OPEN
    return f"{what} {found} ≤ {bar:g}", verdict


def at_least(what: str, found: Estimate | None, bar: float) -> tuple[str, str]:
    """Whether an interval lies above a bar."""
    if found is None:
        return f"{what}: not run", OPEN
    verdict = HOLDS if found.low >= bar else NOT if found.high < bar else OPEN
    return f"{what} {found} ≥ {bar:g}", verdict


def auroc_of(cells: Cells, row: str, name: str, kind: str) -> Estimate | None:
    """The AUROC of a cell, if it was run."""
    cell = cells.get((row, name, kind))
    return None if cell is None else cell.auroc


def _drop(cells: Cells, row: str, name: str, kind: str) -> Estimate | None:
    cell = cells.get((row, name, kind))
    return None if cell is None or not len(cell.clean) else cell.drop


def difference(cells: Cells, one: str, other: str, name: str, kind: str) -> Estimate | None:
    """One row less another on the same images."""
    ours, theirs = cells.get((one, name, kind)), cells.get((other, name, kind))
    if ours is None or theirs is None or len(ours.images) != len(theirs.images):
        return None
    return estimate(ours.images - theirs.images, np.zeros(1), ours.id_noise + theirs.id_noise)


def claims(cells: Cells) -> list[Claim]:
    """The six points that the paper's table shows, asked of ours."""
    weak = [at_most(f"{row}, clean", auroc_of(cells, row, "svhn", "clean"), 0.15) for row in WEAK]
    weak += [at_most(f"{row}, affine", auroc_of(cells, row, "svhn", "affine"), 0.05) for row in WEAK]
    weak += [
        at_most(f"{row}, {kind}", auroc_of(cells, row, "svhn", kind), 0.03) for row in WEAK for kind in ("color", "gan")
    ]
    weak += [at_least(f"{row}, scenes", auroc_of(cells, row, "scenes", "clean"), 0.2) for row in WEAK]
    raised = difference(cells, "nae", "autoencoder", "svhn", "clean")
    energy = [
        at_least("NAE less AE, clean", raised, 0.6),
        at_most("NAE, gan", auroc_of(cells, "nae", "svhn", "gan"), 0.1),
    ]
    ball = [at_most(f"{row}, drop", _drop(cells, row, "svhn", "linf"), 0.12) for row in ("atom", "acet")]
    ball += [at_least(f"{row}, drop", _drop(cells, row, "svhn", "linf"), 0.25) for row in ("oe", "ssd", "sngp")]
    moved = [
        at_least(f"{row}, drop", _drop(cells, row, "svhn", "affine"), 0.15) for row in ("good", "ceda", "rowl", "acet")
    ]
    orders = spearman_orders(cells, "svhn")
    reordered = [
        at_most(f"order under linf less {kind}", orders.get(f"linf less {kind}"), 0.0) for kind in ("color", "gan")
    ]
    worst = best_worst(cells, "svhn")
    return [
        Claim(
            "1. Likelihoods and plain reconstruction fail on SVHN and lose the rest; on scenes they do not", tuple(weak)
        ),
        Claim("2. Normalising repairs the autoencoder, not against a generator", tuple(energy)),
        Claim("3. In the l-inf ball of .01 rows trained against attacks lose little, others much", tuple(ball)),
        Claim("4. Robust in the ball is not robust against affine changes", tuple(moved)),
        Claim("5. The ball reorders strong detectors more than color or a generator do", tuple(reordered)),
        Claim(
            "6. Nobody holds: the best worst case over four variations stays below .8", (at_most("best", worst, 0.8),)
        ),
    ]


def _resampled(cells: Cells, name: str, kinds: Sequence[str]) -> Iterator[dict[str, Floats]]:
    """AUROCs of the strong rows under each kind, as found and with images and seeds drawn again."""
    rows = [row for row in STRONG if all((row, name, kind) in cells for kind in kinds)]
    table = {kind: [cells[row, name, kind].by_seed for row in rows] for kind in kinds}
    yield {kind: np.array([each.mean() for each in table[kind]]) for kind in kinds}
    rng = np.random.default_rng(0)
    for _ in range(REPLICATES if len(rows) > 2 else 0):
        found = {}
        for kind in kinds:
            seeds, images = table[kind][0].shape
            picked = rng.integers(seeds, size=seeds), rng.integers(images, size=images)
            found[kind] = np.array([each[picked[0] % len(each)][:, picked[1]].mean() for each in table[kind]])
        yield found


def spearman_orders(cells: Cells, name: str) -> dict[str, Estimate]:
    """Spearman's correlation of clean and attacked AUROC over the strong rows that have both, and differences of it."""
    kinds = [kind for kind in ("clean", *VARIED) if any((row, name, kind) in cells for row in STRONG)]
    if "clean" not in kinds or len(kinds) < 2:
        return {}
    draws: dict[str, list[float]] = {}
    for found in _resampled(cells, name, kinds):
        if len(found["clean"]) < 4:
            return {}
        values = {kind: _spearman(found["clean"], found[kind]) for kind in kinds[1:]}
        if "linf" in values:
            values |= {f"linf less {kind}": values["linf"] - values[kind] for kind in kinds[2:]}
        for key, value in values.items():
            draws.setdefault(key, []).append(value)
    return {key: _percentiles(values) for key, values in draws.items()}


def best_worst(cells: Cells, name: str) -> Estimate | None:
    """The largest over rows of the smallest AUROC over the four variations."""
    rows = [row.name for row in ROWS if row.published and all((row.name, name, kind) in cells for kind in VARIED)]
    if not rows:
        return None
    lowest = {row: min((cells[row, name, kind].auroc for kind in VARIED), key=lambda each: each.value) for row in rows}
    return max(lowest.values(), key=lambda each: each.value)


def _spearman(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])


def _percentiles(values: Sequence[float]) -> Estimate:
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return Estimate(values[0], float(low), float(high))

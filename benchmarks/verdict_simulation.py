"""How often verdicts are wrong where nothing differs, and how often a difference is seen: simulated tables.

python benchmarks/verdict_simulation.py [--tables 800] > docs/results/verdicts.md
"""

import argparse
import platform
from dataclasses import dataclass, replace
from datetime import date
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta, norm

from oodscope.metrics.comparison.influence import (
    Estimates,
    effective_classes,
    from_replicates,
    join_sets,
    place_sets,
    refusal,
)
from oodscope.metrics.comparison.networks import average_networks, compared_trainings, paired_by_seed
from oodscope.metrics.comparison.selection import leader_value
from oodscope.metrics.comparison.simultaneous import compare_pairs, may_be_best, rank_intervals
from oodscope.metrics.ranking.clusters import logit_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.resampling import bootstrap_each

Array = NDArray[np.float64]
SVHN = np.array([1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]) / 26032
ORACLE = float(norm.isf(0.025) + norm.isf(0.2))
"""Standard errors of a true difference that a test with known variance sees in 80 % of tables."""


@dataclass(frozen=True)
class World:
    """OOD score = 1 + class + class x detector + image; ID score = image.

    Parameters
    ----------
    spread, own_spread : of the effects of classes, shared by all detectors and each detector's own.
    sizes : of the classes: ``balanced``, ``svhn``, or ``dominant`` (one holds the share ``largest``).
    skewed : own effects are exponential instead of normal.
    common : the part of an image's score that all detectors share.
    """

    classes: int = 10
    per_class: int = 20
    n_id: int = 400
    spread: float = 0.4
    own_spread: float = 0.3
    sizes: str = "balanced"
    largest: float = 0.35
    skewed: bool = False
    common: float = 0.8

    def labels(self) -> NDArray[np.int64]:
        """The class of each OOD image."""
        shares = np.ones(self.classes)
        if self.sizes == "svhn":
            shares = np.resize(SVHN, self.classes)
        elif self.sizes == "dominant":
            shares = np.r_[self.largest, np.full(self.classes - 1, (1.0 - self.largest) / (self.classes - 1))]
        counts = np.round(self.classes * self.per_class * shares / shares.sum()).astype(np.int64)
        return np.repeat(np.arange(self.classes), np.maximum(counts, 2))

    def effects(self, rng: np.random.Generator, detectors: int) -> Array:
        """Of classes, ``[detector, class]``."""
        shape = (detectors, self.classes)
        own = rng.exponential(size=shape) - 1.0 if self.skewed else rng.normal(size=shape)
        return self.spread * rng.normal(size=self.classes) + self.own_spread * own

    def draw(
        self, rng: np.random.Generator, detectors: int, shifts: object = 0.0, effects: Array | None = None
    ) -> tuple[Array, Array, NDArray[np.int64]]:
        """ID scores, OOD scores ``[detector, image]`` and the class of each OOD image."""
        labels = self.labels()
        moved = 1.0 + (self.effects(rng, detectors) if effects is None else effects)
        moved = moved + np.reshape(np.broadcast_to(np.asarray(shifts), detectors), (detectors, 1))
        own = np.sqrt(1.0 - self.common**2)
        known = self.common * rng.normal(size=self.n_id) + own * rng.normal(size=(detectors, self.n_id))
        images = self.common * rng.normal(size=labels.size) + own * rng.normal(size=(detectors, labels.size))
        return known, moved[:, labels] + images, labels

    def auroc(self, shift: float = 0.0) -> float:
        """The truth over all classes that could be drawn."""
        if not self.skewed:
            return float(norm.cdf((1.0 + shift) / np.sqrt(2.0 + self.spread**2 + self.own_spread**2)))
        steps = (np.arange(20_000) + 0.5) / 20_000
        own = self.own_spread * (-np.log(steps) - 1.0)
        return float(norm.cdf((1.0 + shift + own) / np.sqrt(2.0 + self.spread**2)).mean())

    def shift_for(self, difference: float) -> float:
        """The shift of the scores that changes the AUROC by so much."""
        return float(brentq(lambda shift: self.auroc(shift) - self.auroc() - difference, 0.0, 20.0))


def estimates(world: World, rng: np.random.Generator, detectors: int, shifts: object = 0.0) -> Estimates:
    """A table of detectors on one set whose classes are sampled."""
    known, ood, labels = world.draw(rng, detectors, shifts)
    return join_sets(list(place_sets(known, {"o": ood}, {"o": labels}, {"o": "sampled"}).values()))


CELLS: dict[str, World] = {
    "5 classes": World(classes=5, per_class=40),
    "10 classes": World(),
    "50 classes": World(classes=50),
    "200 classes": World(classes=200, per_class=10),
    "10 classes, SVHN sizes": World(sizes="svhn"),
    "50 classes, SVHN sizes": World(classes=50, sizes="svhn"),
    "10 classes, one dominant (35 %)": World(sizes="dominant"),
    "50 classes, one dominant (35 %)": World(classes=50, sizes="dominant"),
    "10 classes, skewed effects": World(skewed=True),
    "50 classes, skewed effects": World(classes=50, skewed=True),
}
SEEDS, METHODS, LUCK = 3, 8, 0.12


def networks(world: World, rng: np.random.Generator, shifts: object, shared: float) -> list[list]:  # type: ignore[type-arg]
    """The units of three networks of every method; ``shared`` is the part of a network's luck that all share."""
    effects = world.effects(rng, METHODS)
    found = []
    for _ in range(SEEDS):
        luck = LUCK * (shared * rng.normal() + np.sqrt(1.0 - shared**2) * rng.normal(size=METHODS))
        known, ood, labels = world.draw(rng, METHODS, luck + np.broadcast_to(np.asarray(shifts), METHODS), effects)
        found.append(list(place_sets(known, {"o": ood}, {"o": labels}, {"o": "sampled"}).values()))
    return found


def post_hoc(world: World, rng: np.random.Generator, detectors: int, shifts: object = 0.0) -> Estimates:
    """Detectors that share three checkpoints."""
    return paired_by_seed(networks(world, rng, shifts, shared=0.9)).take(range(detectors))


def trainings(world: World, rng: np.random.Generator, detectors: int, shifts: object = 0.0) -> Estimates:
    """Methods with three seeds of their own, the spread of seeds pooled over eight of them."""
    units = networks(world, rng, shifts, shared=0.0)
    by_seed = np.stack([join_sets(each).values for each in units])
    return compared_trainings(join_sets(average_networks(units)), list(by_seed.T)).take(range(detectors))


DRAWN = {
    **{name: (estimates, world) for name, world in CELLS.items()},
    "10 classes, 3 seeds, post-hoc": (post_hoc, World()),
    "50 classes, 3 seeds, trainings": (trainings, World(classes=50)),
}
"""The twelve cells: how a table is drawn, and from what."""

FAMILIES = 4
"""Every so many tables are tested as a family of six as well."""

PAIRS = [(0, 1), (2, 3), (4, 5)]
"""Pairs of six detectors that share none, so that each table counts three times."""


def upper_bound(false: int, count: int) -> float:
    """One-sided 95 % bound of a rate (Clopper & Pearson)."""
    return float(beta.ppf(0.95, false + 1, count - false)) if false < count else 1.0


@dataclass(frozen=True)
class Outcome:
    """One cell: false verdicts and power, for one pair and for families of six."""

    false: int
    pairs: int
    family_false: int
    tables: int
    power: float
    oracle: float
    family_power: float

    @property
    def bound(self) -> float:
        return upper_bound(self.false, self.pairs)

    @property
    def ratio(self) -> float:
        return self.power / self.oracle


def run_cell(name: str, tables: int, replicates: int = 499) -> Outcome:
    """Equal detectors first; then three of six raised by what the oracle sees in 80 % of tables."""
    draw, world = DRAWN[name]
    rng = np.random.default_rng([17, *name.encode()])
    differences, false, family = [], 0, 0
    for seed in range(tables):
        table = draw(world, rng, 6)
        single = compare_pairs(table, pairs=PAIRS, replicates=1)
        differences.append(single.difference)
        false += int(np.sum(single.p < 0.05))
        if seed % FAMILIES == 0:
            family += bool(compare_pairs(table, seed=seed, replicates=replicates).p_adjusted.min() < 0.05)
    error = float(np.std(differences))
    shift = world.shift_for(ORACLE * error)
    seen = oracle = family_seen = 0
    for seed in range(tables):
        shifts = np.zeros(METHODS if draw is not estimates else 6)
        shifts[[0, 2, 4]] = shift
        table = draw(world, rng, 6, shifts)
        single = compare_pairs(table, pairs=PAIRS, replicates=1)
        seen += int(np.sum((single.p < 0.05) & (single.difference > 0.0)))
        oracle += int(np.sum(single.difference > norm.isf(0.025) * error))
        if seed % FAMILIES == 0:
            whole = compare_pairs(table, seed=seed, replicates=replicates)
            apart = {(a, b) for a, b, p in zip(whole.first, whole.second, whole.p_adjusted) if p < 0.05}
            family_seen += sum(pair in apart for pair in PAIRS)
    count, families = tables * len(PAIRS), -(-tables // FAMILIES)
    power = family_seen / (families * len(PAIRS))
    return Outcome(false, count, family, families, seen / count, oracle / count, power)


def fpr_tables(detectors: int, tables: int, images: int = 800, replicates: int = 400) -> tuple[float, float]:
    """Power at 1.3 times the oracle's detectable difference of FPR95, and its false verdicts, for all pairs."""
    world = World(classes=1, per_class=images, n_id=images, spread=0.0, own_spread=0.0)
    rng = np.random.default_rng([19, detectors])
    first, second = np.triu_indices(detectors, 1)

    def fpr(known: Array, ood: Array) -> float:
        return Ranking(known, ood).fpr_at_tpr(0.95, positive="id")

    values = np.array(
        [[fpr(k, o) for k, o in zip(*world.draw(rng, detectors)[:2])] for _ in range(max(tables, 2000 // detectors))]
    )
    spread = values[:, first] - values[:, second]
    error = float(np.sqrt(np.mean(spread**2)))
    limit = float(np.quantile(np.abs(spread).max(axis=1) / error, 0.95))
    truth = float(norm.cdf(norm.isf(0.05) - 1.0))
    wanted = 1.3 * (limit + norm.isf(0.2)) * error
    shift = float(norm.isf(0.05) - 1.0 - norm.ppf(max(truth - wanted, 1e-6)))
    seen = false = 0
    for table in range(tables):
        for raised in (shift, 0.0):
            known, ood, _ = world.draw(rng, detectors, np.r_[raised, np.zeros(detectors - 1)])
            samples = {str(d): (known[d], {"o": ood[d]}) for d in range(detectors)}
            draws = bootstrap_each(samples, seed=table, replicates=replicates, metrics=["fpr95_id_positive"])
            points = np.array([each.point("fpr95_id_positive", ["o"]) for each in draws.values()])
            drawn = np.stack([each.replicates("fpr95_id_positive", ["o"]) for each in draws.values()], axis=1)
            found = compare_pairs(from_replicates(points, drawn), replicates=499, seed=table)
            if raised:
                seen += bool(found.p_adjusted[0] < 0.05 and found.difference[0] < 0.0)
            else:
                false += bool(found.p_adjusted.min() < 0.05)
    return seen / tables, false / tables


def chosen_coverage(classes: int, tables: int, detectors: int = 46) -> tuple[float, float, float, float]:
    """Of the best of many equals: coverage with cross-fitting and without, and both biases in points."""
    world = World(classes=classes, per_class=max(5, 400 // classes), n_id=500)
    rng = np.random.default_rng([23, classes])
    truth, held, naive, value_bias, apparent_bias = world.auroc(), 0, 0, 0.0, 0.0
    for seed in range(tables):
        table = estimates(world, rng, detectors)
        value, low, high = leader_value(table, seed=seed)
        apparent = float(table.values.max())
        held += low <= truth <= high
        naive += abs(apparent - truth) <= (high - low) / 2.0
        value_bias += value - truth
        apparent_bias += apparent - truth
    return held / tables, naive / tables, 100 * value_bias / tables, 100 * apparent_bias / tables


def statement_coverage(world: World, tables: int) -> dict[str, float]:
    """How often the class interval, the paired interval, all rank intervals and the set of candidates hold."""
    rng = np.random.default_rng([29, world.classes])
    shifts = np.array([0.0, 0.0, 0.15, 0.15, 0.3, 0.45])
    truth = np.array([world.auroc(shift) for shift in shifts])
    held = dict.fromkeys(("class interval", "paired interval", "all rank intervals", "best is a candidate"), 0.0)
    for seed in range(tables):
        table = estimates(world, rng, 6, shifts)
        low, high = logit_interval(float(table.values[0]), table.noise(0)) or (0.0, 1.0)
        held["class interval"] += low <= truth[0] <= high
        pairs = compare_pairs(table, seed=seed, replicates=499)
        held["paired interval"] += pairs.low[-1] <= truth[4] - truth[5] <= pairs.high[-1]
        ranks = rank_intervals(table, table=pairs)
        held["all rank intervals"] += all(
            best <= 1 + np.sum(truth > own + 1e-12) and worst >= 6 - np.sum(truth < own - 1e-12)
            for own, (best, worst) in zip(truth, ranks)
        )
        held["best is a candidate"] += bool(may_be_best(table, seed=seed, replicates=499)[-1])
    return {name: count / tables for name, count in held.items()}


def percent(share: float) -> str:
    """``0.0512`` as ``5.1``."""
    return f"{100 * share:.1f}"


def cells_section(found: dict[str, Outcome]) -> list[str]:
    """The table of the twelve cells, and whether it meets the bars."""
    lines = [
        "| cell | false, one pair | upper 95 % bound | power, one pair | oracle | power / oracle | "
        "false, family of six | power in the family |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, each in found.items():
        lines.append(
            f"| {name} | {percent(each.false / each.pairs)} | {percent(each.bound)} | {percent(each.power)} | "
            f"{percent(each.oracle)} | {each.ratio:.2f} | {percent(each.family_false / each.tables)} | "
            f"{percent(each.family_power)} |"
        )
    wrong = [name for name, each in found.items() if each.bound > 0.065]
    weak = [name for name, each in found.items() if each.ratio < (0.65 if name.startswith("5 ") else 0.8)]
    lines += ["", verdict("The upper bound of false verdicts is at most 6.5 %", wrong)]
    lines += [verdict("Power of one pair is at least 0.80 of the oracle's (0.65 with 5 classes)", weak)]
    return lines


def verdict(claim: str, failing: list[str]) -> str:
    """The claim, and where it fails."""
    return f"{claim} in every cell." if not failing else f"{claim}, but not here: {'; '.join(failing)}."


def refused_section() -> list[str]:
    """Cells without an answer, and what they say."""
    lopsided = World(sizes="dominant", largest=0.6)
    labels = lopsided.labels()
    return [
        f"- One class with 60 % of the images of 10 (G* = {effective_classes(labels):.1f}): "
        f'"{refusal("the set", labels, "sampled")}". No power bar.',
        '- Trainings with one seed: "cannot say" (`compared_trainings` refuses). No power bar.',
    ]


def table_lines(*heads: str) -> str:
    """The head of a table."""
    return f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"


def report(tables: int) -> None:
    """Print the page."""
    began = process_time()
    cells = {name: run_cell(name, tables) for name in DRAWN}
    fpr = {count: fpr_tables(count, max(tables // 12, 20)) for count in (2, 8, 30, 60)}
    chosen = {classes: chosen_coverage(classes, max(tables // 3, 50)) for classes in (10, 50)}
    covered = {classes: statement_coverage(replace(World(), classes=classes), tables // 3) for classes in (10, 50)}
    print(PAGE.format(tables=tables, pairs=3 * tables, machine=f"{platform.machine()}, one core", date=date.today()))
    print("\n".join(cells_section(cells)))
    print("\nCells that are refused:\n")
    print("\n".join(refused_section()))
    print("\n## FPR95 among many detectors\n")
    print(table_lines("detectors", "pairs", "power at 1.3 x, all pairs adjusted", "false tables", "tables"))
    for count, (power, false) in fpr.items():
        pairs = count * (count - 1) // 2
        print(f"| {count} | {pairs} | {percent(power)} | {percent(false)} | {max(tables // 12, 20)} |")
    failing = [f"{count} detectors" for count, (power, _) in fpr.items() if power < 0.8]
    print("\n" + verdict("Power at 1.3 times the oracle's detectable difference is at least 80 %", failing))
    print("\n## The value of a chosen detector\n")
    heads = ("cross-fitted interval holds", "interval around the best value holds", "bias, cross-fitted")
    print(table_lines("OOD classes", *heads, "bias of the best value", "tables"))
    for classes, (held, naive, bias, apparent) in chosen.items():
        count = max(tables // 3, 50)
        print(f"| {classes} | {percent(held)} | {percent(naive)} | {bias:+.2f} | {apparent:+.2f} | {count} |")
    failing = [f"{classes} classes" for classes, (held, *_) in chosen.items() if held < 0.93]
    claim = "The interval of the best of 46 equal detectors holds the truth in at least 93 % of tables"
    print("\n" + verdict(claim, failing))
    names = list(next(iter(covered.values())))
    print(f"\n## How often other statements hold, {tables // 3} tables of six unequal detectors\n")
    print(table_lines("OOD classes", *names))
    for classes, shares in covered.items():
        print(f"| {classes} | {' | '.join(percent(shares[name]) for name in names)} |")
    print(f"\nProcessor time: {process_time() - began:.0f} s.")


PAGE = """# Verdicts under simulation

**Question.** Detectors that do not differ over OOD classes should get a false verdict in 5 % of tables; a difference
that an oracle (which knows the variance) sees in 80 % of tables should be seen nearly as often. Do the verdicts of
oodscope hold that?

**Command.** `python benchmarks/verdict_simulation.py --tables {tables}`

**Machine.** {machine}.

**Date.** {date}

An OOD score is 1 + effect of its class (sd 0.4, shared by detectors) + the detector's own effect of it (sd 0.3) +
noise of the image (sd 1, 80 % shared); 400 ID images, 20 OOD images a class (40 with 5 classes, 10 with 200). Skewed
effects are exponential. Networks move a method by sd {luck}. {tables} tables of six detectors a cell; one pair: the
three pairs of a table that share no detector, {pairs} in all; every fourth table is a family of six. Rates in percent.

## Twelve cells
""".replace("{luck}", str(LUCK))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=800)
    report(parser.parse_args().tables)


if __name__ == "__main__":
    main()

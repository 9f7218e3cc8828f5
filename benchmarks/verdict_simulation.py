"""How often verdicts are wrong where nothing differs, and how often a difference is seen: simulated tables.

    python benchmarks/verdict_simulation.py [--tables 3000] [--minutes 10] [--write docs/results/verdicts.md]

The page is made of pieces (a cell, a family, a coverage), each kept in ``artifacts/verdicts`` when it is done: a call
that was stopped, or whose minutes are over, goes on with the next, and the page names the pieces that are not there.
"""

import argparse
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.special import stdtr
from scipy.stats import beta, norm

from oodscope.base.files import write_text
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.comparison.influence import Estimates, effective_classes, join_sets, refusal
from oodscope.metrics.comparison.rates import rate_sets
from oodscope.metrics.comparison.selection import leader_value
from oodscope.metrics.comparison.simultaneous import compare_pairs, may_be_best, rank_intervals
from oodscope.metrics.metric import columns_of
from oodscope.metrics.ranking.clusters import logit_interval
from oodscope.metrics.ranking.ranking import Ranking
from verdict_worlds import LUCK, Array, World, joined, one_network, post_hoc, trainings

PLACE = Path(__file__).parent.parent / "artifacts" / "verdicts"
ORACLE = float(norm.isf(0.025) + norm.isf(0.2))
"""Standard errors of a true difference that a test with known variance sees in 80 % of tables."""

CELLS: dict[str, tuple[Callable[..., list[Estimates]], World]] = {
    "5 classes": (one_network, World(classes=5, per_class=40)),
    "10 classes": (one_network, World()),
    "50 classes": (one_network, World(classes=50)),
    "200 classes": (one_network, World(classes=200, per_class=10)),
    "10 classes, SVHN sizes": (one_network, World(sizes="svhn")),
    "50 classes, SVHN sizes": (one_network, World(classes=50, sizes="svhn")),
    "10 classes, one dominant (35 %)": (one_network, World(sizes="dominant")),
    "50 classes, one dominant (35 %)": (one_network, World(classes=50, sizes="dominant")),
    "10 classes, skewed effects": (one_network, World(skewed=True)),
    "50 classes, skewed effects": (one_network, World(classes=50, skewed=True)),
    "10 classes, 3 seeds, post-hoc": (post_hoc, World()),
    "50 classes, 3 seeds, trainings": (trainings, World(classes=50)),
}
"""How a table is drawn, and from what."""

PAIRS = ((0, 1), (2, 3), (4, 5))
"""Pairs of six detectors that share none, so that each table counts three times."""

FAMILIES, BATCH = 16, 20
"""Every so many tables are tested as a family of six as well; tables that are drawn together."""

COUNTS = (2, 8, 30, 60)
FPR = "fpr95_id_positive"


def upper_bound(false: int, count: int) -> float:
    """One-sided 95 % bound of a rate (Clopper & Pearson)."""
    return float(beta.ppf(0.95, false + 1, count - false)) if false < count else 1.0


@dataclass(frozen=True)
class Seen:
    """What some tables say: differences and p of their pairs, and which pairs the families of six hold apart."""

    difference: Array
    p: Array
    families: list[list[float]]


def look(name: str, tables: int, rng: np.random.Generator, shifts: object = 0.0) -> Seen:
    """Three pairs of every table; the families of some."""
    draw, world = CELLS[name]
    differences, ps, families = [], [], []
    for start in range(0, tables, BATCH):
        drawn = draw(world, rng, min(BATCH, tables - start), 6, shifts)
        difference, error, freedom = joined(drawn)
        differences.append(difference)
        ps.append(2.0 * stdtr(freedom, -np.abs(difference / error)))
        for at in range(-start % FAMILIES, len(drawn), FAMILIES):
            whole = compare_pairs(drawn[at], seed=start + at, replicates=499)
            adjusted = dict(zip(zip(whole.first.tolist(), whole.second.tolist()), whole.p_adjusted.tolist()))
            families.append([min(adjusted.values()), *(adjusted[pair] for pair in PAIRS)])
    return Seen(np.concatenate(differences), np.concatenate(ps), families)


def run_cell(name: str, tables: int) -> dict[str, Any]:
    """Equal detectors; then, in a quarter as many tables, three of six raised by what the oracle sees in 80 %."""
    rng = np.random.default_rng([17, *name.encode()])
    equal = look(name, tables, rng)
    error = float(np.std(equal.difference))
    shift = CELLS[name][1].shift_for(ORACLE * error)
    raised = look(name, tables // 4, rng, [shift, 0.0, shift, 0.0, shift, 0.0])
    apart = [p < 0.05 for own in raised.families for p in own[1:]]
    return {
        "false": int(np.sum(equal.p < 0.05)),
        "pairs": equal.p.size,
        "family_false": sum(own[0] < 0.05 for own in equal.families),
        "families": len(equal.families),
        "power": float(np.mean((raised.p < 0.05) & (raised.difference > 0.0))),
        "oracle": float(np.mean(raised.difference > norm.isf(0.025) * error)),
        "family_power": float(np.mean(apart)),
    }


def fpr_pairs(known: Array, ood: Array, seed: int) -> Any:
    """All pairs under FPR95."""
    columns = [columns_of(*own) for own in zip(known, ood)]
    units = rate_sets(METRICS[FPR], {"o": columns}, {})["o"]
    return compare_pairs(join_sets([units]), replicates=499, seed=seed)


def fpr_shift(world: World, detectors: int, rng: np.random.Generator) -> float:
    """The shift of one detector's scores that is 1.3 times what the oracle detects among all pairs."""
    first, second = np.triu_indices(detectors, 1)
    known, ood = world.draw(rng, np.zeros((max(100, 2000 // detectors), detectors, 1)))
    values = [[Ranking(*own).fpr_at_tpr(0.95, positive="id") for own in zip(*table)] for table in zip(known, ood)]
    spread = np.array(values)[:, first] - np.array(values)[:, second]
    error = float(np.sqrt(np.mean(spread**2)))
    limit = float(np.quantile(np.abs(spread).max(axis=1) / error, 0.95))
    truth = float(norm.cdf(norm.isf(0.05) - 1.0))
    wanted = 1.3 * (limit + norm.isf(0.2)) * error
    return float(norm.isf(0.05) - 1.0 - norm.ppf(max(truth - wanted, 1e-6)))


def run_fpr(detectors: int, tables: int, images: int = 800) -> dict[str, Any]:
    """One detector is better by 1.3 times the detectable difference: is it seen, and are equal ones held apart?"""
    world = World(classes=1, per_class=images, n_id=images, spread=0.0, own_spread=0.0)
    rng = np.random.default_rng([20, detectors])
    shift = fpr_shift(world, detectors, rng)
    seen = false = 0
    for seed in range(tables):
        known, ood = world.draw(rng, np.zeros((1, detectors, 1)), np.r_[shift, np.zeros(detectors - 1)])
        found = fpr_pairs(known[0], ood[0], seed)
        seen += bool(found.p_adjusted[0] < 0.05 and found.difference[0] < 0.0)
        equal = found.first > 0
        false += bool(equal.any() and found.p_adjusted[equal].min() < 0.05)
    return {"power": seen / tables, "false": false, "tables": tables}


def run_chosen(classes: int, tables: int, detectors: int = 46) -> dict[str, Any]:
    """Of the best of many equals: coverage with cross-fitting and without, and both biases in points."""
    world = World(classes=classes, per_class=max(5, 400 // classes), n_id=500)
    rng = np.random.default_rng([24, classes])  # the interval was designed on tables of seed 23
    rows = []
    for seed in range(tables):
        (table,) = one_network(world, rng, 1, detectors)
        value, low, high = leader_value(table, seed=seed)
        rows.append((value, low, high, float(table.values.max())))
    value, low, high, apparent = np.array(rows).T
    truth = world.auroc()
    return {
        "held": int(np.sum((low <= truth) & (truth <= high))),
        "naive": int(np.sum(np.abs(apparent - truth) <= (high - low) / 2.0)),
        "bias": 100.0 * float(np.mean(value - truth)),
        "apparent_bias": 100.0 * float(np.mean(apparent - truth)),
        "tables": tables,
    }


STATEMENTS = ("class interval", "paired interval", "all rank intervals", "best is a candidate")


def run_statements(classes: int, tables: int) -> dict[str, Any]:
    """How often the class interval, the paired interval, all rank intervals and the set of candidates hold."""
    world, rng = replace(World(), classes=classes), np.random.default_rng([29, classes])
    shifts = np.array([0.0, 0.0, 0.15, 0.15, 0.3, 0.45])
    truth = np.array([world.auroc(shift) for shift in shifts])
    held = dict.fromkeys(STATEMENTS, 0)
    for seed in range(tables):
        (table,) = one_network(world, rng, 1, 6, shifts)
        low, high = logit_interval(float(table.values[0]), table.noise(0)) or (0.0, 1.0)
        pairs = compare_pairs(table, seed=seed, replicates=499)
        ranks = rank_intervals(table, table=pairs)
        may = may_be_best(table, seed=seed, replicates=499)
        held["class interval"] += int(low <= truth[0] <= high)
        held["paired interval"] += int(pairs.low[-1] <= truth[4] - truth[5] <= pairs.high[-1])
        held["all rank intervals"] += int(all(map(possible, [truth] * 6, truth, ranks)))
        held["best is a candidate"] += int(may[-1])
    return {**held, "tables": tables}


def possible(truth: Array, own: float, ranks: tuple[int, int]) -> bool:
    """Whether an interval of ranks holds those that a detector has in truth, ties being all of theirs."""
    return bool(ranks[0] <= 1 + np.sum(truth > own + 1e-12) and ranks[1] >= 6 - np.sum(truth < own - 1e-12))


def pieces(tables: int) -> "Pieces":
    """Everything that the page is made of, by name."""
    some, fewer = max(tables // 8, 20), max(tables // 10, 10)
    return {
        **{f"cell: {name}": lambda name=name: run_cell(name, tables) for name in CELLS},
        **{f"chosen: {classes}": lambda classes=classes: run_chosen(classes, some) for classes in (10, 50)},
        **{f"statements: {classes}": lambda classes=classes: run_statements(classes, some) for classes in (10, 50)},
        **{f"fpr: {count}": lambda count=count: run_fpr(count, fewer) for count in COUNTS},
    }


Pieces = Mapping[str, Callable[[], dict[str, Any]]]


def work(wanted: Pieces, tables: int, minutes: float, place: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The pieces that are done, and the names of those that are not."""
    place.mkdir(parents=True, exist_ok=True)
    began, done, missing = process_time(), {}, []
    for name, run in wanted.items():
        path = place / f"{tables}-{name.encode().hex()[:80]}.json"
        if not path.exists():
            if process_time() - began > 60.0 * minutes:
                missing.append(name)
                continue
            start = process_time()
            found = run()
            write_text(path, json.dumps({**found, "seconds": process_time() - start}))
            print(f"{name}: {process_time() - start:.0f} s", flush=True)
        done[name] = json.loads(path.read_text())
    return done, missing


def refused() -> list[str]:
    """Cells without an answer, and what they say."""
    labels = World(sizes="dominant", largest=0.6).labels()
    return [
        f"- One class with 60 % of the images of 10 (G* = {effective_classes(labels):.1f}): "
        f'"{refusal("the set", labels, "sampled")}". No power bar.',
        '- Trainings with one seed: "cannot say" (`compared_trainings` refuses). No power bar.',
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=3000)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time, in this call")
    parser.add_argument("--place", type=Path, default=PLACE)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    from verdict_page import page

    done, missing = work(pieces(options.tables), options.tables, options.minutes, options.place)
    about = {"tables": options.tables, "machine": f"{platform.machine()}, one core", "luck": LUCK}
    text = page(done, missing, {**about, "date": f"{datetime.now(UTC):%Y-%m-%d}"}, refused())
    if options.write:
        write_text(options.write, text)
    else:
        print(text)


if __name__ == "__main__":
    main()

"""How often intervals of DER, AUGRC and class groups hold the truth, and how many cells of real tables are warned of.

    python benchmarks/statement_coverage.py [--tables 100] [--minutes 5] [--write docs/results/statement-coverage.md]

Class, paired and rank statements about AUROC are on the page of ``verdict_simulation.py``, whose pieces are kept the
same way. The count of warnings reads the tables of ``cifar_scores.py`` where they have been made.
"""

import argparse
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from cifar_scores import PLACE as SCORES
from oodscope.base.files import write_text
from oodscope.metrics.crossval.class_groups import class_group_intervals
from oodscope.metrics.rejection.selective import Selection
from oodscope.protocols.registry import create_protocol
from oodscope.results.scoretable import ScoreTable
from verdict_page import bounds, percent, table
from verdict_simulation import work

PLACE = Path(__file__).parent.parent / "artifacts" / "coverage"
CORRECT, WRONG, OOD, SPREAD = 0.0, 1.0, 2.0, 0.3
"""Means of scores of unit noise; the last is the spread of OOD classes where those are drawn."""

ACCURACY, N_TEST, N_OOD, CLASSES = 0.9, 500, 400, 20
COLUMNS = 10
"""Independent detectors of a table, which share its labels and predictions."""


def simulated(rng: np.random.Generator, n_val: int, spread: float) -> ScoreTable:
    """ID validation and test images, one OOD set, and detectors that have nothing in common."""
    frames = []
    for name, role, count in (("id_val", "id_val", n_val), ("id_test", "id_test", N_TEST), ("ood", "near", N_OOD)):
        right = rng.random(count) < ACCURACY if role != "near" else np.zeros(count, bool)
        classes = np.arange(count) % CLASSES
        mean = np.where(right, CORRECT, WRONG)
        columns = {}
        for number in range(COLUMNS):
            own = OOD + spread * rng.normal(size=CLASSES)[classes] if role == "near" else mean
            columns[f"d{number}"] = own + rng.normal(size=count)
        described = {"sample_id": [f"{name}{row}" for row in range(count)], "set": name, "role": role}
        labels = {"label": classes if role != "near" else -1, "own_class": classes, "unit": ""}
        predicted = np.where(right, classes, (classes + 1) % CLASSES)
        frames.append(pd.DataFrame({**described, **labels, "prediction": predicted, **columns}))
    detectors = {f"d{number}": {"name": "d"} for number in range(COLUMNS)}
    return ScoreTable(pd.concat(frames, ignore_index=True), {"detectors": detectors, "seed": 0})


def truths(spread: float) -> dict[tuple[str, str], float]:
    """DER at the true threshold, and AUGRC of a very large sample, by metric and set."""
    found = {}
    for keep in (95, 99):
        gamma = norm.ppf(keep / 100.0)
        found[f"der{keep}_val_correct", "ood"] = float(norm.cdf((gamma - OOD) / np.hypot(1.0, spread)))
        error = ACCURACY * (1.0 - keep / 100.0) + (1.0 - ACCURACY) * norm.cdf(gamma - WRONG)
        found[f"der{keep}_val_correct", "id_test"] = float(error)
    rng = np.random.default_rng(0)
    known, ood = 500_000, 500_000 * N_OOD // N_TEST
    right = np.r_[rng.random(known) < ACCURACY, np.zeros(ood, bool)]
    mean = np.r_[np.where(right[:known], CORRECT, WRONG), OOD + spread * rng.normal(size=ood)]
    found["augrc", "ood"] = Selection(mean + rng.normal(size=mean.size), right).points()["augrc"]
    return found


def run_rates(n_val: int, spread: float, tables: int) -> dict[str, Any]:
    """How often the interval of images, or that of classes where classes are drawn, holds the truth."""
    rng = np.random.default_rng([41, n_val, round(100 * spread)])
    truth = truths(spread)
    held = {f"{metric} on {name}": 0 for metric, name in truth}
    seen = dict.fromkeys(held, 0)
    protocol = create_protocol("human_centric")
    for _ in range(tables):
        for row in protocol.measure(simulated(rng, n_val, spread)):
            key = (row.metric, row.set)
            low, high = (row.low, row.high) if spread == 0.0 else (row.class_low, row.class_high)
            if key not in truth or low is None or high is None:
                continue
            seen[f"{row.metric} on {row.set}"] += 1
            held[f"{row.metric} on {row.set}"] += int(low <= truth[key] <= high)
    return {"held": held, "seen": seen}


def run_groups(classes: int, repetitions: int, tables: int, folds: int = 5) -> dict[str, Any]:
    """Classes dealt into folds, again and again: how often the interval of the mean holds that of all classes."""
    rng = np.random.default_rng([43, classes, repetitions])
    values = 0.85 + 0.06 * rng.normal(size=(classes, tables))
    dealt = np.stack([rng.permutation(classes) for _ in range(repetitions)]).reshape(repetitions, folds, -1)
    means = values[dealt].mean(axis=2)
    low, high = class_group_intervals(means + 0.004 * rng.normal(size=means.shape))
    return {"held": int(np.sum((low <= 0.85) & (high >= 0.85))), "seen": tables}


def run_warnings(path: str) -> dict[str, Any]:
    """Cells of the tables of a real run, and those that carry a warning: not ranked, or too few threshold images."""
    scores = ScoreTable.load(path)
    rows = [
        row
        for name in ("standard", "human_centric")
        for row in create_protocol(name).measure(scores)
        if row.detector and row.group in ("near", "far", "id") and "_train_" not in row.metric
    ]
    few = [row for row in rows if row.interval.startswith("order")]
    unranked = [row for row in rows if row.unranked]
    warned = {id(row) for row in (*few, *unranked)}
    return {"cells": len(rows), "few": len(few), "unranked": len(unranked), "warned": len(warned)}


def pieces(tables: int) -> dict[str, Any]:
    """Everything that the page is made of, by name."""
    rates = {
        f"{what}: {n_val}": lambda n_val=n_val, spread=spread: run_rates(n_val, spread, tables)
        for what, spread in (("images", 0.0), ("classes", SPREAD))
        for n_val in (60, 120, 600)
    }
    groups = {
        f"groups: {classes} classes, {count} repetition{'s' * (count > 1)}": (
            lambda classes=classes, count=count: run_groups(classes, count, 20 * tables)
        )
        for classes in (10, 20, 50)
        for count in (1, 5)
    }
    real = {f"warnings: {path.stem}": lambda path=path: run_warnings(str(path)) for path in SCORES.glob("*.parquet")}
    return {**rates, **groups, **real}


def held_lines(done: dict[str, Any], kind: str) -> list[str]:
    """One table of shares, with the cells that lie significantly below 93 %."""
    own = {name.partition(": ")[2]: each for name, each in done.items() if name.startswith(f"{kind}: ")}
    if not own:
        return ["Not run yet."]
    if kind == "groups":
        rows = [[name, percent(each["held"] / each["seen"]), str(each["seen"])] for name, each in own.items()]
        low = [name for name, each in own.items() if bounds(each["held"], each["seen"])[1] < 0.93]
        heads = ["cross-validation of 5 folds", "interval holds", "cases"]
    else:
        names = [name for name, count in next(iter(own.values()))["seen"].items() if count]
        rows = [
            [
                n_val,
                *(percent(each["held"][name] / each["seen"][name]) for name in names),
                str(each["seen"][names[0]]),
            ]
            for n_val, each in own.items()
        ]
        low = [
            f"{name} with {n_val}"
            for n_val, each in own.items()
            for name in names
            if bounds(each["held"][name], each["seen"][name])[1] < 0.93
        ]
        heads = ["threshold images", *names, "cases"]
    said = f"Significantly below 93 %: {'; '.join(low) or 'none'}."
    return [*table(heads, rows), "", said]


def warning_lines(done: dict[str, Any]) -> list[str]:
    """Warnings in real tables, and whether they are at most a fifth of the cells."""
    own = {name.partition(": ")[2]: each for name, each in done.items() if name.startswith("warnings: ")}
    if not own:
        return ["Not run yet: `benchmarks/cifar_scores.py` makes the tables."]
    rows = [
        [name, *(f"{each[key]:,}" for key in ("cells", "few", "unranked")), percent(each["warned"] / each["cells"])]
        for name, each in own.items()
    ]
    many = [name for name, each in own.items() if each["warned"] > 0.2 * each["cells"]]
    said = "Warnings stand on at most 20 % of the cells" + (f", but not here: {', '.join(many)}." if many else ".")
    return [*table(("table", "cells", "few threshold images", "not ranked", "warned, %"), rows), "", said]


HEAD = """# How often other intervals hold the truth

**Question.** Do the 95 % intervals of DER95, DER99 and AUGRC, those of DER over classes, and those of class groups in a
cross-validation hold the truth? How many cells of real tables carry a warning?

**Command.** `python benchmarks/statement_coverage.py --tables {tables} --write docs/results/statement-coverage.md`

**Machine.** {machine}.

**Date.** {date}

Scores of unit noise: ID images that are classified right at 0, wrong at 1 (accuracy 90 %), OOD images at 2; 500 ID test
images, 400 OOD images of 20 classes, {cases} cases a row. The threshold keeps 95 or 99 % of the correct images of the
ID validation set; below 5 expected images beyond it, the interval comes from order statistics. Class, paired and rank
statements about AUROC: [verdicts](verdicts.md)."""


def page(done: dict[str, Any], missing: list[str], tables: int) -> str:
    """The whole page."""
    about = {"machine": f"{platform.machine()}, one core", "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    parts = [
        [HEAD.format(tables=tables, cases=COLUMNS * tables, **about)],
        ["## Other images", "", *held_lines(done, "images")],
        [f"## Other OOD classes (spread {SPREAD})", "", *held_lines(done, "classes")],
        ["## Class groups of a cross-validation", "", *held_lines(done, "groups")],
        ["## Warnings in real tables", "", *warning_lines(done)],
        [f"Not yet run: {', '.join(missing) or 'nothing'}."],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of processor time, in this call")
    parser.add_argument("--place", type=Path, default=PLACE)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    done, missing = work(pieces(options.tables), options.tables, options.minutes, options.place)
    text = page(done, missing, options.tables)
    if options.write:
        write_text(options.write, text)
    else:
        print(text)


if __name__ == "__main__":
    main()

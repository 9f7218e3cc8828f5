"""How often statements about DER, AUGRC, FPR95 and class groups hold, and how many cells of real tables are warned of.

    python benchmarks/statement_coverage.py [--tables 100] [--minutes 5] [--write docs/results/statement-coverage.md]

Class, paired and rank statements about AUROC are on the page of ``verdict_simulation.py``; those about other metrics
are here. Pieces are kept the same way. The count of warnings reads the tables of ``cifar_scores.py`` where they have
been made.
"""

import argparse
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from cifar_scores import PLACE as SCORES
from oodscope.base.files import write_text
from oodscope.metrics.comparison.simultaneous import compare_pairs, rank_intervals
from oodscope.metrics.crossval.class_groups import class_group_intervals
from oodscope.metrics.crossval.class_units import class_interval
from oodscope.metrics.rejection.selective import Selection
from oodscope.metrics.scores import FloatArray
from oodscope.protocols.registry import create_protocol
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.compare import source_of
from oodscope.runs.comparison.sources import Scored, Source
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
    held: dict[str, list[float]] = {f"{metric} on {name}": [] for metric, name in truth}
    protocol = create_protocol("human_centric")
    for _ in range(tables):
        own: dict[str, list[bool]] = {name: [] for name in held}
        for row in protocol.measure(simulated(rng, n_val, spread)):
            key = (row.metric, row.set)
            low, high = (row.low, row.high) if spread == 0.0 else (row.class_low, row.class_high)
            if key in truth and low is not None and high is not None:
                own[f"{row.metric} on {row.set}"].append(low <= truth[key] <= high)
        for name, found in own.items():
            held[name] += [float(np.mean(found))] if found else []
    return {"shares": {name: each for name, each in held.items() if each}}


RAISED = np.array([0.0, 0.0, 0.3, 0.6])
"""How much farther the OOD images of four detectors lie; the first two are equal."""

COMPARED = {"der95_val_correct": False, "der99_val_correct": False, "augrc": False, "fpr95_id_positive": False}
"""Metrics of paired and rank statements, and whether more is better."""

N_VAL, COMMON = 600, 0.8


def compared_table(rng: np.random.Generator, spread: float, scale: int = 1) -> ScoreTable:
    """Four detectors that share four fifths of the noise of an image, with effects of OOD classes of their own."""
    frames = []
    sizes = {"id_val": N_VAL, "id_test": N_TEST, "near": N_OOD}
    for role, count in ((role, scale * count) for role, count in sizes.items()):
        right = rng.random(count) < ACCURACY if role != "near" else np.zeros(count, bool)
        # in a large sample, which stands for all OOD classes, every image is of another class
        classes = np.arange(count) % (CLASSES if scale == 1 else count)
        shared = COMMON * rng.normal(size=count)
        columns = {}
        for number, more in enumerate(RAISED):
            own = OOD + more + spread * rng.normal(size=classes.max() + 1)[classes] if role == "near" else 0.0
            noise = shared + np.sqrt(1.0 - COMMON**2) * rng.normal(size=count)
            columns[f"d{number}"] = (own if role == "near" else np.where(right, CORRECT, WRONG)) + noise
        described = {"sample_id": [f"{role}{row}" for row in range(count)], "set": role, "role": role}
        labels = {"label": classes % CLASSES if role != "near" else -1, "own_class": classes, "unit": ""}
        predicted = np.where(right, classes % CLASSES, (classes + 1) % CLASSES)
        frames.append(pd.DataFrame({**described, **labels, "prediction": predicted, **columns}))
    detectors = {f"d{number}": {"name": "d"} for number in range(RAISED.size)}
    return ScoreTable(pd.concat(frames, ignore_index=True), {"detectors": detectors, "seed": 0})


def compared_source(scores: ScoreTable, metric: str) -> Source:
    """What a comparison of the four rests on."""
    protocol = "standard" if metric.startswith("fpr") else "human_centric"
    return source_of([Scored(name, scores, name) for name in scores.detectors], protocol, metric)


def large_sample(metric: str, spread: float, number: int) -> FloatArray:
    """The values of the four on a hundred times as many images, OOD images each of a class of its own."""
    scores = compared_table(np.random.default_rng([47, number]), spread, scale=100)
    if metric != "augrc":
        return compared_source(scores, metric).images(["near"]).values
    judged = scores.frame["role"].isin(["id_test", "near"]).to_numpy()
    right = scores.correct()[judged]
    return np.array([Selection(scores.scores(name)[judged], right).points()["augrc"] for name in scores.detectors])


def run_pairs(metric: str, spread: float, tables: int) -> dict[str, Any]:
    """How often the interval of a difference, that of no difference, and all rank intervals hold."""
    truth = np.mean([large_sample(metric, spread, number) for number in range(4)], axis=0)
    # the first two are equal by construction, and nothing else may come between them
    truth[:2] = truth[:2].mean()
    rng = np.random.default_rng([53, *metric.encode(), round(100 * spread)])
    held: dict[str, list[float]] = {"difference": [], "no difference": [], "all ranks": []}
    for _ in range(tables):
        source = compared_source(compared_table(rng, spread), metric)
        estimates = source.classes(["near"]) if spread else source.images(["near"])
        pairs = compare_pairs(estimates, replicates=499)
        where = {(a, b): row for row, (a, b) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist()))}
        for name, (a, b) in (("difference", (0, 3)), ("no difference", (0, 1))):
            row = where[a, b]
            held[name].append(float(pairs.low[row] <= truth[a] - truth[b] <= pairs.high[row]))
        ranks = rank_intervals(estimates, higher=COMPARED[metric], table=pairs)
        better = [np.sum(truth < own - 1e-12) for own in truth]
        worse = [np.sum(truth > own + 1e-12) for own in truth]
        right = [low <= 1 + b and high >= truth.size - w for (low, high), b, w in zip(ranks, better, worse)]
        held["all ranks"].append(float(all(right)))
    return {"shares": held}


def run_groups(classes: int, repetitions: int, tables: int, folds: int = 5) -> dict[str, Any]:
    """Classes dealt into folds, again and again: how often the interval of the mean holds that of all classes."""
    rng = np.random.default_rng([43, classes, repetitions])
    values = 0.85 + 0.06 * rng.normal(size=(classes, tables))
    dealt = np.stack([rng.permutation(classes) for _ in range(repetitions)]).reshape(repetitions, folds, -1)
    measured = values + 0.004 * rng.normal(size=(repetitions, *values.shape))
    means = np.stack([own[groups].mean(axis=1) for own, groups in zip(measured, dealt)])
    ends = {"by class": class_interval(measured.mean(axis=0)), "by groups": class_group_intervals(means)}
    held = {name: int(np.sum((low <= 0.85) & (high >= 0.85))) for name, (low, high) in ends.items()}
    return {"held": held["by class"], "groups": held["by groups"], "seen": tables}


def run_warnings(path: str) -> dict[str, Any]:
    """Cells of the tables of a real run, and those that carry a warning: not ranked, or too few threshold images."""
    scores = ScoreTable.load(path)
    # fewer replicates change no warning
    scores = ScoreTable(scores.frame, scores.context.model_copy(update={"intervals": "fast"}))
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
    pairs = {
        f"pairs: {metric}, {what}": lambda metric=metric, spread=spread: run_pairs(metric, spread, 5 * tables)
        for metric in COMPARED
        for what, spread in (("other images", 0.0), ("other OOD classes", SPREAD))
    }
    groups = {
        f"groups: {classes} classes, {count} repetition{'s' * (count > 1)}": (
            lambda classes=classes, count=count: run_groups(classes, count, 20 * tables)
        )
        for classes in (10, 20, 50)
        for count in (1, 5)
    }
    real = {f"warnings: {path.stem}": lambda path=path: run_warnings(str(path)) for path in SCORES.glob("*.parquet")}
    return {**rates, **pairs, **groups, **real}


def below(shares: Sequence[float], bar: float = 0.93) -> bool:
    """Whether a mean of tables lies below the bar by more than one-sided 95 % noise between tables."""
    own = np.asarray(shares)
    if own.size < 2:
        return False
    if set(own.tolist()) <= {0.0, 1.0}:
        return bounds(int(own.sum()), own.size)[1] < bar
    return float(own.mean() + student.isf(0.05, own.size - 1) * own.std(ddof=1) / np.sqrt(own.size)) < bar


def held_lines(done: dict[str, Any], kind: str, first: str) -> list[str]:
    """One table of shares, with the cells that lie significantly below 93 %."""
    own = {name.partition(": ")[2]: each["shares"] for name, each in done.items() if name.startswith(f"{kind}: ")}
    if not own:
        return ["Not run yet."]
    names = list(next(iter(own.values())))
    rows = [
        [row, *(percent(float(np.mean(each[name]))) for name in names), str(len(each[names[0]]))]
        for row, each in own.items()
    ]
    low = [f"{name} with {row}" for row, each in own.items() for name in names if below(each[name])]
    said = f"Significantly below 93 %: {'; '.join(low) or 'none'}."
    return [*table([first, *names, "tables"], rows), "", said]


def group_lines(done: dict[str, Any]) -> list[str]:
    """Class groups."""
    own = {name.partition(": ")[2]: each for name, each in done.items() if name.startswith("groups: ")}
    if not own:
        return ["Not run yet."]
    rows = [
        [name, *(percent(each[key] / each["seen"]) for key in ("held", "groups")), str(each["seen"])]
        for name, each in own.items()
    ]
    low = [name for name, each in own.items() if bounds(each["held"], each["seen"])[1] < 0.93]
    said = f"By class, significantly below 93 %: {'; '.join(low) or 'none'}. Groups of classes that folds test are"
    more = "resampled only where the classes of the scores are not known (tables of version 0.1)."
    heads = ["cross-validation of 5 folds", "by class, holds", "by groups, holds", "cases"]
    return [*table(heads, rows), "", said, more]


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

**Question.** Do the 95 % intervals of DER95, DER99 and AUGRC hold the truth, for other images and for other OOD
classes? Do differences, ranks and the class groups of a cross-validation? How many cells of real tables carry a
warning?

**Answer.** {answer}

**Command.** `python benchmarks/statement_coverage.py --tables {tables} --write docs/results/statement-coverage.md`

**Machine.** {machine}.

**Date.** {date}

Scores of unit noise: ID images that are classified right at 0, wrong at 1 (accuracy 90 %), OOD images at 2; 500 ID test
images, 400 OOD images of 20 classes; {columns} detectors a table, which share its labels, so that noise is judged
between tables. The threshold keeps 95 or 99 % of the correct images of the ID validation set; below 5 expected images
beyond it, the interval comes from order statistics. Class, paired and rank statements about AUROC:
[verdicts](verdicts.md)."""

PAIRED = f"""Four detectors on 400 OOD images; the first two are equal, the others better by 0.3 and 0.6 standard
deviations; {N_VAL} threshold images. Difference: the interval of the first against the fourth; no difference: of the
first against the second; all ranks: the rank intervals of all four at once."""


def answer(done: dict[str, Any], missing: list[str]) -> str:
    """What the page found, as a function of its numbers."""
    shares = {name: each["shares"] for name, each in done.items() if "shares" in each}
    cells = [(f"{key} ({name})", own) for name, each in shares.items() for key, own in each.items()]
    low = [name for name, own in cells if below(own)]
    low += [
        name
        for name, each in done.items()
        if name.startswith("groups: ") and bounds(each["held"], each["seen"])[1] < 0.93
    ]
    warned = {name: each["warned"] / each["cells"] for name, each in done.items() if name.startswith("warnings: ")}
    count = len(cells) + sum(name.startswith("groups: ") for name in done)
    said = "no statement holds" if not low else f"{len(low)} statements hold"
    words = f"Of {count} cells {said} significantly less often than in 93 % of simulated tables"
    if warned:
        words += f"; warnings stand on {percent(max(warned.values()))} % of the cells of a real table at most"
    return words + (f"; {len(missing)} rows are not run." if missing else ".")


def page(done: dict[str, Any], missing: list[str], tables: int) -> str:
    """The whole page."""
    about = {"machine": f"{platform.machine()}, one core", "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    parts = [
        [HEAD.format(tables=tables, columns=COLUMNS, answer=answer(done, missing), **about)],
        ["## Intervals for other images", "", *held_lines(done, "images", "threshold images")],
        [f"## Intervals for other OOD classes (spread {SPREAD})", "", *held_lines(done, "classes", "threshold images")],
        ["## Paired and rank statements", "", PAIRED, "", *held_lines(done, "pairs", "metric and population")],
        ["## Class groups of a cross-validation", "", *group_lines(done)],
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

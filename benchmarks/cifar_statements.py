"""The CIFAR tables with three statements: other images, other OOD classes, other networks of the recipe.

    OODSCOPE_DATA=path/to/packs python benchmarks/cifar_statements.py --write docs/results/cifar-statements.md

Reads the tables of ``cifar_scores.py``; with ``--tables FOLDER`` (output of ``training_table.py``, once for each
benchmark: ``--tables cifar10=FOLDER cifar100=FOLDER``) those of the networks CE-0, CE-1 and CE-2.
"""

import argparse
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np

from cifar_scores import described, score_tables
from oodscope.base.files import write_text
from oodscope.document.wording import label, places
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.comparison.influence import Estimates, join_sets
from oodscope.metrics.comparison.networks import CANNOT_SAY, paired_by_seed
from oodscope.metrics.comparison.rates import rate_sets
from oodscope.metrics.comparison.simultaneous import compare_pairs, rank_intervals
from oodscope.metrics.metric import columns_of
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.compare import source_of
from oodscope.runs.comparison.recommendation import recommendations
from oodscope.runs.comparison.sources import Scored, Source
from published import published as published_values
from verdict_page import table

KNOWN = ("cifar10", "cifar100")
LEADERS, NETWORKS = 6, 3
SHOWN = ("auroc", "fpr95_id_positive", "aupr_in", "aupr_out")
STATEMENTS = ("images", "classes", "networks")


def sources(tables: Sequence[ScoreTable], detectors: Sequence[str], metric: str) -> list[Source]:
    """What a comparison of these detectors rests on, network by network."""
    return [source_of([Scored(name, each, name) for name in detectors], "standard", metric) for each in tables]


def estimates(found: Sequence[Source], group: str) -> dict[str, Estimates | str]:
    """The mean over a group for each population, or why nothing is said of it."""
    names = list(found[0].groups[group])
    refused = found[0].refusal(names)
    made: dict[str, Estimates | str] = {
        "images": found[0].images(names),
        "classes": refused or found[0].classes(names),
    }
    enough = len(found) >= NETWORKS
    units = [[each.class_units()[name] for name in names] for each in found]
    made["networks"] = paired_by_seed(units) if enough else CANNOT_SAY.partition(":")[0]
    return made


def rank_cells(made: Mapping[str, Estimates | str], higher: bool) -> list[list[str]]:
    """Ranks of every detector, a column for each population."""
    columns = []
    for name in STATEMENTS:
        own = made[name]
        if isinstance(own, str):
            columns.append([])
            continue
        columns.append([places(each) for each in rank_intervals(own, higher=higher)])
    count = max(map(len, columns))
    return [[column[row] if column else "–" for column in columns] for row in range(count)]


def separated(made: Mapping[str, Estimates | str], pairs: Sequence[tuple[int, int]]) -> list[str]:
    """How many of the pairs each population holds apart, all pairs adjusted."""
    cells = []
    for name in STATEMENTS:
        own = made[name]
        if isinstance(own, str):
            cells.append(own)
            continue
        apart = compare_pairs(own, pairs=pairs).p_adjusted < 0.05
        cells.append(f"{int(apart.sum())} of {len(pairs)}")
    return cells


def turned(scores: ScoreTable) -> list[str]:
    """Pairs whose order by FPR95 turns when only correctly classified ID images count, both orders being sure.

    Figure 2 of the human-centric paper shows such a pair. Each order is held apart for other images by a paired test,
    adjusted for all pairs of a set.
    """
    detectors = list(scores.detectors)
    frame = scores.frame
    known = (frame["role"] == "id_test").to_numpy()
    right = scores.correct()[known]
    columns = np.stack([scores.scores(name) for name in detectors])
    found = []
    for name in (name for role in ("near", "far") for name in scores.sets(role)):
        ood = columns[:, (frame["set"] == name).to_numpy()]
        signs = []
        for chosen in (np.ones(right.size, bool), right):
            made = [columns_of(own, other) for own, other in zip(columns[:, known][:, chosen], ood)]
            units = rate_sets(METRICS["fpr95_id_positive"], {name: made}, {})[name]
            pairs = compare_pairs(join_sets([units]))
            signs.append(np.sign(pairs.difference) * (pairs.p_adjusted < 0.05))
        found += [
            f"{detectors[pairs.first[row]]} and {detectors[pairs.second[row]]} on {name}"
            for row in np.flatnonzero(signs[0] * signs[1] < 0)
        ]
    count = len(detectors) * (len(detectors) - 1) // 2
    sets = len(scores.sets("near")) + len(scores.sets("far"))
    said = f"{len(found)} of {count} pairs on {sets} sets" + (f": {'; '.join(found[:8])}" if found else "")
    verb = "It does, on this network" if found else "It does not, beyond the noise of images"
    more = ", ..." if len(found) > 8 else ""
    return [
        "Does the order by FPR95 turn when only correctly classified ID images count (Fig. 2 of arXiv 2211.16778)? "
        f"{verb}: {said}{more}. Both orders held apart by paired tests of other images, 5 % over all pairs of a set.",
    ]


def section(known: str, tables: Sequence[ScoreTable]) -> list[str]:
    """One benchmark: every detector with its ranks, then the pairs of the published leaders."""
    detectors = list(tables[0].detectors)
    by_metric = {metric: sources(tables, detectors, metric) for metric in SHOWN}
    made = {
        (metric, group): estimates(found, group) for metric, found in by_metric.items() for group in found[0].groups
    }
    near = made["auroc", "near"]
    order = sorted(range(len(detectors)), key=lambda row: -near["images"].values[row])  # type: ignore[union-attr]
    values = {
        key: own["images"].values  # type: ignore[union-attr]
        for key, own in made.items()
    }
    ranks = {group: rank_cells(made["auroc", group], higher=True) for group in ("near", "far")}
    heads = ["detector", *(f"{group} {label(metric)}" for metric, group in made)]
    heads += [f"{group} rank, {name}" for group in ranks for name in STATEMENTS]
    lines = [
        [
            detectors[row],
            *(f"{100 * values[key][row]:.1f}" for key in made),
            *(cell for group in ranks for cell in ranks[group][row]),
        ]
        for row in order
    ]
    near_values = published_values(known)
    published = sorted(near_values, key=lambda name: -near_values[name])
    leading = [name for name in published if name in detectors][:LEADERS]
    pairs = [(detectors.index(a), detectors.index(b)) for a, b in combinations(leading, 2)]
    counts = [[f"{group} {label(metric)}", *separated(own, pairs)] for (metric, group), own in made.items()]
    return [
        f"## {known}",
        "",
        described(list(tables), known),
        "",
        *table(heads, lines),
        "",
        f"Published leaders (near AUROC, OpenOOD v1.5) that were scored here: {', '.join(leading)}. Pairs of them that",
        "are apart at 5 %, all pairs adjusted:",
        "",
        *table(("on", "by other images", "by other OOD classes", "by other networks"), counts),
        "",
        *(f"- {each}" for each in recommendations(tables[0], {"near": 0.5, "far": 0.5})),
        "",
        *turned(tables[0]),
    ]


def answer(sections: Mapping[str, Sequence[str]]) -> str:
    """Of the published leaders' pairs, how many are apart by near AUROC, from the sections' own lines."""
    parts = []
    for known, lines in sections.items():
        (row,) = (line for line in lines if line.startswith("| near AUROC | "))
        images, classes, networks = [cell.strip() for cell in row.strip("| ").split("|")[1:]]
        parts.append(f"{known}: {images} by other images, {classes} by other OOD classes, {networks} by other networks")
    return f"Pairs of published leaders that near AUROC holds apart: {'; '.join(parts)}."


def page(sections: Mapping[str, Sequence[str]], missing: Sequence[str]) -> str:
    """The whole page."""
    about = {"machine": f"{platform.machine()}, CPU", "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    head = HEAD.format(**about, answer=answer(sections))
    tail = f"Not yet run: {'; '.join(missing) or 'nothing'}."
    return "\n\n".join([head, *("\n".join(each) for each in sections.values()), DIFFERS, tail]) + "\n"


HEAD = """# CIFAR-10 and CIFAR-100 with three statements

**Question.** Which detectors differ for other images of these classes, for other OOD classes, and for other networks of
the recipe? Of the pairs of published leaders, how many are apart?

**Answer.** {answer}

**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/cifar_statements.py --write
docs/results/cifar-statements.md`

**Machine.** {machine}.

**Date.** {date}

Percent; ranks are those that paired tests of all pairs allow, all at once (step-down max-T, 95 %). Digits (SVHN, MNIST)
are all the classes that there are, so they bring image noise only to a statement about other classes. Near sets are
OpenOOD's lists, as far as they were scored; **far sets are not the published ones**. Detectors have default
parameters. A statement about other networks needs three of them."""

DIFFERS = """## What differs from OpenOOD's tables

OpenOOD averages three networks and gives their standard deviation; a pair is called better by its mean. Here a pair is
apart only if a test says so for the named population. Images of a set, where fewer were scored than it has, are the
first of each class, equally many of each."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--id", nargs="*", default=list(KNOWN))
    parser.add_argument("--tables", nargs="*", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    folders = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.tables)}
    sections, missing = {}, []
    for known in options.id:
        tables = score_tables(known, folders.get(known))
        sections[known] = section(known, tables)
        if len(tables) < NETWORKS:
            missing.append(f"networks of {known}: {len(tables)} of 3 (`benchmarks/training_table.py --id {known}`)")
    missing += [f"{known} (`--id {known}`)" for known in KNOWN if known not in options.id]
    text = page(sections, missing)
    if options.write:
        write_text(options.write, text)
    else:
        print(text)


if __name__ == "__main__":
    main()

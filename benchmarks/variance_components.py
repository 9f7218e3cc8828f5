"""How much of a difference between detectors is images, classes, networks and sets: variance components of real tables.

    OODSCOPE_DATA=path/to/packs python benchmarks/variance_components.py --write docs/results/variance-components.md

Reads the tables of ``cifar_scores.py`` (``--tables cifar10=FOLDER cifar100=FOLDER`` for the networks of
``training_table.py``). The component
of networks needs tables of several networks: where there is one only, ``--demo RUN RUN RUN`` adds runs of the demo's
small network, trained with three seeds.
"""

import argparse
import platform
from datetime import UTC, datetime
from itertools import combinations
from math import isnan, nan, sqrt
from pathlib import Path

import numpy as np
import pandas as pd

from cifar_scores import described, score_tables
from oodscope.base.files import write_text
from oodscope.metrics.comparison.components import Components, class_components, needed, typical
from oodscope.protocols.separation import separate
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result
from verdict_page import table

DATA = Path(__file__).parent.parent / "docs" / "results" / "data"
KNOWN = ("cifar10", "cifar100")
SHARE = "Share of the variance"
"""How the sentence begins that a section comes down to."""

LEADERS = 6
"""Detectors of the first ranks whose pairs a table is about: differences between the best are what people ask for."""


def leaders(scores: ScoreTable) -> list[str]:
    """The best detectors by the mean AUROC over near sets."""
    separations = separate(scores, ("id_test",))
    values = {name: each.placements(each.groups["near"]).mean for name, each in separations.items()}
    return sorted(values, key=lambda name: -values[name])[:LEADERS]


def components(tables: list[ScoreTable], names: list[str]) -> dict[str, Components]:
    """The typical components of the pairs of some detectors, set by set; the set's own is that of its group."""
    separated = [separate(each, ("id_test",)) for each in tables]
    first = separated[0][names[0]]
    pairs = list(combinations(names, 2))
    found: dict[str, Components] = {}
    for name, classes in first.ood_classes.items():
        if np.unique(classes).size < 2:
            continue
        own = []
        for a, b in pairs:
            between = [each[a].placements([name]) - each[b].placements([name]) for each in separated]
            by_seed = np.array([each.mean for each in between]) if len(between) > 1 else None
            own.append(class_components(between[0].of_id, between[0].of_ood[name], classes, by_seed=by_seed))
        found[name] = typical(own)
    return found


def set_spread(tables: list[ScoreTable], names: list[str]) -> float:
    """Root mean square over pairs of the standard deviation of a difference between sets of a group."""
    separations = separate(tables[0], ("id_test",))
    spreads = []
    for sets in separations[names[0]].groups.values():
        if len(sets) < 2:
            continue
        for a, b in combinations(names, 2):
            values = [(separations[a].placements([one]) - separations[b].placements([one])).mean for one in sets]
            spreads.append(np.var(values, ddof=1))
    return sqrt(float(np.mean(spreads))) if spreads else nan


def points(value: float) -> str:
    """A standard deviation in points, or that it is not known."""
    return "–" if isnan(value) else f"{100 * value:.2f}"


def rows(found: dict[str, Components]) -> list[list[str]]:
    """One row for each set."""
    lines = []
    for name, own in found.items():
        power = own.power(0.01)
        counts = [needed(own, what, 0.01) for what in ("id_images", "images", "classes")]
        spreads = [points(each) for each in (own.id_image, own.ood_image, own.ood_class, own.seed, own.error())]
        wanted = ["–" if count is None else f"{count:,}" for count in counts]
        lines.append([name, str(own.classes), f"{own.images:.0f}", *spreads, f"{100 * power:.0f} %", *wanted])
    return lines


HEADS = (
    *("set", "classes", "images of each", "ID image", "OOD image", "class", "network", "standard error"),
    *("power for 1 point", "ID images needed", "images of each class needed", "classes needed"),
)


def sentence(found: dict[str, Components]) -> str:
    """Which part is the largest, over the sets of a table."""
    shares: dict[str, list[float]] = {"ID images": [], "OOD images": [], "classes": [], "networks": []}
    for own in found.values():
        parts = {
            "ID images": own.id_image**2 / own.id_images,
            "OOD images": own.ood_image**2 / own.images / own.classes,
            "classes": own.ood_class**2 / own.classes,
            "networks": 0.0 if isnan(own.seed) else own.seed**2 / own.seeds,
        }
        for name, part in parts.items():
            shares[name].append(part / sum(parts.values()))
    said = ", ".join(f"{name} {100 * np.mean(own):.0f} %" for name, own in shares.items() if any(own))
    seen = sum(each.power(0.01) >= 0.8 for each in found.values())
    return (
        f"Share of the variance with what was measured, mean over {len(found)} sets: {said}. A true difference of one "
        f"point would be seen in 8 of 10 cases on {seen} of {len(found)} sets."
    )


def section(title: str, tables: list[ScoreTable]) -> list[str]:
    """One table of components."""
    names = leaders(tables[0])
    found = components(tables, names)
    spread = set_spread(tables, names)
    return [
        f"## {title}",
        "",
        described(tables, title),
        f"Pairs of the {len(names)} detectors with the best near mean: {', '.join(names)}.",
        "",
        *table(HEADS, rows(found)),
        "",
        sentence(found),
        f"Between sets of one group a difference varies by {points(spread)} points (standard deviation).",
    ]


def network_section(path: Path) -> list[str]:
    """What networks of one recipe differ by, from a table of AUROC values alone (``training_table.py``'s summary)."""
    whole = pd.read_parquet(path)
    whole = whole[(whole["kept"] == "best") & whole["group"].isin(["near", "far"])]
    recipe = whole[whole["method"] == "CE"]
    values = recipe.pivot_table(index=["set", "seed"], columns="detector", values="auroc")
    means = recipe[recipe["group"] == "near"].groupby("detector")["auroc"].mean()
    names = list(means.sort_values(ascending=False).index[:LEADERS])
    lines = []
    for name, own in values.groupby(level="set"):
        single = np.sqrt(np.mean([own[each].var(ddof=1) for each in names]))
        paired = np.sqrt(np.mean([(own[a] - own[b]).var(ddof=1) for a, b in combinations(names, 2)]))
        lines.append([str(name), str(len(own)), f"{single:.2f}", f"{paired:.2f}"])
    ratio = np.mean([float(line[3]) / float(line[2]) for line in lines])
    pooled = whole[whole["detector"].isin(names)].groupby(["method", "detector", "set"])["auroc"].var(ddof=1)
    return [
        f"## Networks of one recipe ({path.stem})",
        "",
        f"AUROC of whole sets in points; the {len(names)} detectors with the best near mean: {', '.join(names)}.",
        "",
        *table(("set", "networks", "sd of a value", "sd of a difference, same network"), lines),
        "",
        f"Paired by network, a difference varies {ratio:.2f} times as much as a value: checkpoints that they share",
        f"{'make their differences surer' if ratio < 1.0 else 'do not make their differences surer'}. Pooled over "
        f"{whole['method'].nunique()} training methods, a value varies by {np.sqrt(pooled.mean()):.2f} points.",
    ]


def page(sections: list[list[str]], missing: list[str]) -> str:
    """The whole page."""
    about = {"machine": f"{platform.machine()}, CPU", "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    said = [f"{own[0].removeprefix('## ')}: {line}" for own in sections for line in own if line.startswith(SHARE)]
    head = HEAD.format(**about, answer=" ".join(said) or "Cannot say: nothing was measured.")
    tail = [f"Not yet run: {'; '.join(missing) or 'nothing'}."]
    return "\n\n".join([head, *("\n".join(each) for each in sections), "\n".join(tail)]) + "\n"


HEAD = """# Variance components of a difference between detectors

**Question.** The difference of two detectors in AUROC would come out otherwise with other images, other OOD classes,
other networks, other sets. How much is each, and how many of each would show a difference of one point?

**Answer.** {answer}

**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/variance_components.py --write
docs/results/variance-components.md` (for a run of your own: `oodscope power RUN [SEED_RUN ...]`)

**Machine.** {machine}.

**Date.** {date}

Standard deviations in points that one more ID image, OOD image, class or network brings to the difference (root mean
square over pairs). Needed: the fewest that show one point in 8 of 10 cases for other OOD classes, all else as measured;
– where no number would do, because the other parts alone hide it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--id", nargs="*", default=list(KNOWN))
    parser.add_argument("--tables", nargs="*", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--demo", type=Path, nargs="*", default=[])
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    folders = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.tables)}
    sections, missing = [], []
    for known in options.id:
        tables = score_tables(known, folders.get(known))
        sections.append(section(known, tables))
        if len(tables) < 3:
            missing.append(f"networks of {known}: {len(tables)} of 3 (`benchmarks/training_table.py --id {known}`)")
    missing += [f"{known} (`--id {known}`)" for known in KNOWN if known not in options.id]
    if options.demo:
        sections.append(section("demo networks", [Result.load(each).scores for each in options.demo]))
    sections += [network_section(path) for path in sorted(DATA.glob("training-*.parquet"))]
    text = page(sections, missing)
    if options.write:
        write_text(options.write, text)
    else:
        print(text)


if __name__ == "__main__":
    main()

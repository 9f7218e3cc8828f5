"""Write the page of OpenOOD v1.5's observations: which hold here, which do not, and of which nothing can be said.

    python benchmarks/openood_findings.py docs/results/openood-findings.md cifar10=TABLE [cifar100=TABLE]
        [--evidence docs/results/data/openood-evidence.csv]

``TABLE`` holds the rows of ``training_table.py`` (its ``table.csv``, or the same as Parquet): a row for each network,
score and set. What they say is for other seeds of the same recipes on these images and classes; with one network of a
training nothing can be said. ``--evidence`` names comparisons on one network of each ID set (``openood_evidence.py``):
what they say is for other images and OOD classes of that network. Each comparison is at 5 % by itself.
"""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pandas as pd

from oodscope.base.files import write_text
from openood_observations import (
    FAILS,
    HOLDS,
    OBSERVATIONS,
    UNKNOWN,
    WINNERS,
    Observation,
    Tables,
    Verdict,
    on_one_network,
    winners,
)

SEEDS, ONE, NONE = "other seeds", "other images and OOD classes, one network", "none"
Row = tuple[Observation, str, str, Verdict]
"""Observation, ID set, population, verdict."""


def judged(tables: Tables, evidence: Tables | None = None) -> list[Row]:
    """Every observation on every ID set and population that it can be judged on."""
    rows: list[Row] = []
    for each in OBSERVATIONS:
        if each.across is not None:
            rows.append((each, "all", SEEDS, each.across(tables)))
        elif each.judge is None:
            rows.append((each, "none", NONE, Verdict(UNKNOWN, f"needs ImageNet, which is not here ({each.imagenet})")))
        else:
            rows += [(each, name, SEEDS, each.judge(table)) for name, table in tables.items()]
        own = {name: table[table["observation"] == each.evidence] for name, table in (evidence or {}).items()}
        own = {name: table for name, table in own.items() if len(table)}
        if each.evidence == WINNERS and own:
            rows.append((each, "all", ONE, winners(own)))
        elif each.evidence:
            rows += [(each, name, ONE, on_one_network(each, table)) for name, table in own.items()]
    return rows


def answer(rows: Sequence[Row]) -> str:
    """How many verdicts of each kind there are, by population, and of how many observations anything is said."""
    words = []
    for population in (SEEDS, ONE):
        own = [verdict.word for _, _, each, verdict in rows if each in (population, NONE)]
        if population == SEEDS or any(each == ONE for _, _, each, _ in rows):
            counts = ", ".join(f"{word} {own.count(word)}" for word in (HOLDS, FAILS, UNKNOWN))
            words.append(f"For {population}: {counts}.")
    said = {each.claim for each, _, _, verdict in rows if verdict.word != UNKNOWN}
    return " ".join([*words, f"Of {len(said)} of {len(OBSERVATIONS)} observations something is said."])


def page(tables: Tables, measured: str, command: str, evidence: Tables | None = None) -> str:
    """The page as Markdown; its first line says what needs ImageNet."""
    whole = [each for each in OBSERVATIONS if each.judge is None and each.across is None]
    part = [each for each in OBSERVATIONS if each.imagenet and each not in whole]
    rows = judged(tables, evidence)
    sizes = "; ".join(
        f"{name}: {table.groupby(['method', 'seed']).ngroups} networks of {table['method'].nunique()} trainings"
        for name, table in tables.items()
    )
    lines = [
        f"**ImageNet is not here:** {len(whole)} of {len(OBSERVATIONS)} observations are about ImageNet alone and "
        f"cannot be judged ({'; '.join(each.claim for each in whole)}), and of {len(part)} more a part "
        f"({'; '.join(f'{each.claim}: {each.imagenet}' for each in part)}).",
        "",
        "# The observations of OpenOOD v1.5",
        "",
        "**Question.** Which observations of the paper (arXiv 2306.09301) hold for networks trained here?",
        "",
        f"**Answer.** {answer(rows)}",
        "",
        f"**Command.** `{command}`",
        "",
        "**Machine.** The trained networks: one NVIDIA H200; comparisons on one network: 2 cores; this page: any "
        "processor.",
        "",
        f"**Date.** {measured}",
        "",
        f"**Rows.** {sizes or 'none'}. The page of each table names the networks that are not yet trained.",
        "",
        "Each comparison is at 5 % by itself. For other seeds of the same recipes, on these images and classes: paired "
        "for two scores of one network, by the variance between seeds for two trainings.",
        *(_about(evidence) if evidence else ()),
        "",
        "Of every observation, ID set and population:",
        "",
        "| observation | ID set | population | verdict | why | needs ImageNet |",
        "|---|---|---|---|---|---|",
    ]
    for each, name, population, verdict in rows:
        cells = (each.claim, name, population, verdict.word, verdict.reason, each.imagenet or "no")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _about(evidence: Tables) -> list[str]:
    """What the comparisons on one network are of."""
    (train, test), *_ = {(int(each["train"].iloc[0]), int(each["test"].iloc[0])) for each in evidence.values()}
    return [
        "",
        f"For other images and OOD classes: one ResNet-18 of each ID set ({', '.join(evidence)}), trained by OpenOOD's "
        f"recipe. Scores have their default parameters, were fitted on {train:,} training images and compared on "
        f"{test:,} images of each near set and half as many of each far set, classes in equal parts. A difference "
        "counts where it is beyond noise both for other images and for other OOD classes; p is the larger one. It says "
        "nothing of other networks of the recipe. Which score may be best is said over all pairs together.",
    ]


def read(path: Path) -> pd.DataFrame:
    """The rows of the kept epoch of a table."""
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return table[table["kept"] == "best"].reset_index(drop=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("tables", nargs="+", metavar="ID=TABLE")
    parser.add_argument("--evidence", type=Path, help="comparisons on one network of each ID set")
    parser.add_argument("--measured", default=str(date.today()), help="date of the measurements")
    options = parser.parse_args(arguments)
    given = dict(each.split("=", 1) for each in options.tables)
    shown = " ".join(
        f"{name}={path if not Path(path).is_absolute() else Path(path).name}" for name, path in given.items()
    )
    command = f"python benchmarks/openood_findings.py docs/results/{options.output.name} {shown}"
    tables = {name: read(Path(path)) for name, path in given.items()}
    evidence: Tables = {}
    if options.evidence is not None:
        command += f" --evidence {options.evidence if not options.evidence.is_absolute() else options.evidence.name}"
        evidence = {str(name): own for name, own in pd.read_csv(options.evidence).groupby("known")}
    write_text(options.output, page(tables, options.measured, command, evidence))


if __name__ == "__main__":
    main()

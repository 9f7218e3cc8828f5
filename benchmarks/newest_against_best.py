"""Do the detectors of 2024 to 2026 beat the best older ones on CIFAR ResNet-18, on the same activations?

    python benchmarks/newest_against_best.py TABLES --write docs/results/newest.md --machine "..."

TABLES is what ``detectors_cifar.py`` wrote: every detector that applies, under three tracks. Every newer detector of a
published form is compared with every older one at once, for three populations, so that no pair is picked before the
p-values are adjusted. ``--networks cifar10=FOLDER`` (output of ``training_table.py``) adds the networks CE-0, CE-1 and
CE-2 for the statement about other networks. What is not there is named as not yet run.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cifar_scores import from_training
from detectors_cifar import BENCHMARKS, TRACKS, accuracy, areas, load_all, not_yet_run
from oodscope.base.files import write_text
from oodscope.detectors.registry import create_detector
from oodscope.metrics.comparison.influence import Estimates
from oodscope.metrics.comparison.networks import paired_by_seed
from oodscope.metrics.metric import MEAN
from oodscope.protocols.statements import Statement
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.comparison.compare import comparison_rows, source_of
from oodscope.runs.comparison.comparison import Comparison
from oodscope.runs.comparison.sources import Scored, Source
from published import published

NEWER = 2024
ONE_NETWORK = "For other networks of this recipe: cannot say; one network was evaluated."


def year(name: str) -> int | None:
    """Of the paper of a detector, from its venue: "ICML 2022", or the number of a preprint; none if unpublished."""
    venue = create_detector(name).paper.venue
    if preprint := re.search(r"arXiv (\d\d)\d\d\.", venue):
        return 2000 + int(preprint.group(1))
    stated = re.findall(r"20\d\d", venue)
    return int(stated[-1]) if stated else None


def is_unverified(name: str) -> bool:
    """Whether the form of a detector is known from an abstract only."""
    return create_detector(name).unverified_form


def plain_names(table: ScoreTable) -> list[str]:
    """The detectors with their parameters as registered; other forms stand on the page of all detectors."""
    return [each for each in table.detectors if "(" not in each]


def sides(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Newer detectors of a published form, and older ones."""
    dated = {each: found for each in names if (found := year(each)) is not None and not is_unverified(each)}
    return [each for each in dated if dated[each] >= NEWER], [each for each in dated if dated[each] < NEWER]


@dataclass(frozen=True)
class Verdict:
    """Newer against older detectors for one population, all pairs at once.

    Parameters
    ----------
    best : the best newer one against the best older one.
    ahead : newer detectors that beat every older one at 5 %, all pairs adjusted.
    behind : older detectors that beat every newer one.
    """

    statement: Statement
    best: Comparison
    ahead: tuple[str, ...]
    behind: tuple[str, ...]

    def __str__(self) -> str:
        ahead = f"Newer ones that beat every older one: {', '.join(self.ahead) or 'none'}."
        behind = f"Older ones that beat every newer one: {', '.join(self.behind) or 'none'}."
        return f"{self.best} {ahead} {behind}"


def judge(table: ScoreTable, others: Sequence[ScoreTable] = ()) -> list[Verdict]:
    """Verdicts on near OOD for other images, other classes and, with more networks of the recipe, other networks."""
    names = [each for each in plain_names(table) if all(each in other.detectors for other in others)]
    newer, older = sides(names)
    chosen = [*newer, *older]
    pairs = [(a, len(newer) + b) for a in range(len(newer)) for b in range(len(older))]
    source = rows_of(table, chosen)
    sets = list(source.groups["near"])
    made: list[tuple[Statement, Estimates]] = [("images", source.images(sets))]
    if not source.refusal(sets):
        made.append(("classes", source.classes(sets)))
    if others:
        units = [
            [each.class_units()[name] for name in sets] for each in (source, *(rows_of(o, chosen) for o in others))
        ]
        made.append(("networks", paired_by_seed(units)))
    return [verdict(source, chosen, pairs, each, (statement, sets)) for statement, each in made]


def rows_of(table: ScoreTable, names: Sequence[str]) -> Source:
    return source_of([Scored(each, table, each) for each in names], "standard", "auroc")


def verdict(
    source: Source,
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    found: Estimates,
    where: tuple[Statement, Sequence[str]],
) -> Verdict:
    statement, sets = where
    fields = comparison_rows(source, names, pairs, found, (statement, "near", MEAN, sets), 0.95)
    rows = [Comparison(protocol="standard", metric="auroc", **each) for each in fields]
    value = {names[place]: float(found.values[place]) for pair in pairs for place in pair}
    newer, older = (list(dict.fromkeys(names[pair[side]] for pair in pairs)) for side in (0, 1))
    top = {side: max(group, key=lambda each: value[each]) for side, group in (("new", newer), ("old", older))}
    (best,) = [row for row in rows if (row.first, row.second) == (top["new"], top["old"])]
    won = {(row.first, row.second): row.distinguishable and row.difference > 0 for row in rows}
    lost = {(row.first, row.second): row.distinguishable and row.difference < 0 for row in rows}
    ahead = tuple(a for a in newer if all(won[a, b] for b in older))
    behind = tuple(b for b in older if all(lost[a, b] for a in newer))
    return Verdict(statement, best, ahead, behind)


def section(
    name: str, tables: dict[str, ScoreTable], others: Sequence[ScoreTable], found: dict[str, list[Verdict]]
) -> str:
    """One benchmark."""
    first = tables["default"]
    sizes = ", ".join(f"{label} {count:,}" for label, count in first.context.extra["sizes"].items())
    lines = [
        f"\n## {name} (accuracy on id_test {100 * accuracy(first):.2f})\n",
        f"Population: one network; images: {sizes}.\n",
    ]
    if others:
        lines += [
            f"The statement about other networks rests on {len(others)} more networks, trained by the same recipe.\n"
        ]
    for track in TRACKS:
        words = [str(each) for each in found[track]]
        if all(each.statement != "networks" for each in found[track]):
            words.append(ONE_NETWORK)
        lines += [f"**{track}.**\n", *(f"- {each}" for each in words), ""]
    names = plain_names(first)
    lines += table_of(name, tables, [each for each in names if not is_unverified(each)])
    lines += ["\nUnverified forms (equations from abstracts; no claim about the papers' methods):\n"]
    lines += table_of(name, tables, [each for each in names if is_unverified(each)])
    skipped = "; ".join(f"{each}: {why}" for each, why in first.context.extra["skipped"].items())
    lines += [f"\nDo not apply to one plain network: {skipped}.\n", not_yet_run(tables, first.detectors)]
    return "\n".join(lines)


def table_of(name: str, tables: dict[str, ScoreTable], names: Sequence[str]) -> list[str]:
    """Rows by the near value of the default track."""
    printed = published(name)
    values = {track: {each: areas(table, each) for each in names} for track, table in tables.items()}
    heads = ["detector", "year", "passes", *(f"{group} {track}" for group in ("near", "far") for track in TRACKS)]
    lines = ["| " + " | ".join([*heads, "published near"]) + " |", "|" + "---|" * (len(heads) + 1)]
    for each in sorted(names, key=lambda detector: -values["default"][detector]["near"]):
        cells = [f"{values[track][each][group]:.2f}" for group in ("near", "svhn") for track in TRACKS]
        passes = [str(1 + table.context.detectors[each].passes) for table in tables.values()]
        start = [each, str(year(each) or "unpublished"), "/".join(dict.fromkeys(passes))]
        lines.append("| " + " | ".join([*start, *cells, f"{printed[each]:.2f}" if each in printed else ""]) + " |")
    return lines


def answer(found: dict[str, dict[str, list[Verdict]]]) -> str:
    """The page in one paragraph."""
    sentences = []
    for name, tracks in found.items():
        cells = []
        for track, verdicts in tracks.items():
            said = [f"{', '.join(each.ahead) or 'none'} (other {each.statement})" for each in verdicts]
            cells.append(f"{track}: {'; '.join(said)}")
        sentences.append(
            f"{name}: newer detectors that beat every older one on near OOD, by track: {'. '.join(cells)}."
        )
    return f"**Answer.** {' '.join(sentences)}" if sentences else "**Answer.** Not yet run."


HEAD = """# Newest against best, on CIFAR ResNet-18

**Question.** Do detectors published since 2024 beat the best older ones on the same activations?

{answer}

**Command.** `OODSCOPE_DATA=path/to/packs python benchmarks/detectors_cifar.py TABLES --device cuda`, then
`python benchmarks/newest_against_best.py TABLES --write docs/results/newest.md`

**Machine.** {machine}

**Date.** {date}

Mean AUROC in percent over the near sets; "far" is SVHN alone (10,000 digits cropped again, not the published set).
Passes are those through the network for one image, the plain one included; a backward pass counts as two. `default`:
parameters as published; `id_only`: searched on shuffled tiles of id_val; `ood_val`: searched on Tiny ImageNet's
validation part. The three tracks are never ranked together. Every newer detector is compared with every older one, and
p-values are adjusted for all these pairs, so that naming the best pair afterwards is allowed for. Detectors without a
paper are in the table and in no comparison.
"""


def page(folder: Path, networks: dict[str, Path], machine: str) -> str:
    """The results page; every sentence is made from the numbers."""
    parts, verdicts = [], {}
    for name in BENCHMARKS:
        tables = load_all(folder, name)
        if tables is None:
            parts.append(f"\n## {name}\n\nNot yet run: `detectors_cifar.py` goes on where it stopped.\n")
            continue
        trained = sorted((networks[name] / "scores").glob("CE-[12].parquet")) if name in networks else []
        others = [from_training(path, name) for path in trained]
        verdicts[name] = {track: judge(table, others if track == "default" else ()) for track, table in tables.items()}
        parts.append(section(name, tables, others, verdicts[name]))
    head = HEAD.format(answer=answer(verdicts), machine=machine, date=f"{datetime.now(UTC):%Y-%m-%d}")
    return head + "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path)
    parser.add_argument("--networks", nargs="*", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--machine", default="2 cores, CPU")
    options = parser.parse_args()
    networks = {name: Path(folder) for name, _, folder in (each.partition("=") for each in options.networks)}
    text = page(options.tables, networks, options.machine)
    if options.write is None:
        print(text)
    else:
        write_text(options.write, text)


if __name__ == "__main__":
    main()

"""Do our detectors give the published near-OOD figures on CIFAR-10 and CIFAR-100?

    OODSCOPE_DATA=path/to/packs python benchmarks/detectors_cifar.py TABLES [--device cuda] [--only NAME ...]
    python benchmarks/detectors_cifar.py TABLES --write docs/results/detectors-cifar.md --machine "..."

Every detector that applies to a ResNet-18 under the three tuning tracks, on OpenOOD v1.5's own split lists, with one
network per benchmark trained by its recipe and fitted on all training images. TABLES/BENCHMARK-TRACK.parquet holds the
scores of all test images (rounded to float32, so that a file stays below 15 MiB), with parameters, passes and seconds
of every detector; ``newest_against_best.py`` reads the same files. Those of the tuned tracks hold the detectors that a
search, or validation outliers, can change. A file grows by columns, cheap ones first: an interrupted call goes on, and
``--minutes`` ends one in time. The published column is OpenOOD's leaderboard (three seeds, after its search on the same
validation sets), so it is compared with the track ``ood_val``.
"""

import argparse
import csv
import os
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from detectors_cifar_words import CAUSES, CFOOD, HEAD, REFERENCES, SEEDS_HEAD
from oodscope.base.files import write_text
from oodscope.detectors.base import Detector
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.scoring import applicable, join_scores, score_benchmark
from openood_cifar import open_classifier, open_part
from published import published
from training_table import InMemory

TRACKS = ("default", "id_only", "ood_val")
BENCHMARKS = ("cifar10", "cifar100")
VARIANTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("mds_ensemble", {"stages": "first"}),
    ("ora", {"reduce": "mean"}),
    ("gram", {"powers": 10}),
)
"""Other forms that a cause or a comparison on the page names; they stand in the default track only."""
LEARNERS = ("mds_ensemble", "opengan")
"""They have nothing to search, and learn from validation outliers where there are any."""
SEEDS = Path(__file__).parent.parent / "docs" / "results" / "data" / "detectors-cifar-seeds.csv"
EARLIER = SEEDS.with_name("detectors-cifar-earlier.csv")
"""Near AUROC of an earlier run, for rows that the tables do not hold."""
POPULATIONS = {"cifar10": "sampled", "cifar100": "sampled", "tin": "sampled", "svhn": "exhaustive"}
TIGHT = ("msp", "temp_scaling", "mls", "ebo", "gen", "knn", "rmds", "fdbd", "relation", "vim")
LOOSE = ("react", "she", "dice", "odin", "ash", "scale")
APART = 1.0
"""Points from which on a difference has its cause on the page, or the words "not understood"."""


def path_of(tables: Path, name: str, track: str) -> Path:
    return tables / f"{name}-{track}.parquet"


def asked_for(only: list[str], track: str) -> list[Detector]:
    """The detectors that a track decides; each has its own object, as fitting changes it."""
    variants = [create_detector(name, **params) for name, params in VARIANTS] if track == "default" and not only else []
    named = [create_detector(each) for each in only or DETECTORS]
    return [*(each for each in named if track == "default" or each.grid or each.name in LEARNERS), *variants]


def groups(detectors: Sequence[Detector]) -> list[list[Detector]]:
    """What is scored and written at a time: all that need the plain pass alone, then one by one, few passes first."""
    plain = [each for each in detectors if not each.probes]
    others = [each for each in detectors if each.probes]

    def passes(detector: Detector) -> int:
        return sum(len(probe.forwards) + 2 * len(probe.backwards) for probe in detector.probes)

    return [*([plain] if plain else []), *([each] for each in sorted(others, key=passes))]


class Scores:
    """The tables of one benchmark, which grow by groups of detectors; activations stay in the memory of the device."""

    def __init__(self, folder: Path, tables: Path, name: str, options: argparse.Namespace) -> None:
        self.tables, self.name, self.only = tables, name, options.only
        self.bench = open_part(folder, name, options.train, options.test)
        self.classifier = open_classifier(folder, name, options.device)
        self.extraction = InMemory(self.classifier, {})

    def missing(self, track: str) -> list[list[Detector]]:
        """Groups of detectors without a column in the table; reasons why others never get one are kept in it."""
        path = path_of(self.tables, self.name, track)
        there = set(ScoreTable.load(path).detectors) if path.exists() else set()
        usable, self.skipped = applicable(asked_for(self.only, track), self.extraction, self.bench)
        return groups([each for each in usable if each.id not in there])

    def add(self, track: str, detectors: list[Detector]) -> None:
        """Score a group and write its columns; one that fails is reported, and the next call tries it again."""
        begun, before = time.perf_counter(), self.extraction.seconds
        words = detectors[0].id if len(detectors) == 1 else f"{len(detectors)} detectors"
        try:
            scores = score_benchmark(
                self.extraction,
                self.bench,
                detectors,
                track=track,  # type: ignore[arg-type]
                context=self.context(),
            )
        except Exception as error:  # one method's fault must not cost the others their minutes on the machine
            print(f"{self.name} {track}: {words} FAILED: {type(error).__name__}: {error}", flush=True)
            return
        rounded = {each: scores.frame[each].astype("float32").astype("float64") for each in scores.detectors}
        found = ScoreTable(scores.frame.assign(**rounded), scores.context)
        path = path_of(self.tables, self.name, track)
        parts = [ScoreTable.load(path), found] if path.exists() else [found]
        names = [each for part in parts for each in part.detectors]
        join_scores(parts, names, self.context()).save(path)
        seconds, passing = time.perf_counter() - begun, self.extraction.seconds - before
        print(f"{self.name} {track}: {words}, {seconds:.1f} s ({passing:.1f} s of passes)", flush=True)

    def context(self) -> dict[str, object]:
        bench = self.bench
        return {
            "benchmark": self.name,
            "model": self.classifier.name,
            "fingerprint": self.classifier.fingerprint,
            "populations": {each.name: POPULATIONS[each.name] for each in (*bench.near, *bench.far)},
            "sizes": {images.name: len(images) for _, images in bench.members()},
            "skipped": self.skipped,
        }


def score(folder: Path, options: argparse.Namespace) -> None:
    """All missing columns: of both benchmarks first what needs no pass of its own, then the others by their passes."""
    deadline = time.monotonic() + 60 * options.minutes
    options.tables.mkdir(parents=True, exist_ok=True)
    work = [Scores(folder, options.tables, name, options) for name in options.benchmarks]
    for probed, scores, track in product((False, True), work, options.tracks):
        for group in scores.missing(track):
            if bool(group[0].probes) != probed:
                continue
            if time.monotonic() > deadline:
                print("the time is over: the same command goes on", flush=True)
                return
            scores.add(track, group)


def load(tables: Path, name: str, track: str) -> ScoreTable:
    """The table of a track; detectors that no search can change stand in the default one alone and are joined."""
    own = ScoreTable.load(path_of(tables, name, track))
    if track == "default":
        return own
    default = ScoreTable.load(path_of(tables, name, "default"))
    rest = [
        each
        for each in default.detectors
        if "(" not in each and not (create_detector(each).grid or each in LEARNERS) and each not in own.detectors
    ]
    # of a detector that both have, the later table's column counts
    return join_scores([default, own], [*own.detectors, *rest], own.context.extra)


def load_all(tables: Path, name: str) -> dict[str, ScoreTable] | None:
    """The tables of all tracks, of the detectors that all of them hold; None where one is not there."""
    if not all(path_of(tables, name, track).exists() for track in TRACKS):
        return None
    found = {track: load(tables, name, track) for track in TRACKS}
    shared = [each for each in found["default"].detectors if all(each in table.detectors for table in found.values())]
    forms = [each for each in found["default"].detectors if "(" in each]
    return {
        track: join_scores([table], [*shared, *(forms if track == "default" else [])], table.context.extra)
        for track, table in found.items()
    }


def areas(scores: ScoreTable, detector: str) -> dict[str, float]:
    """AUROC in percent against every OOD set, and the mean over the near ones."""
    known = scores.scores(detector, set="id_test")
    own = {
        name: 100 * Ranking(known, scores.scores(detector, set=name)).auroc
        for role in ("near", "far")
        for name in scores.sets(role)
    }
    return own | {"near": float(np.mean([own[name] for name in scores.sets("near")]))}


def accuracy(scores: ScoreTable) -> float:
    """Share of ID test images that the network classifies correctly."""
    return float(scores.correct()[(scores.frame["set"] == "id_test").to_numpy()].mean())


def earlier(name: str) -> dict[str, dict[str, float]]:
    """Near AUROC by detector and track, of the earlier run."""
    with EARLIER.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["benchmark"] == name]
    return {row["detector"]: {track: float(row[track]) for track in TRACKS} for row in rows}


def near_rows(name: str, tables: Mapping[str, ScoreTable]) -> dict[str, dict[str, float]]:
    """Near AUROC by detector and track: of these tables, else of the earlier run."""
    found = {
        each: {track: areas(table, each)["near"] for track, table in tables.items()}
        for each in tables["ood_val"].detectors
    }
    return found | {each: row for each, row in earlier(name).items() if each not in found}


def section(name: str, tables: Mapping[str, ScoreTable]) -> str:
    """One benchmark: ours beside the published column, and what is to be said of the differences."""
    searched, printed, rows = tables["ood_val"], published(name), near_rows(name, tables)
    near = {each: row["ood_val"] for each, row in rows.items()}
    sizes = ", ".join(f"{label} {count:,}" for label, count in searched.context.extra["sizes"].items())
    lines = [
        f"## {name} (accuracy on id_test {100 * accuracy(searched):.2f})\n",
        f"Images: {sizes}. Passes are those through the network for one image, the plain one included; a backward pass "
        "counts as two.\n",
        "| detector | passes | default | id_only | ood_val | published | difference | bar | chosen on ood_val |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in sorted(rows, key=lambda each: -near[each]):
        theirs, known = printed.get(each), each in searched.detectors
        off = ["", ""] if theirs is None else [f"{theirs:.2f}", f"{near[each] - theirs:+.2f}"]
        start = [each if known else f"{each} †", str(1 + searched.context.detectors[each].passes) if known else ""]
        values = [f"{rows[each][track]:.2f}" for track in TRACKS]
        chosen = chosen_params(searched, each) if known else ""
        lines.append("| " + " | ".join([*start, *values, *off, bar(name, each, near[each], theirs), chosen]) + " |")
    plain = {each: areas(tables["default"], each) for each in tables["default"].detectors}
    others = {each: areas["near"] for each, areas in plain.items() if each not in rows}
    lines += ["", agreement(name, near, printed), "", variants(others), "", references(name, plain)]
    skipped = "; ".join(f"{each}: {why}" for each, why in tables["default"].context.extra["skipped"].items())
    lines += [f"\nDo not apply to one plain network: {skipped}.\n"]
    return "\n".join([*lines, not_yet_run(tables, rows)])


def not_yet_run(tables: Mapping[str, ScoreTable], there: Collection[str]) -> str:
    """The detectors that apply and have no row; empty where all have one."""
    waiting = [each for each in DETECTORS if each not in there]
    waiting = [each for each in waiting if each not in tables["default"].context.extra["skipped"]]
    return f"Not yet run (the same command goes on): {', '.join(waiting)}.\n" if waiting else ""


def chosen_params(table: ScoreTable, detector: str) -> str:
    """What a search chose; nothing where there was none."""
    context = table.context.detectors[detector]
    if context.grid_size is None or context.grid_size <= 1:
        return ""
    return ", ".join(f"{k}={v}" for k, v in context.params.items() if v is not None)


def bar(name: str, detector: str, ours: float, theirs: float | None) -> str:
    """Whether a published value is met: within .7 or 1.5 points on CIFAR-10, twice that on CIFAR-100."""
    if theirs is None or detector not in TIGHT + LOOSE:
        return ""
    width = (1 if name == "cifar10" else 2) * (0.7 if detector in TIGHT else 1.5)
    return f"{width:.1f} {'met' if abs(ours - theirs) <= width else 'MISSED'}"


def apart(ours: Mapping[str, float], printed: Mapping[str, float]) -> list[str]:
    """Detectors that differ from their published value by more than a point, the largest difference first."""
    far = [each for each in ours if each in printed and abs(ours[each] - printed[each]) > APART]
    return sorted(far, key=lambda each: -abs(ours[each] - printed[each]))


def rank_correlation(ours: Mapping[str, float], printed: Mapping[str, float]) -> tuple[float, int]:
    """Spearman's correlation over all methods that both have, and their number."""
    shared = [each for each in ours if each in printed]
    return float(spearmanr([ours[each] for each in shared], [printed[each] for each in shared]).statistic), len(shared)


def agreement(name: str, ours: Mapping[str, float], printed: Mapping[str, float]) -> str:
    """Rank correlation over all shared methods, and every difference of more than a point with its cause."""
    rho, count = rank_correlation(ours, printed)
    lines = [f"Spearman rank correlation with the published near column over all {count} shared methods: {rho:.3f}."]
    for each in apart(ours, printed):
        cause = CAUSES.get((name, each), "not understood")
        words = f"{ours[each]:.2f}, published {printed[each]:.2f} ({ours[each] - printed[each]:+.2f})"
        lines.append(f"- `{each}` {words}: {cause}.")
    if absent := [each for each in printed if each not in ours]:
        lines.append(f"\nPublished and not measured here: {', '.join(absent)}.")
    return "\n".join(lines)


def variants(others: Mapping[str, float]) -> str:
    """Forms that causes name."""
    if not others:
        return ""
    cells = ", ".join(f"`{each}` {value:.2f}" for each, value in others.items())
    return f"Other forms, near AUROC with their parameters as given: {cells}."


def references(name: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """Default parameters beside the reference values of this network (10,000 training rows, parts of the sets)."""
    if name not in REFERENCES:
        return "No reference values are known for this network's newer detectors."
    lines = [
        "Newer detectors at their defaults beside reference values for this network (fitted on 10,000 training images, "
        "2,000, 1,500 and 2,000 test images, so ±0.7):\n",
        "| detector | " + " | ".join(f"{each} | reference" for each in ("cifar100", "tin", "svhn")) + " |",
        "|---|" + "---|" * 6,
    ]
    sets, gaps = ("cifar100", "tin", "svhn"), {}
    for each, values in REFERENCES[name].items():
        if each not in rows:
            continue
        gaps[each] = [rows[each][label] - value for label, value in zip(sets, values)]
        cells = [f"{rows[each][label]:.1f} | {value:.1f}" for label, value in zip(sets, values)]
        lines.append(f"| {each} | " + " | ".join(cells) + " |")
    far = [f"`{each}` ({a:+.1f}, {c:+.1f})" for each, (a, _, c) in gaps.items() if max(abs(a), abs(c)) > 2.0]
    tin = [gap[1] for gap in gaps.values()]
    words = f"More than 2 points away on CIFAR-100 or SVHN: {', '.join(far) or 'none'}."
    shift = (
        f"Against Tiny ImageNet every row is {min(tin):+.1f} to {max(tin):+.1f} points from its reference, whose "
        "images are not known; here they are those that OpenOOD's list leaves, without the classes of CIFAR."
    )
    return "\n".join([*lines, "", words, shift, *([CFOOD] if any("cfood" in each for each in far) else [])])


def answer(found: Mapping[str, Mapping[str, ScoreTable]]) -> str:
    """The page in one paragraph."""
    sentences, unknown = [], 0
    for name, tables in found.items():
        printed = published(name)
        ours = {each: row["ood_val"] for each, row in near_rows(name, tables).items()}
        rho, count = rank_correlation(ours, printed)
        barred = [verdict for each in ours if (verdict := bar(name, each, ours[each], printed.get(each)))]
        missed = sum(verdict.endswith("MISSED") for verdict in barred)
        far = apart(ours, printed)
        unknown += sum((name, each) not in CAUSES for each in far)
        sentences.append(
            f"{name}: {len(barred) - missed} of {len(barred)} bars are met, Spearman {rho:.3f} over all {count} shared "
            f"methods, {len(far)} differ by more than {APART:g} point."
        )
    return f"**Answer.** {' '.join(sentences)} Not understood: {unknown} (at most five allowed)."


def seeds() -> str:
    """Three networks of the same recipe on CIFAR-10, as measured before; published values from the one source."""
    printed = published("cifar10")
    lines = ["| detector | seed 0 | seed 1 | seed 2 | mean | range | published |", "|---|---|---|---|---|---|---|"]
    with SEEDS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            values = [float(row[f"seed{seed}"]) for seed in range(3)]
            cells = [*values, float(np.mean(values)), max(values) - min(values), printed[row["detector"]]]
            lines.append(f"| {row['detector']} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return "\n".join(lines)


def page(tables: Path, machine: str) -> str:
    """The results page; benchmarks whose tables are not whole are named."""
    found = {name: each for name in BENCHMARKS if (each := load_all(tables, name)) is not None}
    head = HEAD.format(answer=answer(found), machine=machine, date=f"{datetime.now(UTC):%Y-%m-%d}")
    parts = [head, *(section(name, each) for name, each in found.items())]
    parts += [
        f"## {name}\n\nNot yet run: the command goes on where it stopped.\n" for name in BENCHMARKS if name not in found
    ]
    return "\n".join([*parts, SEEDS_HEAD, seeds()]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--benchmarks", nargs="*", default=list(BENCHMARKS))
    parser.add_argument("--tracks", nargs="*", default=list(TRACKS))
    parser.add_argument("--train", type=int, help="so many training images, for a try")
    parser.add_argument("--test", type=int, help="so many images of each test set, for a try")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin nothing new after so long")
    parser.add_argument("--write", type=Path, help="the page that is made from the tables")
    parser.add_argument("--machine", default="2 cores, CPU")
    options = parser.parse_args()
    if options.write is not None:
        write_text(options.write, page(options.tables, options.machine))
        return
    score(Path(os.environ["OODSCOPE_DATA"]).resolve(), options)


if __name__ == "__main__":
    main()

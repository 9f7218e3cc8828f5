"""Small but true pages of every kind, each made from results as a run leaves them."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

import oodscope as oods
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.leaderboard.site.render import write_site
from oodscope.report.page.attack import write_attack
from oodscope.report.page.audit import write_audit
from oodscope.report.page.crossval import write_crossval
from oodscope.report.page.generated import write_generated_study
from oodscope.report.page.page import write_report
from oodscope.results.gallery import Gallery, hardest, shown_sets
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.evaluation.run import Result
from tests.generation.toys import Shift
from tests.leaderboard.board_factory import make_board
from tests.report.whole_runs import crossval as crossval_run
from tests.results.factory import CLASSES, make_result
from tests.runs.crossval.crossval_factory import make_table
from tests.runs.generated.generated_world import study
from tests.tiny import benchmark, images

DETECTORS = ("msp", "knn", "vim", "react")


@cache
def small_result() -> Result:
    """Four detectors of two tuning tracks: enough to sort, and soon drawn."""
    whole = make_result()
    kept = {name: each for name, each in whole.scores.context.detectors.items() if name in DETECTORS}
    frame = whole.scores.frame.drop(columns=[name for name in whole.scores.detectors if name not in kept])
    rows = Measurements(row for row in whole.measurements if row.detector in ("", *DETECTORS))
    scores = ScoreTable(frame, {**whole.scores.context.plain(), "detectors": kept})
    return Result(whole.record, rows, scores, hardest_pictures(scores))


def hardest_pictures(scores: ScoreTable) -> Gallery:
    """Of the images that each detector gets most wrong, pictures of noise."""
    rows = {
        int(row)
        for role, name in shown_sets(scores)
        for detector in scores.detectors
        for row in hardest(scores, detector, role, name)
    }
    keys = tuple((str(scores.frame["set"][row]), str(scores.frame["sample_id"][row])) for row in sorted(rows))
    pixels = np.random.default_rng(0).integers(0, 256, (len(keys), 12, 12, 3), dtype=np.uint8)
    return Gallery(keys, tuple(pixels), tuple(f"class {number}" for number in range(CLASSES)))


def report(folder: Path) -> Path:
    """Runs of every kind on one page."""
    runs = [small_result(), small_attack(), crossval_run(small_table()), study()]
    return write_report(runs, folder / "report.html")


@cache
def small_attack() -> Attack:
    bench = benchmark()
    scorers = {
        "mean": FunctionScorer(lambda batch: batch.mean(dim=(1, 2, 3))),
        "std": FunctionScorer(lambda batch: batch.std(dim=(1, 2, 3))),
    }
    return oods.attack(scorers, bench.id_val, bench.id_test, bench.far[0], {"shift": Shift()}, budget=8, chains=15)


def attack(folder: Path) -> Path:
    return write_attack(small_attack(), folder)


@cache
def small_table() -> CrossValidationTable:
    return make_table(("ebo", "gen", "knn", "mds"), ("auroc",), pairs=3, repetitions=4, hold_outs=20)


def crossval(folder: Path) -> Path:
    return write_crossval(small_table(), folder)[0]


def generated(folder: Path) -> Path:
    return write_generated_study(study(), folder)


def audit(folder: Path) -> Path:
    pixels, labels = images(60, 4)
    twice = oods.ImageSet.from_arrays("twice", pixels, labels, [f"class {number}" for number in range(4)])
    bench = benchmark(id_test=twice, near=(oods.ImageSet.from_arrays("again", pixels[:20], labels[:20], list("abcd")),))
    return write_audit(oods.audit(bench), bench, folder)


@cache
def site(folder: Path) -> Path:
    return write_site(make_board(), folder) / "index.html"


def of_site(pattern: str) -> Callable[[Path], Path]:
    """The first page of the site that lies so."""
    return lambda folder: min(site(folder.parent / "site").parent.glob(pattern))


PAGES = {
    "report": report,
    "attack": attack,
    "crossval": crossval,
    "generated": generated,
    "audit": audit,
    "site": site,
    "site-table": of_site("benchmarks/*/standard.html"),
    "site-method": of_site("methods/knn.html"),
    "site-methods": of_site("methods/index.html"),
    "site-model": of_site("models/[!i]*.html"),
    "site-downloads": of_site("downloads.html"),
}

"""Small but true pages of every kind, each made from results as a run leaves them."""

from pathlib import Path

import oodscope as oods
from oodscope.report import write_attack, write_audit, write_crossval, write_generated_study, write_report

from ..generation.toys import Shift
from ..protocols.generated_world import study
from ..results.crossval_factory import make_table
from ..results.factory import make_result
from ..tiny import benchmark, images


def report(folder: Path) -> Path:
    return write_report(make_result(), folder / "report.html")


def attack(folder: Path) -> Path:
    bench = benchmark()
    scorers = {
        "mean": oods.FunctionScorer(lambda batch: batch.mean(dim=(1, 2, 3))),
        "std": oods.FunctionScorer(lambda batch: batch.std(dim=(1, 2, 3))),
    }
    found = oods.attack(scorers, bench.id_val, bench.id_test, bench.far[0], {"shift": Shift()}, budget=8, chains=15)
    return write_attack(found, folder)


def crossval(folder: Path) -> Path:
    table = make_table(("ebo", "gen", "knn", "mds"), ("auroc",), pairs=3, repetitions=4, hold_outs=20)
    return write_crossval(table, folder)[0]


def generated(folder: Path) -> Path:
    return write_generated_study(study(), folder)


def audit(folder: Path) -> Path:
    pixels, labels = images(60, 4)
    twice = oods.ImageSet.from_arrays("twice", pixels, labels, [f"class {number}" for number in range(4)])
    bench = benchmark(id_test=twice, near=(oods.ImageSet.from_arrays("again", pixels[:20], labels[:20], list("abcd")),))
    return write_audit(oods.audit(bench), bench, folder)


PAGES = {"report": report, "attack": attack, "crossval": crossval, "generated": generated, "audit": audit}

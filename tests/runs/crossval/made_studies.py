"""One object of every kind that a table can be made of, each made once."""

from functools import cache

import oodscope as oods
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.runs.comparison.compare import compare
from tests.generation.toys import Shift
from tests.results.factory import make_result
from tests.runs.crossval.crossval_factory import make_table
from tests.tiny import benchmark

EVIL = '<b onclick="x">&'


@cache
def attack():
    bench = benchmark()
    scorers = {
        EVIL: FunctionScorer(lambda images: images.mean(dim=(1, 2, 3))),
        "std_of 100%": FunctionScorer(lambda images: images.std(dim=(1, 2, 3))),
    }
    return oods.attack(scorers, bench.id_val, bench.id_test, bench.far[0], {"shift": Shift()}, budget=8, chains=15)


@cache
def table():
    return make_table(metrics=("auroc", "tpr5_id_positive_interpolated"), pairs=5, repetitions=3, hold_outs=12)


@cache
def comparisons():
    return compare(make_result(), detectors=["msp", "knn", "vim"])

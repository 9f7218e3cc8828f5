"""Small runs of every kind, made once: what a report over all of them is tested on."""

from functools import cache

import numpy as np
import pandas as pd

import oodscope as oods
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.samplers.metropolis_hastings import MetropolisHastings
from oodscope.protocols.registry import create_protocol
from oodscope.results.measurement import Measurements
from oodscope.results.run import Run
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval.run import CrossValidation, CrossValidationTable
from oodscope.runs.evaluation.run import Result
from tests.generation.toys import Shift
from tests.results.factory import make_record
from tests.runs.crossval.crossval_factory import make_table
from tests.runs.generated.generated_world import study
from tests.tiny import benchmark

SETS = {  # role, images, how far from ID
    "id_train": ("id_train", 120, -0.2),
    "id_val": ("id_val", 90, 0.0),
    "id_test": ("id_test", 110, 0.0),
    "letters": ("near", 80, 0.9),
    "noise": ("far", 70, 2.0),
    "lines": ("far", 60, 1.2),
    "fonts": ("csid", 75, 0.3),
}
DETECTORS = {"msp": 0.8, "knn": 1.2, "vim": 1.25, "react": 1.0}  # how strongly each reacts
PROTOCOLS = ("standard", "full_spectrum", "human_centric")
RUN = "glyphs-judged"


@cache
def judged() -> Result:
    """Four detectors under three protocols, one of them tuned."""
    rng = np.random.default_rng(3)
    frames = []
    for name, (role, n, shift) in SETS.items():
        own, odd = rng.integers(5, size=n), rng.normal(size=n)
        known = role not in ("near", "far")
        right = rng.random(n) < 0.85 - 0.1 * shift
        frame = {
            "sample_id": [f"{name}/{row}" for row in range(n)],
            "set": name,
            "role": role,
            "label": own if known else np.full(n, -1),
            "own_class": own,
            "prediction": np.where(right, own, (own + 1) % 5),
            "unit": "",
        }
        for detector, strength in DETECTORS.items():
            frame[detector] = strength * shift + 0.8 * odd + 0.6 * rng.normal(size=n) + 0.7 * ~right
        frames.append(pd.DataFrame(frame))
    described = {
        name: {"name": name, "params": {}, "tuning": "ood_val" if name == "react" else "default"}
        | {"fit_seconds": 0.5, "microseconds_per_image": 10.0 + place, "peak_mib": 1.5}
        for place, name in enumerate(DETECTORS)
    }
    context = {"run": RUN, "benchmark": "glyphs", "benchmark_version": "1", "model": "small_cnn", "recipe": ""}
    scores = ScoreTable(
        pd.concat(frames, ignore_index=True), {"detectors": described, **context, "seed": 0, "exposure": {}}
    )
    rows = Measurements()
    for protocol in PROTOCOLS:
        rows = rows + create_protocol(protocol).measurements(scores)
    return Result(make_record(RUN, protocols=list(PROTOCOLS)), rows, scores)


@cache
def attacked() -> Attack:
    """Two functions of pixels that carry the names of detectors, shifted for a moment."""
    bench = benchmark()
    scorers = {
        "knn": FunctionScorer(lambda images: images.mean(dim=(1, 2, 3))),
        "msp": FunctionScorer(lambda images: images.std(dim=(1, 2, 3))),
    }
    options = {"budget": 8, "chains": 15, "sampler": MetropolisHastings()}  # a gradient breaks both, to an AUROC of 0
    return oods.attack(scorers, bench.id_val, bench.id_test, bench.far[0], {"shift": Shift()}, **options)


def attack_of(result: Result, **changes: object) -> Attack:
    """The attack, as if on the network of a result."""
    found = attacked()
    update = {"model_fingerprint": result.record.model_fingerprint, **changes}
    record = found.result.record.model_copy(update=update)
    return Attack(Result(record, found.result.measurements, found.result.scores), found.searches)


@cache
def table():
    """Three detectors in ten cells."""
    return make_table(("knn", "vim", "gen"), ("auroc",), pairs=5, repetitions=3, folds=4, hold_outs=6)


def crossval(draws: CrossValidationTable | None = None) -> CrossValidation:
    """A cross-validation with this table, or with the one above."""
    record = make_record("crossval-1", protocols=["crossval"])
    return CrossValidation(table() if draws is None else draws, record)


@cache
def every_kind() -> list[Run]:
    """All of them together."""
    return [judged(), attack_of(judged()), crossval(), study()]

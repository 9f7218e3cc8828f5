"""What the seam tests share: one command that evaluates, and one Python call that does the same."""

from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

import pytest

import oodscope as oods
from oodscope.metrics.resampling.resampling import bootstrap_each, bootstrap_values
from oodscope.protocols import ranking
from tests.tiny import benchmark, classifier


@pytest.fixture(autouse=True)
def few_replicates(monkeypatch):
    """20 bootstrap replicates: their number is not what is tested here."""
    for draw in (bootstrap_each, bootstrap_values):
        monkeypatch.setattr(ranking, draw.__name__, partial(draw, replicates=20))


def done(outcome) -> str:
    """What a command printed, which must have succeeded."""
    assert outcome.status == 0, outcome
    return outcome.out


@cache
def _store() -> oods.ActivationStore:
    return oods.ActivationStore(Path(mkdtemp(prefix="oodscope-seams-")))


def evaluated(detectors=("msp", "knn"), protocols=("standard",), bench=None) -> oods.Result:
    """The tiny network on the tiny benchmark."""
    return oods.evaluate(classifier(), bench or benchmark(), list(detectors), list(protocols), store=_store())


EVALUATE = {
    "--benchmark": "seeded-shapes",
    "--model": "tinylib:flat",
    "--weights": "pretrained",
    "--detectors": "msp,logit_range",
    "--device": "cpu",
    "--output": "runs",
}


def command(verb="evaluate", **changes) -> tuple[str, ...]:
    """``oodscope VERB`` on the benchmark and with the network of the plugin; ``changes`` replace options."""
    given = EVALUATE | {f"--{key.replace('_', '-')}": value for key, value in changes.items()}
    return (verb, *(part for key, value in given.items() if value is not None for part in (key, value)))


def run_folder(place) -> Path:
    """The one evaluation below a folder."""
    (folder,) = (path.parent for path in Path(place).glob("runs/*/run.json"))
    return folder

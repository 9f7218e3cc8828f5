"""A small run, its published activations, and boards made from it; everything once per test session."""

import json
import shutil
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

import pytest

import oodscope as oods
from oodscope.leaderboard.verify.about import About
from oodscope.leaderboard.verify.publishing import publish_activations
from oodscope.leaderboard.verify.submitting import submit
from oodscope.metrics.resampling.resampling import bootstrap_each
from oodscope.protocols import ranking as separation
from oodscope.protocols.human_centric import rows as conventional_rows
from oodscope.protocols.human_centric import rows as rejection_rows
from oodscope.protocols.human_centric import rows as selective_rows
from tests.tiny import benchmark, classifier

DETECTORS = ["msp", "knn", "react+msp", "klm", "vim"]
ABOUT = {
    "authors": ["Ada <b>Lovelace</b>", "Émilie du Châtelet"],
    "paper": {"title": "Nearest & dearest", "venue": "ICML", "year": 2022, "link": "https://arxiv.org/abs/2204.06507"},
    "code": "https://github.com/deeplearning-wisc/knn-ood",
    "trained_on": ["id_train"],
}
"""What a person would write."""


@pytest.fixture(autouse=True)
def few_replicates(monkeypatch):
    """Runs and verifications alike draw 20 bootstrap replicates: their number is not what is tested here."""
    monkeypatch.setattr(separation, "bootstrap_each", partial(bootstrap_each, replicates=20))
    for module in (conventional_rows, rejection_rows, selective_rows):
        monkeypatch.setattr(module, "REPLICATES", 20)


@cache
def folder() -> Path:
    return Path(mkdtemp(prefix="oodscope-leaderboard-"))


@cache
def store() -> oods.ActivationStore:
    return oods.ActivationStore(folder() / "store")


def run(seed: int = 0, protocols: tuple[str, ...] = ("standard",), tune: str = "default") -> Path:
    """Folder of an evaluation of the tiny network with these weights."""
    return _run(seed, protocols, tune)


@cache
def _run(seed: int, protocols: tuple[str, ...], tune: str) -> Path:
    result = oods.evaluate(
        classifier(seed), benchmark(), DETECTORS, protocols, store=store(), tune=tune, recipe="untrained"
    )
    return result.save(folder() / result.record.id)


def activations(seed: int = 0) -> Path:
    """Folder of the published activations of that network."""
    return _activations(seed)


@cache
def _activations(seed: int) -> Path:
    return publish_activations(classifier(seed), benchmark(), folder() / f"activations-{seed}", store=store())


def enter(board, id="knn-tiny", detector="knn", seed=0, **changes) -> Path:
    """An entry as ``submit`` writes it."""
    protocols = changes.pop("protocols", ("standard",))
    given = {"method": detector.upper(), "about": About.model_validate(ABOUT)} | changes
    return submit(run(seed, protocols, given.pop("tune", "default")), board, id=id, detector=detector, **given)


@cache
def _template() -> Path:
    return enter(folder() / "template")


def copied(board) -> Path:
    """A fresh copy of a good entry, for a test that spoils it."""
    target = Path(board) / _template().name
    shutil.copytree(_template(), target)
    return target


def edit(entry: Path, change) -> Path:
    """Rewrite ``entry.json`` after ``change`` has had its way with the content."""
    content = json.loads((entry / "entry.json").read_text())
    change(content)
    (entry / "entry.json").write_text(json.dumps(content))
    return entry

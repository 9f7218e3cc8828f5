"""What the README promises is there."""

import inspect
import re
from doctest import ELLIPSIS, DocTestParser, DocTestRunner
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import oodscope
from oodscope.data.manifest import Manifest
from oodscope.jobs.job import Job
from oodscope.metrics.resampling.resampling import bootstrap_each, bootstrap_values
from oodscope.protocols import ranking
from oodscope.protocols.registry import PROTOCOLS
from tests import tiny

GUIDE = (Path(__file__).parent.parent / "docs" / "guide.md").read_text(encoding="utf-8")
README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", oodscope.__all__)
def test_every_public_name_resolves(name):
    assert getattr(oodscope, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = oodscope.evalute


def test_the_readme_uses_public_names_only():
    used = set(re.findall(r"\boods\.(\w+)", README))
    assert used
    assert used <= set(oodscope.__all__)


def test_the_yaml_of_the_guide_is_valid():
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, flags=re.DOTALL)]
    kinds = {"sets": Manifest, "model": Job}
    checked = [kinds[key].model_validate(block) for block in blocks for key in kinds if key in block]
    assert len(checked) == len(blocks) == 2


def test_the_readme_names_existing_commands():
    from oodscope.cli.app import app

    named = set(re.findall(r"^oodscope (\w+)", README, flags=re.MULTILINE))
    existing = {command.name or command.callback.__name__ for command in app.registered_commands}
    existing |= {group.typer_instance.info.name for group in app.registered_groups}
    assert named
    assert named <= existing


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the examples of docstrings take for granted: a network, a benchmark, an evaluation, a scorer, a folder."""
    for draw in (bootstrap_each, bootstrap_values):
        monkeypatch.setattr(ranking, draw.__name__, partial(draw, replicates=20))
    monkeypatch.setattr(PROTOCOLS, "_registered", dict(PROTOCOLS._registered))
    clf, bench = tiny.classifier(), tiny.benchmark()
    return {
        "oods": oodscope, "np": np, "torch": torch, "folder": tmp_path,
        "model": tiny.network(), "clf": clf, "bench": bench,
        "result": oodscope.evaluate(clf, bench, ["msp", "knn"]),
        "scorer": oodscope.fit_scorer(clf, "msp", bench.id_val),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in oodscope.__all__ if name != "__version__"])
def test_every_public_name_has_an_example_that_runs(name, names, capsys):
    documented = getattr(oodscope, name)
    example = DocTestParser().get_doctest(inspect.getdoc(documented), names, name, None, 0)
    assert example.examples, f"{name} has no example"
    outcome = DocTestRunner(optionflags=ELLIPSIS).run(example)
    assert outcome.failed == 0, capsys.readouterr().out


def test_the_public_module_is_small():
    assert 30 <= len(set(oodscope.__all__) - {"__version__"}) <= 40

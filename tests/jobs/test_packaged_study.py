"""The packaged study of the human-centric evaluation: the networks of the paper, and a miniature of it."""

from pathlib import Path

import pytest

import oodscope as oods
from oodscope.base.config import read_yaml
from oodscope.base.errors import DataError, OodscopeError, UnknownNameError
from oodscope.jobs.run import PACKAGED, execute_declared
from oodscope.jobs.study import read_study
from oodscope.models.zoo.human_centric import PRETRAINED, STUDIED
from oodscope.report.paper.figure import FIGURES
from oodscope.runs.evaluation.run import Result

DECLARED = read_yaml(PACKAGED / "human-centric.yaml")


def test_it_holds_every_network_of_the_paper_whose_weights_are_published():
    jobs = read_study(DECLARED, "human-centric")
    published = {name: each for name, each in STUDIED.items() if each.weights == PRETRAINED}
    assert {each.model.name for each in jobs} == set(published)
    for each in jobs:
        known = published[each.model.name]
        assert (each.job.model.architecture, each.model.family) == (known.spec, known.family)
    assert {each.model.distilled_from for each in jobs} == {"", "ResMLP-12", "ResMLP-24", "DeiT-T", "DeiT-B"}


def test_the_retrained_networks_are_those_of_the_paper_and_come_by_file(tmp_path):
    declared = read_yaml(PACKAGED / "human-centric-retrained.yaml")
    jobs = read_study(declared, "human-centric-retrained")
    retrained = {name: each for name, each in STUDIED.items() if each.weights != PRETRAINED}
    assert {each.model.name for each in jobs} == {*retrained, "ResNet-50"}
    by_name = {each.model.name: each for each in jobs}
    for name, known in retrained.items():
        assert (by_name[name].job.model.architecture, by_name[name].model.strategy) == (known.spec, known.strategy)
    assert [each.model.perturbation for each in jobs if each.model.perturbation is not None][:3] == [0, 0.01, 0.03]
    with pytest.raises(OodscopeError, match=r"weights/resnet50-\S+: no such file"):
        execute_declared({**declared, "models": declared["models"][2:], "output": str(tmp_path)}, "retrained")


@pytest.mark.slow
def test_a_miniature_runs_to_its_figures(tmp_path):
    """The same file with two small networks and a small benchmark in the place of the large ones."""
    trained = {"architecture": "small_cnn", "train": {"epochs": 1}}
    models = [{**trained, "name": "a", "family": "A"}, {**trained, "name": "b", "family": "A", "distilled_from": "a"}]
    small = {**DECLARED, "benchmark": "glyphs", "images_per_class": 4, "detectors": ["msp", "klm"], "device": "cpu"}
    finished = execute_declared({**small, "models": models, "output": str(tmp_path)}, "miniature")
    assert finished.kind == "study"
    assert finished.result.detectors == ["msp", "klm"]
    stems = {path.stem for path in finished.files}
    assert {"distillation-train-correct", "distillation-val-correct"} <= stems
    runs = [
        Result.load(path.parent) for path in sorted(Path(tmp_path).glob("*/run.json")) if path.parent.name != "study"
    ]
    assert FIGURES["human-4"].drawn(runs, "der95_val_correct").axes
    with pytest.raises((UnknownNameError, DataError), match="der95_vall_correct"):
        FIGURES["human-4"].drawn(runs, "der95_vall_correct")
    with pytest.raises(DataError, match="human-2 shows one thing only"):
        FIGURES["human-2"].drawn(runs, "augrc")
    assert oods.write_report([finished.result], tmp_path / "report.html").is_file()

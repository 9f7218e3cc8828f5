"""What people tried on version 0.1 as its documentation said, and what failed: one test for each attempt."""

import json

import numpy as np
import pytest
import yaml

import oodscope as oods
from oodscope.base.errors import UnknownNameError
from oodscope.jobs.job import Job
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier
from oodscope.metrics.catalog import METRICS
from oodscope.metrics.metric import columns_of
from oodscope.protocols.registry import read_protocols
from oodscope.results.run import RUNS
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401
from tests.tiny import TRANSFORM, benchmark, images

OWN_NETWORK = """
from torch import nn

def build():
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4))
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A user's folder, entered: images as arrays, and a module with a network."""
    for seed, name in enumerate(("train", "val", "test", "odd", "outliers")):
        pixels, labels = images(40, seed)
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=labels)
    (tmp_path / "own_net.py").write_text(OWN_NETWORK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_protocol_with_a_metric_of_its_own(tmp_path):
    result = evaluated(protocols=["open_set"])
    assert "OSCR" in result.table().title and "OSCR" in result.table(metric="oscr").title
    assert {row.metric for row in oods.compare(result)} == {"oscr"}  # its headline, not AUROC
    assert "OSCR" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")


def test_options_of_a_second_protocol(tmp_path):
    result = evaluated(protocols=["standard", {"open_set": {"far": False}}])
    assert result.scores.context.protocols["open_set"] == {"far": False}
    sets = {row.set for row in result.measurements if row.protocol == "open_set" and row.detector}
    assert sets == {"mean", "static", "snow"}
    (protocol,) = read_protocols(Job.model_validate(_job(protocols=[{"open_set": {"far": False}}])).protocols)
    assert protocol.options == {"far": False}


@pytest.mark.slow
def test_a_training_method_in_a_job_file(project):
    job = _job(train={"recipe": "outlier_exposure", "epochs": 1, "ood_batch_size": 4, "weight": 0.5})
    files = {"id_train": "train", "id_val": "val", "id_test": "test", "ood_train": "outliers"}
    sets = {role: {"source": "npz", "path": f"{name}.npz"} for role, name in files.items()}
    sets["far"] = {"odd": {"source": "npz", "path": "odd.npz"}}
    bench = {"name": "tiny", "version": "1", "transform": {"size": 8}, "sets": sets}
    (project / "bench.yaml").write_text(yaml.safe_dump(bench))
    (project / "job.yaml").write_text(yaml.safe_dump({**job, "benchmark": "bench.yaml"}))
    assert oods.run("job.yaml").measurements.distinct("recipe") == ["OutlierExposure"]


def test_arrays_instead_of_images_up_to_a_table_with_intervals():
    rng = np.random.default_rng(0)
    known, odd = ({"logits": rng.normal(shift, 1, (60, 3)), "labels": rng.integers(0, 3, 60)} for shift in (1.0, 0.0))
    result = oods.evaluate_activations(id_test=known, near={"odd": odd}, detectors=["msp", "ebo"])
    number = result.table().rows[0].numbers[0]
    assert number.low < number.value < number.high


@pytest.mark.parametrize("probe", [False, True])
def test_the_history_of_an_own_network_is_kept(project, probe):
    seen = {"trained_on": ["id_train"], "pretrained_on": ["imagenet1k"]}
    probed = {"probe": {"penalties": [0.1]}} if probe else {}
    spec = ModelSpec.model_validate({"architecture": "python:own_net:build", **probed, **seen})
    built = build_classifier(spec, ModelData.of(benchmark()), device="cpu").classifier
    assert "id_train" in built.trained_on and built.pretrained_on == ("imagenet1k",)


def test_a_misspelt_protocol_is_found_before_the_training(project, monkeypatch):
    def never(*_args, **_kwargs):
        raise AssertionError("a network was trained")

    monkeypatch.setattr("oodscope.jobs.stages.train_seeds", never)
    (project / "job.yaml").write_text(yaml.safe_dump(_job(train={"epochs": 50}, protocols=["standrad"])))
    with pytest.raises(UnknownNameError, match="unknown protocol 'standrad'. Did you mean 'standard'"):
        oods.run("job.yaml")


@pytest.mark.slow
def test_fit_takes_an_own_network(project, oodscope):
    words = ("fit", "--model", "python:own_net:build", "--id-train", "train.npz", "--id-cal", "val.npz")
    words += ("--detector", "mds", "--transform", "{size: 8}", "--target-fpr", "0.2", "--device", "cpu")
    assert "saved: d.oodscope" in done(oodscope(*words, "--output", "d.oodscope"))


def test_one_metric_name_is_one_number():
    ties = columns_of(np.repeat([0.0, 1.0, 2.0], [4, 10, 6]), np.repeat([0.0, 1.0, 2.0], [1, 4, 20]))
    step, line = (
        METRICS[name].value(ties, np.ones(45)) for name in ("tpr5_id_positive", "tpr5_id_positive_interpolated")
    )
    assert step != line
    assert len({metric.name for metric in METRICS.values()}) == len(METRICS)
    assert {"ece15", "tpr5_id_positive", "der95_val_correct", "min_rank", "accuracy"} <= METRICS.keys()


@pytest.mark.slow
def test_a_metric_added_to_a_cross_validation_trains_nothing(project, monkeypatch):
    plan = {"folds": 2, "repetitions": 1, "hold_outs": 0, "detectors": ["msp"], "outlier_exposure": False}
    model = {"architecture": "python:own_net:build"}
    job = {"id_set": "train.npz", "ood": {"odd": "odd.npz"}, "transform": {"size": 8}, "model": model, "plan": plan}
    job |= {"head": {"epochs": 1}, "device": "cpu", "output": "out"}
    (project / "job.yaml").write_text(yaml.safe_dump(job))
    run = oods.run("job.yaml")
    (found,) = oods.open_runs("out")
    tables = found.score_tables()
    assert tables and all("msp" in each.detectors for each in tables.values())
    assert run.record.id == found.record.id


def test_a_new_kind_of_run_in_the_report(tmp_path):
    result = evaluated()
    census = RUNS.get("census").of(result, "msp")
    page = oods.write_report([result, census], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Census" in page and "counted by a plugin" in page


def _job(train=None, **changes):
    sets = {"id_train": "train.npz", "id_val": "val.npz", "id_test": "test.npz", "far": {"odd": "odd.npz"}}
    model = {"architecture": "small_cnn", "train": train or {"epochs": 1}}
    transform = json.loads(TRANSFORM.model_dump_json())
    shared = {"detectors": ["msp"], "device": "cpu", "output": "out"}
    return {"benchmark": {**sets, "transform": transform}, "model": model, **shared, **changes}

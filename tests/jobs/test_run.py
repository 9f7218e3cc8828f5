"""``oods.run``: one function for every kind of job; every command takes every model."""

import json
import sys

import numpy as np
import pytest
import yaml
from safetensors.torch import save_file

import oodscope as oods
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier
from oodscope.jobs.run import PACKAGED, find_job
from oodscope.models.zoo.zoo import create_model
from oodscope.runs.attack.run import Attack
from oodscope.runs.crossval.run import CrossValidation
from oodscope.runs.evaluation.run import Result
from oodscope.runs.fit.run import Fit
from oodscope.runs.models.run import Study
from oodscope.runs.training.run import Training
from tests.cli.conftest import oodscope  # noqa: F401
from tests.tiny import benchmark

MODULE = """
import torch
from torch import nn
from oodscope import Classifier, Preprocess

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))

def classifier():
    return Classifier(build(), Preprocess(size=8), device="cpu", name="mine", trained_on=["elsewhere"])

def features():
    return build()[:4]
"""
SETS = {"id_train": "train.npz", "id_val": "val.npz", "id_test": "test.npz", "far": {"odd": "odd.npz"}}
BENCH = {**SETS, "transform": {"size": 8}}
WEIGHTS = {"architecture": "small_cnn", "weights": "net.safetensors"}
COMMON = {"benchmark": BENCH, "model": WEIGHTS, "device": "cpu", "output": "out"}
KINDS = {
    Result: {**COMMON, "detectors": ["msp"]},
    Study: {**COMMON, "detectors": ["msp"], "models": [{"name": "one", **WEIGHTS}]},
    Attack: {
        **COMMON, "detectors": ["msp"], "attack": {"variations": ["color"], "budget": 2, "chains": 4, "runs": 2},
    },
    Fit: {
        **COMMON, "benchmark": {"id_train": "train.npz", "id_cal": "val.npz", "transform": {"size": 8}},
        "fit": {"detector": "mds", "target_fpr": 0.2}, "output": "mds.oodscope",
    },
    Training: {"benchmark": BENCH, "model": "small_cnn", "train": {"epochs": 1}, "device": "cpu", "output": "out"},
    CrossValidation: {
        "id_set": "train.npz", "ood": {"odd": "odd.npz"}, "transform": {"size": 8}, "model": WEIGHTS, "device": "cpu",
        "head": {"epochs": 1}, "output": "out",
        "plan": {"folds": 2, "repetitions": 1, "hold_outs": 0, "detectors": ["msp"], "outlier_exposure": False},
    },
}  # fmt: skip
del KINDS[Study]["model"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A user's folder, entered: images, weights, a module."""
    rng = np.random.default_rng(0)
    for name in ("train", "val", "test", "odd"):
        pixels = rng.integers(0, 256, size=(24, 10, 10, 3)).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=np.arange(24) % 3)
    save_file(create_model("small_cnn", num_classes=3)[0].state_dict(), tmp_path / "net.safetensors")
    (tmp_path / "mynet.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("mynet", None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_file_gives_what_the_python_function_gives(project, kind):
    (project / "job.yaml").write_text(yaml.safe_dump(KINDS[kind]))
    run = oods.run("job.yaml")
    assert isinstance(run, kind) and isinstance(run, oods.Run)
    assert run.record.id in {each.record.id for each in oods.open_runs(".")}
    assert (project / str(KINDS[kind]["output"])).exists()


def test_paths_are_relative_to_the_file(project, monkeypatch):
    (project / "job.yaml").write_text(yaml.safe_dump(KINDS[CrossValidation]))
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    assert oods.run("../job.yaml", output="here").record.model == "small_cnn"
    assert (project / "sub" / "here").is_dir()


def test_packaged_jobs_have_names(oodscope):  # noqa: F811
    assert find_job("demo") == PACKAGED / "demo.yaml"
    outcome = oodscope("run", "dmeo")
    assert outcome.status == 2
    assert "unknown job 'dmeo'. Did you mean 'demo'?  Packaged: demo, encoders, human-centric, " in outcome.err


PLACES = ("--id-train", "train.npz", "--id-test", "test.npz", "--transform", "{size: 8}")
OWN = ("--model", "python:mynet:build", "--device", "cpu")


class TestOwnNetworksEverywhere:
    def test_fit_and_predict(self, project, oodscope, tmp_path):  # noqa: F811
        from PIL import Image

        fitted = oodscope(
            "fit", *OWN, "--detector", "mds", "--id-train", "train.npz", "--id-cal", "val.npz", "--target-fpr", "0.2",
            "--transform", "{size: 8}", "--output", "d.oodscope",
        )  # fmt: skip
        assert fitted.status == 0, fitted
        Image.fromarray(np.zeros((10, 10, 3), np.uint8)).save(project / "new.png")
        refused = oodscope("predict", "d.oodscope", "new.png")
        assert "made for a network of your own (python:mynet:build); name it: --model python:" in refused.err
        named = oodscope("predict", "d.oodscope", "new.png", "--model", "python:mynet:build", "--json")
        assert named.status == 0, named
        assert json.loads(named.out)["error"] is None
        other = oodscope("predict", "d.oodscope", "new.png", "--model", "small_cnn")
        assert "--model is for your own" in other.err

    def test_export(self, project, oodscope):  # noqa: F811
        pytest.importorskip("onnxruntime")
        fitted = oodscope(
            "fit", *OWN, "--detector", "ebo", "--id-cal", "val.npz", "--target-fpr", "0.2", "--transform",
            "{size: 8}", "--output", "d.oodscope",
        )  # fmt: skip
        assert fitted.status == 0, fitted
        done = oodscope("export", "d.oodscope", "--onnx", "m.onnx", "--images", "test.npz", "--model", OWN[1])
        assert done.status == 0, done
        assert "differs from torch on images by" in done.out

    def test_attack(self, project, oodscope):  # noqa: F811
        effort = ("--variations", "color", "--budget", "2", "--chains", "4", "--runs", "2", "--detectors", "msp")
        done = oodscope(
            "attack", *OWN, *PLACES, "--id-val", "val.npz", "--far", "odd.npz", *effort, "--trained-on", "id_test",
            "--output", "out", "--json",
        )  # fmt: skip
        assert done.status == 0, done
        assert json.loads(done.out)["run"]["model"] == "python:mynet:build"

    def test_audit_of_own_places(self, project, oodscope):  # noqa: F811
        done = oodscope("data", "audit", *OWN, *PLACES, "--far", "odd.npz", "--output", "audit")
        assert "page: audit" in done.out, done

    @pytest.mark.parametrize("backbone", ["frozen", "full", "finetune"])
    def test_crossval(self, project, oodscope, backbone):  # noqa: F811
        done = oodscope(
            "crossval", *OWN, "--id", "train.npz", "--ood", "odd.npz", "--transform", "{size: 8}", "--folds", "2",
            "--repetitions", "1", "--epochs", "1", "--detectors", "msp", "--no-outlier-exposure",
            "--backbone", backbone, "--output", "out", "--json",
        )  # fmt: skip
        assert done.status == 0, done
        assert json.loads(done.out)["run"]["model"] == "python:mynet:build"

    def test_what_it_was_trained_on_reaches_the_rows(self, project, oodscope):  # noqa: F811
        done = oodscope(
            "evaluate", *OWN, *PLACES, "--far", "odd.npz", "--detectors", "msp", "--trained-on", "id_test",
            "--pretrained-on", "imagenet21k", "--output", "out", "--json",
        )  # fmt: skip
        assert done.status == 0, done
        record = json.loads(done.out)["run"]
        assert record["trained_on"] == ["id_test"] and record["pretrained_on"] == ["imagenet21k"]
        assert record["sets"]["id_test"]["exposure"]


class TestHistory:
    """What a network has seen reaches every kind of model."""

    SEEN = {"trained_on": ["odd"], "pretrained_on": ["clip"]}

    @pytest.mark.parametrize(
        ("spec", "before"),
        [
            ({"architecture": "python:mynet:build"}, ()),
            ({"architecture": "python:mynet:classifier"}, ("elsewhere",)),
            ({"architecture": "python:mynet:features", "probe": {"penalties": [0.1]}}, ("id_train",)),
            (WEIGHTS, ()),
        ],
    )
    def test_it_is_attached(self, project, spec, before):
        bench = oods.own_benchmark(**SETS, transform=oods.Preprocess(size=8))
        declared = ModelSpec.model_validate({**spec, **self.SEEN})
        classifier = build_classifier(declared, ModelData.of(bench), device="cpu").classifier
        assert classifier.trained_on == (*before, "odd")
        assert classifier.pretrained_on == ("clip",)

    def test_a_network_trained_here_has_seen_id_train(self):
        spec = ModelSpec.model_validate({"architecture": "small_cnn", "train": {"epochs": 1}, **self.SEEN})
        built = build_classifier(spec, ModelData.of(benchmark()), device="cpu")
        assert built.classifier.trained_on == ("id_train", "odd")


class TestFilesRebuildTheirNetwork:
    """A fitted file makes its network again, whatever kind it is."""

    def test_a_backbone_with_a_fitted_head(self, project):
        import timm

        weights = {key: value.contiguous() for key, value in timm.create_model("test_resnet").state_dict().items()}
        headless = {key: value for key, value in weights.items() if not key.startswith("fc.")}
        save_file(headless, project / "backbone.safetensors")
        model = {"architecture": "timm:test_resnet", "weights": "backbone.safetensors", "probe": {"penalties": [0.1]}}
        job = {**KINDS[Fit], "model": model}
        for include, given in ((False, {"weights": "backbone.safetensors"}), (True, {})):
            job["fit"] = {"detector": "mds", "target_fpr": 0.2, "include_weights": include}
            (project / "job.yaml").write_text(yaml.safe_dump(job))
            scorer = oods.run("job.yaml").scorer
            loaded = oods.load("mds.oodscope", device="cpu", **given)
            pictures = [np.full((10, 10, 3), 7 * row, np.uint8) for row in range(5)]
            assert [each.score for each in loaded.predict(pictures)] == [
                each.score for each in scorer.predict(pictures)
            ]

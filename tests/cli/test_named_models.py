"""Every form of a model's name is judged end to end, without network: a logit score and a feature detector."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file

from oodscope.base.config import parse
from oodscope.base.errors import ModelError, OodscopeError, UnknownNameError
from oodscope.data.preprocess import Preprocess
from oodscope.detectors.registry import create_detector
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier
from oodscope.models.zoo import dinov2
from oodscope.runs.evaluation.evaluate import evaluate
from oodscope.runs.evaluation.extraction import FromNetwork
from oodscope.runs.evaluation.scoring import applicable
from tests.tiny import benchmark, imageset, noise
from tests.tiny_libraries import clip_architecture, clip_weights, hf_folder


@pytest.fixture
def bench():
    return benchmark(
        id_train=imageset("id_train", 40, 1),
        id_val=imageset("id_val", 20, 2),
        id_test=imageset("id_test", 24, 3),
        near=(noise("static", 16, 4),),
        far=(),
        csid=(),
        ood_val=None,
    )


def contiguous(model):
    return {name: tensor.contiguous() for name, tensor in model.state_dict().items()}


def made(bench, **spec):
    return build_classifier(parse(ModelSpec, spec, "test"), ModelData.of(bench), device="cpu")


def judged(bench, *extra, **spec):
    """The result of a model's spec; what it says of its classifier comes with it."""
    classifier, recipe, _ = made(bench, **spec)
    detectors = ["msp", "maxcosine", *extra]
    result = evaluate(classifier, bench, detectors, recipe=recipe)
    assert {row.detector for row in result.measurements.filter(metric="auroc")} == set(detectors)
    assert all(np.isfinite(row.value) for row in result.measurements)
    return result, result.record.head


@pytest.mark.parametrize(
    ("spec", "build"),
    [
        ("timm:test_resnet", lambda: timm.create_model("test_resnet", num_classes=4)),
        ("torchvision:shufflenet_v2_x0_5", lambda: torchvision.models.shufflenet_v2_x0_5(num_classes=4)),
    ],
)
def test_a_checkpoint_and_an_architecture(bench, tmp_path, spec, build):
    torch.manual_seed(0)
    save_file(contiguous(build()), tmp_path / "net.safetensors")
    result, text = judged(bench, architecture=spec, weights=str(tmp_path / "net.safetensors"))
    assert result.record.model == spec
    assert "proved: features · Wᵀ + b" in text


def test_hugging_face(bench, tmp_path):
    pytest.importorskip("transformers")
    hf_folder(tmp_path / "vit")
    spec = ModelSpec(architecture="hf:vit", weights="pretrained").found_from(tmp_path)
    result, text = judged(bench, **spec.model_dump())
    assert result.record.model == "hf:vit", "a record is for others, who have other folders"
    assert "head: classifier, 16 features; proved" in text
    assert "ProcessorTransform(ViTImageProcessor" in text
    assert "not shared between runs" not in text


def test_open_clip(bench, tmp_path):
    pytest.importorskip("open_clip")
    weights = clip_weights(tmp_path)
    (tmp_path / "words.txt").write_text("\n".join(["class 1", *(f"word {n}" for n in range(30))]))
    spec = ModelSpec(
        architecture=f"open_clip:{clip_architecture(tmp_path)}",
        weights="clip.safetensors",
        text_head={"negatives": "words.txt", "negative_count": 12},
    ).found_from(tmp_path)
    assert spec.weights == [str(weights)]
    words = ("mcm", "neglabel", "gl_mcm", "negrefine", "logitgap", "mls")
    result, text = judged(bench, *words, **spec.model_dump())
    assert "head: text, 16 features; proved" in text
    assert "words: 4 class names in sentences (oodscope-8), 12 negative labels" in text
    assert "not shared between runs" not in text
    assert result.record.forward_images == 24 + 16, "negative labels cost no pass of their own"
    plain = made(bench, architecture=spec.architecture, weights=spec.weights)[0]
    assert "no negative labels" in plain.describe()
    with pytest.raises(OodscopeError, match="neglabel: needs negative labels"):
        evaluate(plain, bench, ["neglabel"])
    _, refused = applicable([create_detector("neglabel")], FromNetwork(plain), bench)
    assert "needs negative labels" in refused["neglabel"]


@pytest.fixture
def small_dinov2(monkeypatch):
    """A vision transformer of timm that takes a blink, under the name of a real one."""
    monkeypatch.setattr(dinov2, "SIZE", 32)
    monkeypatch.setitem(dinov2.BACKBONES, "vits14", "test_vit2")
    monkeypatch.setattr("oodscope.models.zoo.backbones.TRANSFORM", Preprocess(size=32))
    torch.manual_seed(0)
    return timm.create_model("test_vit2", num_classes=0, img_size=32)


@pytest.mark.slow
def test_dinov2_with_a_probe_and_with_a_head_of_its_own(bench, tmp_path, small_dinov2):
    save_file(contiguous(small_dinov2), tmp_path / "backbone.safetensors")
    spec = {"architecture": "dinov2:vits14", "weights": str(tmp_path / "backbone.safetensors")}
    result, text = judged(bench, **spec, probe={"penalties": [0.1, 0.001]})
    assert "head: given, 128 features" in text
    assert {row.recipe for row in result.measurements} <= {
        "linear probe (penalty 0.1)",
        "linear probe (penalty 0.001)",
    }
    (accuracy,) = result.measurements.filter(metric="accuracy")
    assert accuracy.value > 0.5, "even random features of these pictures tell four classes apart"
    for width in (2 * 64, 5 * 64):
        save_file(
            {"linear.weight": torch.randn(4, width), "linear.bias": torch.zeros(4)}, tmp_path / "head.safetensors"
        )
        _, text = judged(bench, **spec, head=str(tmp_path / "head.safetensors"))
        assert f"head: given, {width} features" in text
    save_file({"weight": torch.randn(4, 100)}, tmp_path / "head.safetensors")
    with pytest.raises(ModelError, match="a head over 100 features does not fit: they come in multiples of 64"):
        made(bench, **spec, head=str(tmp_path / "head.safetensors"))
    with pytest.raises(ModelError, match=r"ends in features: give it a linear head \(head: FILE\) or fit one"):
        made(bench, **spec)
    with pytest.raises(UnknownNameError, match="unknown DINOv2 model 'vits16'. Did you mean 'vits14'"):
        made(bench, architecture="dinov2:vits16", weights="pretrained", probe={})


@pytest.mark.slow
def test_a_probe_on_timm_and_on_clip(bench, tmp_path):
    pytest.importorskip("open_clip")
    torch.manual_seed(0)
    save_file(contiguous(timm.create_model("test_resnet", num_classes=0)), tmp_path / "net.safetensors")
    blind = replace(bench, id_val=None)
    result, _ = judged(blind, architecture="timm:test_resnet", weights=str(tmp_path / "net.safetensors"), probe={})
    assert result.measurements[0].recipe.startswith("linear probe (penalty ")
    weights = clip_weights(tmp_path)
    name = f"open_clip:{clip_architecture(tmp_path)}"
    _, text = judged(bench, architecture=name, weights=str(weights), probe={})
    assert "head: given, 16 features" in text


MODULE = """
import torch
from torch import nn
from oodscope import Classifier, Preprocess

def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4))

def classifier():
    return Classifier(network(), Preprocess(size=12), device="cpu", name="mine")

def number():
    return 7
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "my_networks.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("my_networks", None)


def test_a_python_function(bench, own_module):
    before = list(sys.path)
    result, text = judged(bench, architecture="python:my_networks:network")
    assert result.record.model == "python:my_networks:network"
    assert "head: 4, 6 features; proved" in text
    result, text = judged(bench, architecture="python:my_networks:classifier")
    assert result.record.model == "mine"
    assert "size=12" in text
    assert sys.path == before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"architecture": "python:my_networks"}, "write python:MODULE:FUNCTION"),
        ({"architecture": "python:my_netwroks:network"}, "cannot import 'my_netwroks'"),
        ({"architecture": "python:my_networks:netwrok"}, "no function 'netwrok'. Did you mean 'network'"),
        (
            {"architecture": "python:my_networks:number"},
            "the function returned a int; it must return a torch.nn.Module",
        ),
        ({"architecture": "python:my_networks:network", "weights": "x.pt"}, "brings its own; leave out weights"),
        ({"architecture": "timm:test_vit", "weights": "pretrained", "text_head": {}}, "text_head is for networks"),
        ({"architecture": "timm:test_vit", "weights": "pretrained", "probe": {}, "head": "h"}, "not both"),
        ({"architecture": "timm:test_vit", "weights": ["a", "b"], "probe": {}}, "belong to one network"),
        ({"architecture": "hf:some", "weights": "pretrained", "text_heat": {}}, "Did you mean 'text_head'"),
        ({"architecture": "small_cnn", "weights": "a.pt", "probe": {}}, "small_cnn has a head of its own"),
        (
            {"architecture": "open_clip:RN50", "weights": "a", "text_head": {"templates": ["no"]}},
            "sentence with one {}",
        ),
    ],
)
def test_mistakes_are_one_line(bench, own_module, spec, message):
    with pytest.raises(OodscopeError) as caught:
        made(bench, **spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_from_the_command_line(oodscope, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("test", "far"):
        np.savez(
            tmp_path / f"{name}.npz",
            images=rng.integers(0, 256, size=(12, 12, 12, 3)).astype(np.uint8),
            labels=np.arange(12) % 4,
        )
    (tmp_path / "my_networks.py").write_text(MODULE)
    (tmp_path / "bench.yaml").write_text(
        "name: b\nversion: '1'\nsets:\n  id_test: {source: npz, path: test.npz}\n"
        "  far: {far: {source: npz, path: far.npz}}\n"
    )
    arguments = ("evaluate", "--benchmark", "bench.yaml", "--detectors", "msp,maxcosine", "--json", "--output", "out")
    outcome = oodscope(*arguments, "--model", "python:my_networks:classifier")
    sys.modules.pop("my_networks", None)
    assert outcome.status == 0, outcome
    assert '"model": "mine"' in outcome.out
    stopped = oodscope(*arguments, "--model", "timm:test_vit")
    assert "needs weights: pass --weights FILE" in stopped.err
    stopped = oodscope(*arguments, "--model", "timm:test_vit", "--weights", "gone.pt", "--negatives", "wordnet")
    assert "text_head is for networks that classify by words" in stopped.err


def test_the_ensemble_of_one_more_kind(bench, tmp_path):
    for seed in (0, 1):
        torch.manual_seed(seed)
        save_file(contiguous(timm.create_model("test_resnet", num_classes=4)), tmp_path / f"{seed}.safetensors")
    files = [str(tmp_path / f"{seed}.safetensors") for seed in (0, 1)]
    classifier = made(bench, architecture="timm:test_resnet", weights=files).classifier
    result = evaluate(classifier, bench, ["msp", "ensemble_entropy"])
    assert result.record.model == "2 x timm:test_resnet"

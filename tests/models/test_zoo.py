"""The zoo makes networks from names, and loads weights without running what a file contains."""

import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.small import SMALL_NETS
from oodscope.models.small.cnn import small_cnn
from oodscope.models.zoo.zoo import MODELS, create_model

torch.set_num_threads(1)


class Bomb:
    """Unpickling this creates a file: the harmless sign that foreign code ran."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


def contiguous(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.contiguous() for name, tensor in model.state_dict().items()}


def saved(model: nn.Module, path: Path) -> Path:
    save_file(contiguous(model), path)
    return path


def same_weights(a: nn.Module, b: nn.Module) -> bool:
    mine, yours = a.state_dict(), b.state_dict()
    return mine.keys() == yours.keys() and all(torch.equal(mine[name], yours[name]) for name in mine)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_small_network_is_made_runs_and_has_a_head(name: str) -> None:
    model, transform = create_model(name, num_classes=7)
    assert transform is None
    classifier = Classifier(model, Preprocess(size=MODELS[name].input_size), device="cpu")
    assert classifier.num_classes == 7
    assert classifier.head is not None, classifier.head_reason
    assert MODELS[name].summary


def test_the_catalogue_lists_every_small_network_where_it_is() -> None:
    assert list(MODELS) == list(SMALL_NETS)
    for name, info in MODELS.items():
        module, _, attribute = info.target.partition(":")
        assert getattr(import_module(module), attribute) is SMALL_NETS[name]


@pytest.mark.slow
def test_importing_the_station_imports_no_library_of_networks() -> None:
    libraries = ("timm", "torchvision", "transformers", "open_clip")
    check = f"import sys, oodscope.models; sys.exit(any(n in sys.modules for n in {libraries}))"
    assert subprocess.run([sys.executable, "-c", check], env={**os.environ, "PYTHONPATH": "src"}).returncode == 0


@pytest.mark.parametrize(
    ("spec", "suggestion"),
    [
        ("smal_cnn", "'small_cnn'"),
        ("timm:resnet18x", "'resnet18'"),
        ("torchvision:resnet19", "'resnet18'"),
        ("keras:resnet18", "'timm:resnet18'"),
    ],
)
def test_unknown_names_suggest_the_nearest(spec: str, suggestion: str) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown .*model") as caught:
        create_model(spec)
    assert suggestion in str(caught.value)


def test_untrained_library_networks() -> None:
    assert create_model("timm:test_resnet", num_classes=4).model.num_classes == 4
    assert create_model("torchvision:squeezenet1_1", num_classes=4).model.num_classes == 4
    assert create_model("timm:test_resnet").transform is None
    with pytest.raises(ModelError, match="pass num_classes"):
        create_model("small_cnn")


# weights from a file -----------------------------------------------------------------------------------


def test_classes_and_channels_are_read_from_the_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(0)
    for model, spec in [
        (small_cnn(num_classes=3, channels=1), "small_cnn"),
        (timm.create_model("test_vit", num_classes=6), "timm:test_vit"),
        # safetensors sorts names: the last matrix of this file is in `stages`, not in `head`
        (timm.create_model("test_convnext", num_classes=5), "timm:test_convnext"),
    ]:
        made = create_model(spec, weights=saved(model, tmp_path / "w.safetensors"))
        assert same_weights(made.model, model)
        assert made.transform is None, "only its maker knows the transform of a file"


def test_half_precision_storage_becomes_float32(tmp_path: Path) -> None:
    model, _ = create_model("small_cnn", num_classes=3)
    path = saved(model.half(), tmp_path / "half.safetensors")
    loaded, _ = create_model("small_cnn", weights=path)
    assert loaded.fc.weight.dtype is torch.float32
    assert torch.equal(loaded.fc.weight, model.fc.weight.float())


@pytest.mark.parametrize("wrap", ["plain", "state_dict", "model", "module."])
def test_torch_files_and_their_usual_wrappings(tmp_path: Path, wrap: str) -> None:
    model, _ = create_model("small_cnn", num_classes=3)
    state: dict[str, Any] = dict(model.state_dict())
    if wrap == "module.":
        state = {f"module.{name}": tensor for name, tensor in state.items()}
    torch.save(state if wrap in ("plain", "module.") else {"epoch": 3, wrap: state}, tmp_path / "w.pth")
    assert same_weights(create_model("small_cnn", weights=tmp_path / "w.pth").model, model)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".safetensors"])
def test_a_file_that_needs_pickle_is_refused_and_not_run(tmp_path: Path, suffix: str) -> None:
    path, sign = tmp_path / f"w{suffix}", tmp_path / "ran"
    for write in (torch.save, lambda content, target: target.write_bytes(pickle.dumps(content))):
        write({"fc.weight": Bomb(sign)}, path)
        with pytest.raises(ModelError, match=r"can run any code|not a readable safetensors") as caught:
            create_model("small_cnn", num_classes=3, weights=path)
        assert "\n" not in str(caught.value)
        assert not sign.exists()
    torch.save(create_model("small_cnn", num_classes=3).model, tmp_path / "whole.pt")
    with pytest.raises(ModelError, match="Save the weights alone"):
        create_model("small_cnn", weights=tmp_path / "whole.pt")


def test_a_checkpoint_that_does_not_fit_names_the_first_keys(tmp_path: Path) -> None:
    state = contiguous(small_cnn(num_classes=3))
    state["extra"] = torch.ones(1)
    del state["body.0.0.weight"]
    save_file(state, tmp_path / "w.safetensors")
    with pytest.raises(ModelError, match=r"missing body\.0\.0\.weight; unexpected extra") as caught:
        create_model("small_cnn", weights=tmp_path / "w.safetensors")
    assert "\n" not in str(caught.value)
    path = saved(small_cnn(num_classes=3), tmp_path / "w.safetensors")
    with pytest.raises(ModelError, match=r"mis-shaped fc\.weight is \[3, 128\], needed \[4, 128\]"):
        create_model("small_cnn", num_classes=4, weights=path)
    with pytest.raises(ModelError, match=r"does not fit ResNet: .*missing .* and \d+ more; unexpected"):
        create_model("timm:test_resnet", weights=path)


def test_files_that_are_no_weights(tmp_path: Path) -> None:
    cases = {
        "gone.pt": "no such file",
        "w.bin": "must be a .safetensors, .pt, .pth, .ckpt or .pth.tar",
        "cut.pt": "not a readable",
    }
    (tmp_path / "w.bin").touch()
    (tmp_path / "cut.pt").write_bytes(b"PK\x03\x04 broken")
    for name, message in cases.items():
        with pytest.raises(ModelError, match=message):
            create_model("small_cnn", num_classes=3, weights=tmp_path / name)
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    with pytest.raises(ModelError, match="not a state dict"):
        create_model("small_cnn", num_classes=3, weights=tmp_path / "list.pt")


# published weights -------------------------------------------------------------------------------------


def test_pretrained_torchvision_brings_its_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    published = torchvision.models.squeezenet1_1().state_dict()
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", lambda *_, **__: published)
    model, transform = create_model("torchvision:squeezenet1_1", weights="pretrained")
    assert torch.equal(model.state_dict()["classifier.1.weight"], published["classifier.1.weight"])
    classifier = Classifier(model, transform, device="cpu")
    assert classifier.prepare([torch.zeros(300, 400, 3, dtype=torch.uint8).numpy()]).shape == (1, 3, 224, 224)
    assert classifier.uncached_reason == ""
    with pytest.raises(ModelError, match="have 1000 classes, not 10"):
        create_model("torchvision:squeezenet1_1", num_classes=10, weights="pretrained")


def test_pretrained_timm_brings_its_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    published = timm.create_model("test_resnet").state_dict()
    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", lambda *_, **__: dict(published))
    model, transform = create_model("timm:test_resnet", weights="pretrained")
    assert torch.equal(model.state_dict()["fc.weight"], published["fc.weight"])
    classifier = Classifier(model, transform, device="cpu")
    assert classifier.prepare([torch.zeros(300, 400, 3, dtype=torch.uint8).numpy()]).shape == (1, 3, 160, 160)
    with pytest.raises(ModelError, match="have 1000 classes, not 10"):
        create_model("timm:test_resnet", num_classes=10, weights="pretrained")


@pytest.mark.parametrize(
    ("spec", "loader"),
    [
        ("torchvision:squeezenet1_1", "torchvision.models._api.load_state_dict_from_url"),
        ("timm:test_resnet", "timm.models._builder.load_state_dict_from_hf"),
    ],
)
def test_no_network_is_one_line_that_says_what_to_do(spec: str, loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise ConnectionError("Name or service not known\nand a long tale")

    monkeypatch.setattr(loader, offline)
    with pytest.raises(
        ModelError, match=r"could not be downloaded \(Name or service not known\).*weights=PATH"
    ) as caught:
        create_model(spec, weights="pretrained")
    assert "\n" not in str(caught.value)
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ


def test_published_weights_are_not_unpickled_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    url = torchvision.models.SqueezeNet1_1_Weights.DEFAULT.url
    poisoned = tmp_path / "hub" / "checkpoints" / Path(url).name
    poisoned.parent.mkdir(parents=True)
    torch.save({"classifier.1.weight": Bomb(tmp_path / "ran")}, poisoned)
    with pytest.raises(ModelError, match="could not be downloaded"):
        create_model("torchvision:squeezenet1_1", weights="pretrained")
    assert not (tmp_path / "ran").exists()


def test_our_own_networks_have_no_published_weights() -> None:
    with pytest.raises(ModelError, match="no published weights"):
        create_model("small_cnn", weights="pretrained")


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_file_with_the_names_of_openood_gives_the_same_logits(tmp_path: Path, wrapped: bool) -> None:
    torch.manual_seed(0)
    model, _ = create_model("resnet18_32", num_classes=10)
    images = torch.rand(2, 3, 32, 32)
    state = {name.replace(".downsample.", ".shortcut."): tensor for name, tensor in model.state_dict().items()}
    assert sum(".shortcut." in name for name in state) == 18
    torch.save({"state_dict": state} if wrapped else state, tmp_path / "best.ckpt")
    loaded, _ = create_model("resnet18_32", weights=tmp_path / "best.ckpt")
    with torch.no_grad():
        assert loaded.eval()(images).equal(model.eval()(images))


def _parallel(state: dict[str, torch.Tensor], before: str = "module.") -> dict[str, torch.Tensor]:
    return {f"{before}{name}": tensor for name, tensor in state.items()}


RELEASED = {
    "stylised.pth.tar": lambda s: {"epoch": 60, "arch": "resnet50", "best_prec1": 60.2, "state_dict": _parallel(s)},
    "noise.pth": lambda s: {"model_state_dict": s, "optimizer_state_dict": {"lr": 0.1}},
    "l2.ckpt": lambda s: {
        "epoch": 89,
        "model": {
            "module.normalizer.new_mean": torch.zeros(3, 1, 1),
            **_parallel(s, "module.model."),
            **_parallel(s, "module.attacker.model."),
        },
    },
}
"""What files of retrained networks wrap around the weights: stylised images, additive noise, adversarial training."""


@pytest.mark.parametrize("file", RELEASED)
def test_files_of_retrained_networks_give_the_same_logits(tmp_path: Path, file: str) -> None:
    torch.manual_seed(0)
    model, _ = create_model("small_cnn", num_classes=4)
    torch.save(RELEASED[file](model.state_dict()), tmp_path / file)
    loaded, _ = create_model("small_cnn", weights=tmp_path / file)
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert loaded.eval()(images).equal(model.eval()(images))


def test_a_shortcut_that_belongs_nowhere_is_named(tmp_path: Path) -> None:
    model, _ = create_model("resnet18_32", num_classes=10)
    state = {name.replace(".downsample.", ".shortcut."): tensor for name, tensor in model.state_dict().items()}
    state["layer1.0.shortcut.0.weight"] = torch.zeros(1)
    torch.save(state, tmp_path / "best.ckpt")
    with pytest.raises(ModelError, match=r"unexpected layer1\.0\.shortcut\.0\.weight"):
        create_model("resnet18_32", weights=tmp_path / "best.ckpt")

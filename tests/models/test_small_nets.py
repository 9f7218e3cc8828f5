"""Small networks: shapes, the linear head every detector leans on, and keys that real checkpoints fit."""

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError
from oodscope.models.small import SMALL_NETS
from oodscope.models.small.densenet import DenseNet
from oodscope.models.small.resnet import resnet18_32
from oodscope.models.small.wrn import WideResNet

LARGER = ("plain_cnn_32", "vgg16_32", "resnet34_32", "wrn_28_10", "wrn_40_2", "densenet_100_12", "vit_small_32")
"""Of a family one is tried in all, the others in size and as a model of the zoo."""
QUICK = tuple(name for name in SMALL_NETS if name not in LARGER)
NON_NEGATIVE = ("small_cnn", "lenet", "wrn_10_1", "resnet18_32", "vgg11_32", "densenet_40_24", "wrn_16_4")
MILLIONS = {
    "small_cnn": 0.099, "resnet18_32": 11.17, "vgg11_32": 9.23, "densenet_40_24": 0.69, "wrn_16_4": 2.75,
    "wrn_28_10": 36.5, "vit_tiny_32": 5.35, "vgg16_32": 14.72, "resnet34_32": 21.28, "wrn_40_2": 2.25,
    "densenet_100_12": 0.77, "vit_small_32": 21.3, "plain_cnn_32": 17.18, "lenet": 0.062, "wrn_10_1": 0.078,
}  # fmt: skip


def built(name: str, **options: int) -> nn.Module:
    torch.manual_seed(0)
    return SMALL_NETS[name](**options).eval()


def features_and_logits(model: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
    """What goes into the last layer, caught by a hook, and what comes out."""
    caught: list[Tensor] = []
    assert isinstance(model.fc, nn.Linear)
    hook = model.fc.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
    with torch.no_grad():
        logits = model(images)
    hook.remove()
    return caught[0], logits


@pytest.mark.slow
@pytest.mark.parametrize("side", [28, 32])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", QUICK)
def test_reads_both_sizes_and_both_kinds_of_colour(name: str, channels: int, side: int) -> None:
    model = built(name, num_classes=7, channels=channels)
    with torch.no_grad():
        assert model(torch.rand(2, channels, side, side)).shape == (2, 7)


@pytest.mark.parametrize("name", QUICK)
def test_head_is_linear_in_the_features(name: str) -> None:
    model = built(name, num_classes=7)
    features, logits = features_and_logits(model, torch.randn(3, 3, 32, 32))
    assert features.ndim == 2
    assert torch.allclose(features @ model.fc.weight.T + model.fc.bias, logits, atol=1e-5)
    assert [m for m in model.modules() if isinstance(m, nn.Linear)][-1] is model.fc


@pytest.mark.slow
@pytest.mark.parametrize("name", NON_NEGATIVE)
def test_features_are_non_negative_where_claimed(name: str) -> None:
    features, _ = features_and_logits(built(name), torch.randn(4, 3, 32, 32))
    assert features.min() >= 0
    assert features.max() > 0


def test_transformer_features_are_signed() -> None:
    features, _ = features_and_logits(built("vit_tiny_32"), torch.randn(4, 3, 32, 32))
    assert features.min() < 0 < features.max()


def test_transformer_knows_where_a_patch_lies() -> None:
    model = built("vit_tiny_32")
    images = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        assert not torch.allclose(model(images), model(images.roll(8, dims=-1)), atol=1e-4)


def test_transformer_layers_start_out_different() -> None:
    weights = [layer.linear1.weight for layer in built("vit_tiny_32").encoder.layers]
    assert not torch.equal(weights[0], weights[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_NETS)
def test_size_is_the_documented_one(name: str) -> None:
    parameters = sum(parameter.numel() for parameter in SMALL_NETS[name]().parameters())
    assert parameters / 1e6 == pytest.approx(MILLIONS[name], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_gradients_reach_every_parameter(name: str) -> None:
    model = SMALL_NETS[name](num_classes=5)
    model(torch.randn(4, 3, 32, 32)).logsumexp(dim=1).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_small_cnn_does_not_care_about_memory_layout() -> None:
    model, images = built("small_cnn"), torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        plain = model(images)
        assert torch.allclose(plain, model(images.contiguous(memory_format=torch.channels_last)), atol=1e-5)
        model.to(memory_format=torch.contiguous_format)
        assert torch.allclose(plain, model(images), atol=1e-5)


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ModelError, match="depth is 20"):
        WideResNet(20, 2)
    with pytest.raises(ModelError, match="depth is 12"):
        DenseNet(12, 4)
    with pytest.raises(ModelError, match="30x30"):
        built("vit_tiny_32")(torch.rand(1, 3, 30, 30))


def test_resnet_keeps_the_keys_of_torchvision() -> None:
    from torchvision.models import resnet18

    theirs = resnet18(num_classes=10).state_dict()
    ours = resnet18_32(num_classes=10).state_dict()
    assert list(ours) == list(theirs)
    assert [k for k in ours if ours[k].shape != theirs[k].shape] == ["conv1.weight"]


@pytest.mark.realdata
@pytest.mark.skipif("OODSCOPE_DATA" not in os.environ, reason="OODSCOPE_DATA does not name the image packs")
@pytest.mark.parametrize("classes", [10, 100])
def test_real_checkpoints_load_strictly(classes: int) -> None:
    from safetensors.torch import load_file

    path = Path(os.environ["OODSCOPE_DATA"]).parent / "models" / f"cifar{classes}_resnet18_s0.safetensors"
    if not path.is_file():
        pytest.skip(f"no checkpoint {path.name} beside the image packs")
    resnet18_32(num_classes=classes).load_state_dict(load_file(path), strict=True)

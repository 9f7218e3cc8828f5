"""The zoo: a name becomes a network, with weights and the transform that belongs to them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.models.checkpoint import Weights, head_classes, load_weights, read_checkpoint
from oodscope.models.libraries import build_timm, build_torchvision, library_names


@dataclass(frozen=True)
class ModelInfo:
    """What a catalogue says of one of our own small networks."""

    summary: str
    input_size: int
    target: str


def _small(name: str, summary: str) -> tuple[str, ModelInfo]:
    return name, ModelInfo(summary, 32, f"oodscope.models.small:{name}")


MODELS: dict[str, ModelInfo] = dict(
    [
        _small("small_cnn", "four convolutions and a linear head; trains in seconds on a laptop"),
        _small("resnet18_32", "ResNet-18 with a 3x3 stem, the usual network of the CIFAR benchmarks"),
        _small("wrn_16_4", "Wide ResNet 16-4: small and strong"),
        _small("wrn_28_10", "Wide ResNet 28-10, the large network of the CIFAR literature"),
        _small("vit_tiny_32", "a small vision transformer; its features are signed"),
    ]
)


class ZooModel(NamedTuple):
    """A network and, if its weights brought one, the transform it was trained with."""

    model: nn.Module
    transform: Callable[..., Tensor] | None


def create_model(spec: str, *, num_classes: int | None = None, weights: str | Path | Weights | None = None) -> ZooModel:
    """Make the network that ``spec`` names.

    Parameters
    ----------
    spec : one of ``MODELS``, ``timm:NAME`` or ``torchvision:NAME``.
    num_classes : by default what the weights have; without weights, what the library's default is.
    weights : ``"pretrained"`` for the published ones of timm and torchvision, with their transform; or the
        path of a ``.safetensors``, ``.pt`` or ``.pth`` file, or a state dict, whose transform only its maker knows.
        ``None`` leaves the network untrained.
    """
    library, _, name = spec.rpartition(":")
    build = {"timm": build_timm, "torchvision": build_torchvision}.get(library)
    if build is None and spec not in MODELS:
        known = [*MODELS, *library_names()]
        raise UnknownNameError("model", spec, known, "Also: timm:NAME, torchvision:NAME")
    if weights == "pretrained":
        if build is None:
            raise ModelError(f"{spec}: there are no published weights; train it, or pass weights=PATH")
        return ZooModel(*build(name, num_classes, pretrained=True))
    state = weights if weights is None or isinstance(weights, dict) else read_checkpoint(weights)

    def make(classes: int | None) -> nn.Module:
        return _make_small(spec, classes, state) if build is None else build(name, classes)[0]

    model = make(num_classes)
    if state is not None:
        found = head_classes(model, state) if num_classes is None else None
        if found is not None and found != head_classes(model, model.state_dict()):
            model = make(found)
        load_weights(model, state, "the state dict" if isinstance(weights, dict) else str(weights))
    return ZooModel(model, None)


def _make_small(name: str, num_classes: int | None, state: Weights | None) -> nn.Module:
    """One of our own networks, for as many input channels as the checkpoint's first filters have."""
    if num_classes is None and state is None:
        raise ModelError(f"{name}: say num_classes=..., or pass weights, which tell it")
    from oodscope.models.small import SMALL_NETS  # here, because it brings torchvision along

    builder = SMALL_NETS[name]
    model = builder(num_classes or 10)
    first = next(key for key, tensor in model.state_dict().items() if tensor.ndim == 4)
    filters = (state or {}).get(first)
    return model if filters is None else builder(num_classes or 10, channels=filters.shape[1])

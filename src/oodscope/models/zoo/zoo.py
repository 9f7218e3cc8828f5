"""The zoo: a name becomes a network, with weights and the transform that belongs to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.base.registry import Collection
from oodscope.models.classifier.checkpoint import Weights, head_classes, load_weights, read_checkpoint
from oodscope.models.zoo.huggingface import build_hf
from oodscope.models.zoo.libraries import Built, build_timm, build_torchvision, library_names
from oodscope.models.zoo.openclip import open_towers
from oodscope.models.zoo.zero_shot import TextHead, imagenet_names, zero_shot


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
        _small("lenet", "LeNet-5 with ReLU: the first network of digits; seconds an epoch on a laptop"),
        _small("plain_cnn_32", "five convolutions and two linear layers, nothing normalised: bounds can be proven"),
        _small("resnet18_32", "ResNet-18 with a 3x3 stem, the usual network of the CIFAR benchmarks"),
        _small("resnet34_32", "ResNet-34 with the small stem"),
        _small("vgg11_32", "VGG-11 with batch norm: plain convolutions, nothing skipped"),
        _small("vgg16_32", "VGG-16 with batch norm"),
        _small("densenet_40_24", "DenseNet-BC 40 of growth 24: every layer reads all before it"),
        _small("densenet_100_12", "DenseNet-BC-100 with growth 12"),
        _small("wrn_10_1", "WRN-10-1: three thin residual blocks, for grey digits"),
        _small("wrn_16_4", "Wide ResNet 16-4: small and strong"),
        _small("wrn_28_10", "Wide ResNet 28-10, the large network of the CIFAR literature"),
        _small("wrn_40_2", "WRN-40-2, the network of Outlier Exposure"),
        _small("vit_tiny_32", "a small vision transformer; its features are signed"),
        _small("vit_small_32", "ViT-Small with patches of 4 px"),
    ]
)


class Builder(Protocol):
    """How a library makes a network: the module, and the transform of its published weights, if it has them.

    An installed package provides one through the entry point group ``oodscope.models``: under the name ``mylib``, its
    networks are ``mylib:NAME``.
    """

    def __call__(self, name: str, num_classes: int | None, *, pretrained: bool = False) -> Built: ...


LIBRARIES: Collection[Builder] = Collection(
    "model library",
    "models",
    {"timm": build_timm, "torchvision": build_torchvision, "hf": build_hf},
    check=callable,
    expected="a function of (name, num_classes, *, pretrained)",
)
"""The libraries that a network's name may begin with."""

_ALSO = "Also: timm:NAME, torchvision:NAME, hf:NAME, open_clip:NAME/TAG, dinov2:NAME, python:MODULE:FUNCTION"


class ZooModel(NamedTuple):
    """A network and, if its weights brought one, the transform it was trained with."""

    model: nn.Module
    transform: Callable[..., Tensor] | None


def create_model(
    spec: str,
    *,
    num_classes: int | None = None,
    weights: str | Path | Weights | None = None,
    class_names: Sequence[str] | None = None,
    text_head: TextHead | None = None,
    device: str = "auto",
) -> ZooModel:
    """Make the network that ``spec`` names.

    Parameters
    ----------
    spec : one of ``MODELS``, ``timm:NAME``, ``torchvision:NAME``, ``hf:NAME`` (a name on the hub, or a folder),
        ``open_clip:NAME/TAG``, or ``LIBRARY:NAME`` of an installed package. Networks that end in features
        (``dinov2:NAME``) come from ``create_backbone``.
    num_classes : by default what the weights have; without weights, what the library's default is.
    weights : ``"pretrained"`` for the published ones, with their transform; or the path of a ``.safetensors``,
        ``.pt`` or ``.pth`` file, or a state dict, whose transform only its maker knows. ``None`` leaves the network
        untrained.
    class_names, text_head : for networks that classify by words (``open_clip``): the classes, and how sentences
        and negative labels are made for them.
    device : where those sentences are embedded.

    Examples
    --------
    >>> made, transform = oods.create_model("small_cnn", num_classes=4)
    """
    library, _, name = spec.partition(":")
    if library == "open_clip":
        return _zero_shot(name, weights, class_names or (), text_head or TextHead(), device)
    if library == "dinov2":
        raise ModelError(f"{spec} ends in features: give it a linear head (head: FILE) or fit one (probe: {{}})")
    check_architecture(spec)
    build = LIBRARIES[library] if library in LIBRARIES else None
    if weights == "pretrained":
        if build is None:
            raise ModelError(f"{spec}: there are no published weights; train it, or pass weights=PATH")
        return ZooModel(*build(name, num_classes, pretrained=True))
    state = weights if weights is None or isinstance(weights, dict) else read_checkpoint(weights)
    transform: Callable[..., Tensor] | None = None

    def make(classes: int | None) -> nn.Module:
        nonlocal transform
        if build is None:
            return _make_small(spec, classes, state)
        model, transform = build(name, classes)
        return model

    model = make(num_classes)
    if state is not None:
        found = head_classes(model, state) if num_classes is None else None
        if found is not None and found != head_classes(model, model.state_dict()):
            model = make(found)
        load_weights(model, state, "the state dict" if isinstance(weights, dict) else str(weights))
    return ZooModel(model, transform)


def check_architecture(spec: str) -> None:
    """Refuse a name that neither is one of ours nor begins with a library; the library's own names are not checked."""
    library, _, name = spec.partition(":")
    if library in LIBRARIES or library in ("open_clip", "dinov2") or spec in MODELS:
        return
    others = LIBRARIES.others()
    known = [*MODELS, *library_names(), *(f"{each}:{name}" for each in others)]
    raise UnknownNameError("model", spec, known, _ALSO + "".join(f", {each}:NAME" for each in others))


def _zero_shot(
    name: str,
    weights: str | Path | Weights | None,
    class_names: Sequence[str],
    text_head: TextHead,
    device: str,
) -> ZooModel:
    if text_head.class_names is not None:
        named = imagenet_names()
        if class_names and len(class_names) != len(named):
            raise ModelError(
                f"open_clip:{name}: class_names: imagenet names {len(named)} classes, not the {len(class_names)} here"
            )
        class_names = named
    if len(class_names) < 2:
        raise ModelError(f"open_clip:{name} classifies by words: say class_names=[...], two or more")
    if isinstance(weights, dict):
        raise ModelError(f"open_clip:{name} is made from its published weights or a file, not from a state dict")
    towers = open_towers(name, weights)
    model = zero_shot(
        towers.image,
        lambda sentences: towers.embed(sentences, device),
        class_names,
        text_head,
        scale=towers.scale,
        bias=towers.bias,
    )
    return ZooModel(model, towers.transform)


def _make_small(name: str, num_classes: int | None, state: Weights | None) -> nn.Module:
    """One of our own networks, for as many input channels as the checkpoint's first filters have."""
    if num_classes is None and state is None:
        raise ModelError(f"{name}: pass num_classes=..., or weights, which say it")
    from oodscope.models.small import SMALL_NETS  # here, because it brings torchvision along

    builder = SMALL_NETS[name]
    model = builder(num_classes or 10)
    first = next(key for key, tensor in model.state_dict().items() if tensor.ndim == 4)
    filters = (state or {}).get(first)
    return model if filters is None else builder(num_classes or 10, channels=filters.shape[1])

"""Backbones: networks that end in features, to which a head is given or fitted."""

from pathlib import Path

from oodscope.base.errors import ModelError
from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint
from oodscope.models.classifier.head import Head
from oodscope.models.zoo.dinov2 import TRANSFORM, build_dinov2
from oodscope.models.zoo.huggingface import build_hf_encoder
from oodscope.models.zoo.libraries import build_timm
from oodscope.models.zoo.openclip import open_towers
from oodscope.models.zoo.zoo import ZooModel

LIBRARIES = ("dinov2", "timm", "open_clip", "hf")


def create_backbone(spec: str, *, weights: str | Path | None = None, width: int | None = None) -> ZooModel:
    """The network that ``spec`` names, without a head: images in, features ``[N, D]`` out.

    ``Classifier(backbone, transform, head=Head(weight, bias))`` makes a classifier of it.

    Parameters
    ----------
    spec : ``dinov2:NAME``, ``timm:NAME`` (its pooled features), ``open_clip:NAME/TAG`` or ``hf:NAME`` (image
        embeddings).
    weights : ``"pretrained"``, or the path of a file; ``None`` leaves it untrained.
    width : of the features, where the network has several (``dinov2``).
    """
    check_backbone(spec)
    library, _, name = spec.partition(":")
    if library == "dinov2":
        return ZooModel(build_dinov2(name, weights, width), TRANSFORM)
    if library == "open_clip":
        towers = open_towers(name, weights)
        return ZooModel(towers.image, towers.transform)
    if library == "hf":
        made, prepare = build_hf_encoder(name, pretrained=weights == "pretrained")
        if weights is not None and weights != "pretrained":
            load_weights(made, read_checkpoint(weights), str(weights))
        return ZooModel(made, prepare)
    if weights == "pretrained":
        model, transform = build_timm(name, None, pretrained=True)
        model.reset_classifier(0)  # type: ignore[operator]  # every network of timm has it
        return ZooModel(model, transform)
    model, _ = build_timm(name, 0)
    if weights is not None:
        load_weights(model, read_checkpoint(weights), str(weights))
    return ZooModel(model, None)


def check_backbone(spec: str) -> None:
    """Refuse a network that always has a head."""
    if spec.partition(":")[0] not in LIBRARIES:
        raise ModelError(f"{spec} has a head of its own; features without one come from {', '.join(LIBRARIES)}")


def read_head(path: str | Path) -> Head:
    """A linear head from a file that holds a ``weight [C, D]`` and perhaps a ``bias [C]``, under any prefix."""
    tensors = read_checkpoint(path)
    found = {name.rpartition(".")[2]: tensor for name, tensor in tensors.items()}
    if len(found) != len(tensors) or "weight" not in found or set(found) - {"weight", "bias"}:
        raise ModelError(f"{path}: a head's file holds 'weight' and 'bias', this one {', '.join(list(tensors)[:4])}")
    return Head(found["weight"], found.get("bias"))

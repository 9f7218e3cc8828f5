"""Preprocessing that can be written down: a transform of torchvision or timm as our own ``Preprocess``, with proof."""

from typing import Any

import torch

from oodscope.base.errors import ModelError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.noise import noise_images

_SHAPES = ((40, 40), (97, 64), (300, 411))
"""Heights and widths of the noise pictures on which two preprocessings must agree."""


def as_preprocess(classifier: Classifier) -> Preprocess:
    """The classifier's preprocessing as numbers; a callable that cannot be had as numbers is refused."""
    transform = classifier.transform
    if isinstance(transform, Preprocess):
        return transform
    found = _described(transform)
    if found is None or not _agree(classifier, found):
        raise ModelError(
            f"{classifier.name}: this transform cannot be stored ({' '.join(repr(transform).split())[:80]}). Give the "
            "classifier a Preprocess(size=..., resize=..., mean=..., std=..., interpolation=...) that does the same"
        )
    return found


def _described(transform: Any) -> Preprocess | None:
    """Resize, centre crop, to tensor, normalise: what evaluation transforms are; None for anything else."""
    read: dict[str, Any] = {}
    if hasattr(transform, "crop_size") and hasattr(transform, "resize_size"):  # torchvision's presets
        read = {
            "size": _edge(transform.crop_size),
            "resize": _edge(transform.resize_size),
            "interpolation": transform.interpolation,
            "mean": transform.mean,
            "std": transform.std,
        }
    for step in getattr(transform, "transforms", ()):
        kind = type(step).__name__
        if kind == "Resize":
            read |= {"resize": _edge(step.size), "interpolation": step.interpolation}
        elif kind == "CenterCrop":
            read["size"] = _edge(step.size)
        elif kind == "Normalize":
            read |= {"mean": _numbers(step.mean), "std": _numbers(step.std)}
    if "size" not in read or "mean" not in read:
        return None
    interpolation = str(getattr(read.pop("interpolation", "bilinear"), "value", "bilinear"))
    try:
        return Preprocess(interpolation=interpolation, **read)  # type: ignore[arg-type]
    except ValueError:
        return None


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in values]


def _edge(size: Any) -> int | None:
    """One length for both sides; None if there are two."""
    if isinstance(size, int):
        return size
    edges = {int(edge) for edge in size}
    return edges.pop() if len(edges) == 1 else None


def _agree(classifier: Classifier, preprocess: Preprocess) -> bool:
    pictures = [image[:height, :width] for height, width in _SHAPES for image in noise_images(max(height, width), 3)]
    try:
        theirs = classifier.prepare(pictures)
    except ModelError:
        return False
    ours = preprocess(pictures)
    return ours.shape == theirs.shape and torch.allclose(ours, theirs, rtol=0, atol=1e-5)

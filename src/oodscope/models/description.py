"""A classifier in a few lines, for a person."""

from typing import TYPE_CHECKING

from oodscope.data.preprocess import Preprocess
from oodscope.models.zero_shot import ZeroShot

if TYPE_CHECKING:
    from oodscope.models.classifier import Classifier


def describe(classifier: "Classifier") -> str:
    """Architecture, head and its proof (or why there is none and what that means), transform, device."""
    count = sum(parameter.numel() for parameter in classifier.model.parameters())
    lines = [f"{classifier.name}: {type(classifier.model).__name__}, {count:,} parameters"]
    if classifier.transform is None:
        lines += ["head: not sought, for want of a transform", "transform: none; a benchmark offers its own"]
    else:
        lines[0] += f", {classifier.num_classes} classes"
        lines += [f"head: {_head(classifier)}", f"transform: {_transform(classifier)}"]
    if isinstance(classifier.model, ZeroShot):
        lines.append(f"words: {classifier.model.describe()}")
    return "\n".join([*lines, f"device: {classifier.device}"])


def _head(classifier: "Classifier") -> str:
    head = classifier.head
    if head is None:
        return (
            f"none: {classifier.head_reason}. Detectors that need features or head weights do not apply; "
            "those that read logits do"
        )
    if classifier.head_path is None:
        return f"given, {head.dim} features"
    name = classifier.head_path or "the network itself"
    return (
        f"{name}, {head.dim} features; proved: features · Wᵀ + b equals the logits to "
        f"{classifier.head_deviation:.1e} of their spread"
    )


def _transform(classifier: "Classifier") -> str:
    transform = classifier.transform
    text = str(transform) if isinstance(transform, Preprocess) else " ".join(repr(transform).split())
    if classifier.uncached_reason:
        text += f" (its activations are not shared between runs: {classifier.uncached_reason})"
    return text

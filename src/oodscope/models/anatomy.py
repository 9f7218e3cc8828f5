"""Anatomy: what a network offers beyond its logits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from oodscope.models.ensemble import MEMBER_LOGITS
from oodscope.models.stages import find_stages
from oodscope.models.zero_shot import NEGATIVE_COSINES

if TYPE_CHECKING:
    from oodscope.models.classifier import Classifier


@dataclass(frozen=True)
class Anatomy:
    """Found on noise images; it tells in advance which detectors a network allows.

    Parameters
    ----------
    stages : modules that end a resolution, see ``find_stages``.
    members : how many networks vote; 0 unless it is an ensemble.
    negatives : how many negative labels it compares with; 0 unless it classifies by words.
    signed_features : whether features may be negative, as after anything but a ReLU.
    """

    stages: tuple[str, ...]
    members: int
    negatives: int
    signed_features: bool


def examine(classifier: "Classifier", images: Tensor) -> Anatomy:
    """What ``images`` show of the classifier's network, in two passes."""
    stages = find_stages(classifier.model, images)
    with captured(classifier.model, MEMBER_LOGITS) as seen, captured(classifier.model, NEGATIVE_COSINES) as negative:
        features = classifier.forward(images).features
    return Anatomy(
        stages=stages,
        members=seen[-1].shape[1] if seen else 0,
        negatives=negative[-1].shape[1] if negative else 0,
        signed_features=features is not None and bool((features < 0).any()),
    )


@contextmanager
def captured(model: nn.Module, key: str) -> Iterator[list[Tensor]]:
    """A list that receives what each pass inside the block returns under ``key`` beside its logits."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Any) -> None:
        if isinstance(output, dict) and key in output:
            seen.append(output[key])

    handle = model.register_forward_hook(keep)
    try:
        yield seen
    finally:
        handle.remove()

"""Anatomy: what a network offers beyond its logits."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from oodscope.models.ensemble import MEMBER_LOGITS
from oodscope.models.stages import find_stages

if TYPE_CHECKING:
    from oodscope.models.classifier import Classifier


@dataclass(frozen=True)
class Anatomy:
    """Found on noise images; it tells in advance which detectors a network allows.

    Parameters
    ----------
    stages : modules that end a resolution, see ``find_stages``.
    members : how many networks vote; 0 unless it is an ensemble.
    signed_features : whether features may be negative, as after anything but a ReLU.
    """

    stages: tuple[str, ...]
    members: int
    signed_features: bool


def examine(classifier: "Classifier", images: Tensor) -> Anatomy:
    """What ``images`` show of the classifier's network, in two passes."""
    stages = find_stages(classifier.model, images)
    with captured_members(classifier.model) as seen:
        features = classifier.forward(images).features
    return Anatomy(
        stages=stages,
        members=seen[-1].shape[1] if seen else 0,
        signed_features=features is not None and bool((features < 0).any()),
    )


@contextmanager
def captured_members(model: nn.Module) -> Iterator[list[Tensor]]:
    """A list that receives the members' logits ``[N, M, C]`` of each pass inside the block."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Any) -> None:
        if isinstance(output, dict) and MEMBER_LOGITS in output:
            seen.append(output[MEMBER_LOGITS])

    handle = model.register_forward_hook(keep)
    try:
        yield seen
    finally:
        handle.remove()

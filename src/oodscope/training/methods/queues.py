"""ClassQueues: the latest features of every class, as buffers of a network."""

from typing import Any

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError

MOST_BYTES = 2 * 2**30
"""What the queues of one network may take; a thousand classes of 2,048 features would take 8 GB."""


class ClassQueues(nn.Module):
    """The last ``length`` features of each class, in buffers, so that a training that was stopped goes on with them.

    Parameters
    ----------
    num_classes, length, width : shape of the queues.
    """

    def __init__(self, num_classes: int, length: int, width: int) -> None:
        super().__init__()
        self.features: Tensor
        self.pushed: Tensor
        self.register_buffer("features", torch.zeros(num_classes, length, width))
        self.register_buffer("pushed", torch.zeros(num_classes, dtype=torch.long))

    @classmethod
    def of(cls, recipe: str, num_classes: int, length: int, width: int) -> "ClassQueues":
        """Empty queues, or one line that says that they would be too large."""
        size = 4 * num_classes * length * width
        if size > MOST_BYTES:
            raise ModelError(
                f"{recipe} keeps {length} features of each class, {size / 2**30:.1f} GB for {num_classes} classes of "
                f"{width} features: set a smaller queue"
            )
        return cls(num_classes, length, width)

    def facts(self) -> dict[str, Any]:
        """The arguments of its constructor."""
        return dict(zip(("num_classes", "length", "width"), self.features.shape))

    @torch.no_grad()
    def push(self, features: Tensor, labels: Tensor) -> None:
        """Put features ``[B, D]`` in the place of the oldest of their classes, in their order."""
        classes, length = self.features.shape[:2]
        members = (labels[:, None] == torch.arange(classes, device=labels.device)).long()
        place = (members.cumsum(dim=0) - 1).gather(1, labels[:, None]).flatten()
        count = members.sum(dim=0)
        last = place >= (count - length)[labels]  # of more than fit, the latest
        place = (self.pushed[labels] + place) % length
        if len(labels) > length:  # else all fit, which needs no look at the labels: a GPU does not wait for the host
            labels, place, features = labels[last], place[last], features[last]
        self.features[labels, place] = features.to(self.features.dtype)
        self.pushed += count

    @property
    def full(self) -> Tensor:
        """Whether every class has as many features as its queue holds, on the device."""
        return (self.pushed >= self.features.shape[1]).all()

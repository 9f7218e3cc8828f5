"""Head: the last linear layer of a classifier, as plain numbers."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from oodscope.base.errors import ModelError


@dataclass(frozen=True, eq=False, init=False)
class Head:
    r"""The map from penultimate features to logits.

    .. math:: \mathrm{logits}(h) = h W^\top + b

    Detectors that shape features (ReAct, ASH) or split feature space (ViM, NuSA) need it. Discovered heads
    come from ``Classifier.head``; a network that ends in features, such as CLIP's image tower, gets one
    by hand: ``Classifier(tower, transform, head=Head(100 * text_features))``.

    Parameters
    ----------
    weight : ``[C, D]``, one row per class; kept in float32.
    bias : ``[C]``; zeros if the layer has none.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        weight = _detached(weight)
        if weight.ndim != 2 or 0 in weight.shape:
            raise ModelError(f"a head's weight must be [classes, features], got shape {list(weight.shape)}")
        bias = weight.new_zeros(len(weight)) if bias is None else _detached(bias).to(weight.device)
        if bias.shape != weight.shape[:1]:
            raise ModelError(f"a head for {len(weight)} classes has a bias of shape {list(bias.shape)}")
        for name, values in (("weight", weight), ("bias", bias)):
            if not torch.isfinite(values).all():
                raise ModelError(f"the head's {name} holds NaN or infinite values")
            object.__setattr__(self, name, values)

    @property
    def num_classes(self) -> int:
        """The number of logits."""
        return self.weight.shape[0]

    @property
    def dim(self) -> int:
        """The number of features that it reads."""
        return self.weight.shape[1]

    def logits(self, features: Tensor) -> Tensor:
        """``[N, C]`` from ``[N, D]``, in float32, on the device of the features."""
        if features.ndim != 2 or features.shape[1] != self.dim:
            raise ModelError(f"a head over {self.dim} features cannot read shape {list(features.shape)}")
        device = features.device
        return linear(features.float(), self.weight.to(device), self.bias.to(device))

    def to(self, device: torch.device | str) -> "Head":
        """The same head with its numbers on ``device``."""
        if self.weight.device == torch.device(device):
            return self
        return Head(self.weight.to(device), self.bias.to(device))

    def __repr__(self) -> str:
        return f"Head({self.num_classes} classes, {self.dim} features)"


def _detached(values: Tensor) -> Tensor:
    return torch.as_tensor(values).detach().to(torch.float32)

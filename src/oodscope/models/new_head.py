"""A new head for a trained network: what fine-tuning to other classes begins with."""

import torch
from torch import nn

from oodscope.base.errors import ModelError
from oodscope.models.network import NetworkError
from oodscope.models.noise import COUNT, SIDES
from oodscope.models.structure import final_layer
from oodscope.models.trace import linear_weight


def replace_head(model: nn.Module, num_classes: int, *, hidden: int = 256, dropout: float = 0.2) -> nn.Module:
    r"""``model`` with two fresh layers in the place of its last one; changed in place where it can be.

    .. math:: h = \max(0,\; V\,\mathrm{drop}(x) + a), \qquad \mathrm{logits} = W\,\mathrm{drop}(h) + b

    The last layer is the one whose output the network hands out as its logits, found in one pass, so any network of
    any library will do. Afterwards ``Classifier`` finds :math:`W, b` as the head and :math:`h` as the features.

    Parameters
    ----------
    model : a network that ends in one linear layer.
    num_classes : logits of the new head.
    hidden : features between the two layers.
    dropout : before both of them.
    """
    batch, path = _last_layer(model)
    weight = linear_weight(model.get_submodule(path))
    assert weight is not None
    head = nn.Sequential(
        nn.Flatten(1),  # some networks end in a convolution of 1x1, which reads [N, D, 1, 1]
        nn.Dropout(dropout),
        nn.Linear(weight[0].numel(), hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, num_classes),
    ).to(weight.device, weight.dtype)
    if not path:
        return head
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, head)
    if final_layer(model, batch) != f"{path}.{len(head) - 1}":
        raise ModelError(f"{type(model).__name__}: a new head at {path!r} is not where the logits come from")
    return model


def _last_layer(model: nn.Module) -> tuple[torch.Tensor, str]:
    """A batch that the network can take, and the name of the layer that makes its logits."""
    first = next((module for module in model.modules() if isinstance(module, nn.Conv2d)), None)
    channels = 3 if first is None else first.in_channels
    device = next((weight.device for weight in model.parameters()), None)
    failure: NetworkError | None = None
    for side in SIDES:
        batch = torch.zeros(COUNT, channels, side, side, device=device)
        try:
            path = final_layer(model, batch)
        except NetworkError as error:
            failure = failure or error
            continue
        if path is None:
            raise ModelError(f"{type(model).__name__} has no last linear layer that could be replaced")
        return batch, path
    raise failure or ModelError(f"{type(model).__name__}: no image could be made to look inside")

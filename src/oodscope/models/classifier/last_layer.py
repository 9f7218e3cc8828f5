"""LastLayer: a last layer that is not linear, but whose input are the network's features all the same."""

from torch import nn


class LastLayer(nn.Module):
    """Base of last layers that training methods put in the place of a linear one.

    A head is believed only where ``features · Wᵀ + b`` equals the logits. Where a quotient, a projection or a softmax
    per group stands between the two there is no such head, but what this layer reads are still the features that
    distances and neighbours are taken of. It stands where the linear layer was, and reads one vector per image.
    """


def find_last_layer(model: nn.Module) -> str | None:
    """The name of such a layer inside a network; ``None`` if it has none."""
    return next((path for path, module in model.named_modules() if isinstance(module, LastLayer)), None)

"""Clip: values into a range, with a gradient at its ends."""

from torch import Tensor


def clip(values: Tensor, low: float, high: float) -> Tensor:
    r"""``values`` brought to [low, high], with the derivative 1 in the whole closed range and 0 beyond it.

    At the ends themselves the derivative of ``Tensor.clamp`` is a convention: 1 up to torch 2.10, 0 in torch 2.15. A
    search needs the first: a black pixel lies at an end, an image as it is scores exactly what the reference of its
    energy holds, and a gradient of 0 there would leave every chain at its start. Filled, because a number that is
    handed to ``torch.where`` may make a GPU wait for it.
    """
    return values.masked_fill(values < low, low).masked_fill(values > high, high)

"""What one training step sees."""

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """Images on the device, ready for the network, and what is known about them.

    ``images`` is what the recipe's ``view`` made, normalised: a recipe with two views gets twice as many
    images as labels. ``rows`` are the places of the images in their set, for methods that remember
    something about each image. ``ood`` is the outliers' batch of the same step, for recipes that ask for it;
    ``weights`` is what each label counts, for recipes that are ``balanced``.
    """

    images: Tensor
    labels: Tensor
    rows: Tensor
    epoch: int = 0
    ood: "Batch | None" = None
    weights: Tensor | None = None

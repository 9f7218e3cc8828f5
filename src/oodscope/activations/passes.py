"""Passes: what probes ask of a network for one batch, each pass made once."""

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from oodscope.models.classifier import Classifier
from oodscope.models.network import Outputs

RECORDED = "recorded forward"
"""The forward pass whose graph all gradients of a batch share."""


class Passes:
    """One prepared batch, and the passes over it that several probes may share.

    Every gradient comes from one recorded forward pass, and a gradient of the same name is computed once.

    Parameters
    ----------
    classifier : whose network is asked.
    images : preprocessed images on the classifier's device.
    """

    def __init__(self, classifier: Classifier, images: Tensor) -> None:
        self.classifier = classifier
        self.images = images.detach()
        self._gradients: dict[str, Tensor] = {}

    @cached_property
    def recorded(self) -> tuple[Tensor, Outputs]:
        """The images as a leaf of a graph, and the outputs at its end (the pass named ``RECORDED``)."""
        leaf = self.images.clone().requires_grad_(True)
        return leaf, self.classifier.forward(leaf, grad=True)

    def gradient(self, name: str, objective: Callable[[Outputs], Tensor]) -> Tensor:
        """The gradient of a scalar ``objective`` of the outputs with respect to the images, called ``name``.

        The objective is a sum over images, never a mean: what one image gets must not depend on its batch.
        """
        if name not in self._gradients:
            leaf, outputs = self.recorded
            (self._gradients[name],) = torch.autograd.grad(objective(outputs), leaf, retain_graph=True)
        return self._gradients[name]

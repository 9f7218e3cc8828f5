"""The probe behind ODIN: softmax after a small step that raises the predicted class."""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from oodscope.activations.probe import Probe
from oodscope.models import Classifier


class PerturbedLogits(Probe):
    r"""Logits of an image nudged towards its predicted class :math:`\hat y`.

    .. math:: x' = x - \varepsilon\,\mathrm{sign}\bigl(\nabla_x\,\mathrm{CE}(z(x)/T, \hat y)\bigr)

    Liang, Li & Srikant, "Enhancing the Reliability of Out-of-distribution Image Detection in Neural
    Networks", ICLR 2018. The step is taken in pixels of [0, 1], so that one :math:`\varepsilon` means the
    same for every normalisation: on the network's input it is :math:`\varepsilon/\sigma` per channel.

    Parameters
    ----------
    temperature : :math:`T`, of the softmax whose gradient gives the step.
    epsilon : length of the step in each pixel.
    """

    forwards: ClassVar[int] = 2
    backwards: ClassVar[int] = 1

    def __init__(self, temperature: float, epsilon: float) -> None:
        self.temperature = temperature
        self.epsilon = epsilon

    @property
    def column(self) -> str:
        return f"perturbed_logits(temperature={self.temperature:g}, epsilon={self.epsilon:g})"

    def __call__(self, classifier: Classifier, images: Tensor) -> Tensor:
        images = images.detach().requires_grad_(True)
        scaled = classifier.forward(images, grad=True).logits / self.temperature
        # summed, not averaged: the sign must not depend on how many images share a batch
        loss = torch.nn.functional.cross_entropy(scaled, scaled.argmax(dim=1), reduction="sum")
        (gradient,) = torch.autograd.grad(loss, images)
        step = self.epsilon * _pixel_unit(classifier).to(images.device)
        return classifier.forward((images - step * gradient.sign()).detach()).logits


def _pixel_unit(classifier: Classifier) -> Tensor:
    """How far the network's input moves, per channel, when a pixel goes from 0 to 1.

    Read off the classifier's own preprocessing, whatever it is: a white image minus a black one.
    """
    black = np.zeros((64, 64, 3), dtype=np.uint8)
    prepared = classifier.prepare([black, ~black])
    return (prepared[1] - prepared[0]).mean(dim=(1, 2), keepdim=True)

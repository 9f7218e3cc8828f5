"""Probes that look at an image after a small step along its gradient."""

import numpy as np
import torch
from torch import Tensor

from oodscope.activations.passes import RECORDED, Passes
from oodscope.activations.probe import Probe
from oodscope.base.errors import ActivationError
from oodscope.models.classifier import Classifier
from oodscope.models.network import Outputs


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
    single : step only in the one channel of the one pixel whose gradient is largest.
    """

    def __init__(self, temperature: float, epsilon: float, single: bool = False) -> None:
        self.temperature = temperature
        self.epsilon = epsilon
        self.single = single

    @property
    def column(self) -> str:
        where = ", single" if self.single else ""
        return f"perturbed_logits(temperature={self.temperature:g}, epsilon={self.epsilon:g}{where})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset({RECORDED, self.column})

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset({self._gradient})

    def __call__(self, passes: Passes) -> Tensor:
        gradient = passes.gradient(self._gradient, self._objective)
        direction = _largest_only(gradient) if self.single else gradient.sign()
        step = self.epsilon * pixel_unit(passes.classifier).to(gradient.device)
        return passes.classifier.forward(passes.images - step * direction).logits

    @property
    def _gradient(self) -> str:
        return f"cross_entropy(temperature={self.temperature:g})"

    def _objective(self, outputs: Outputs) -> Tensor:
        scaled = outputs.logits / self.temperature
        return torch.nn.functional.cross_entropy(scaled, scaled.argmax(dim=1), reduction="sum")


class PerturbedFeatures(Probe):
    r"""Features of an image whose least important pixels are pushed where the predicted logit rises.

    .. math:: x' = x + \varepsilon\,m\odot\mathrm{sign}(g), \qquad g = \nabla_x \max_c z_c(x)

    where :math:`m` marks the share of input values with the smallest :math:`|g|`. Regmi et al., "AdaSCALE:
    Adaptive Scaling for OOD Detection", 2025: outliers' features move more than those of known images.

    Parameters
    ----------
    fraction : share of the input values that are moved.
    epsilon : how far, in the units of the network's (normalised) input, as in the paper.
    """

    def __init__(self, fraction: float = 0.05, epsilon: float = 0.5) -> None:
        self.fraction = fraction
        self.epsilon = epsilon

    @property
    def column(self) -> str:
        return f"perturbed_features(fraction={self.fraction:g}, epsilon={self.epsilon:g})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset({RECORDED, self.column})

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset({"largest logit"})

    def __call__(self, passes: Passes) -> Tensor:
        gradient = passes.gradient("largest logit", lambda outputs: outputs.logits.amax(dim=1).sum())
        size = gradient[0].numel()
        weakest = gradient.flatten(1).abs().topk(max(1, round(self.fraction * size)), largest=False).indices
        moved = torch.zeros_like(gradient).flatten(1).scatter(1, weakest, 1.0).view_as(gradient)
        features = passes.classifier.forward(passes.images + self.epsilon * moved * gradient.sign()).features
        if features is None:
            raise ActivationError(f"{passes.classifier.name} has no head, so there are no features to perturb")
        return features


def pixel_unit(classifier: Classifier) -> Tensor:
    """How far the network's input moves, per channel, when a pixel goes from 0 to 1.

    Read off the classifier's own preprocessing, whatever it is: a white image minus a black one.
    """
    black = np.zeros((64, 64, 3), dtype=np.uint8)
    prepared = classifier.prepare([black, ~black])
    return (prepared[1] - prepared[0]).mean(dim=(1, 2), keepdim=True)


def _largest_only(gradient: Tensor) -> Tensor:
    flat = gradient.flatten(1)
    where = flat.abs().argmax(dim=1, keepdim=True)
    return torch.zeros_like(flat).scatter(1, where, flat.gather(1, where).sign()).view_as(gradient)

"""Probes that look at an image after a small step along its gradient."""

from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from oodscope.activations.probes.probe import RECORDED, Passes, Probe
from oodscope.activations.probes.taps import PooledMaps, stacked
from oodscope.base.errors import ActivationError
from oodscope.base.hashing import fingerprint
from oodscope.models.classifier.anatomy import watched_maps
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import Outputs


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
        step = self.epsilon * pixel_unit(passes.classifier)
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
    """How far the network's input moves, per channel, when a pixel goes from 0 to 1; on the classifier's device.

    Read off the classifier's own preprocessing, whatever it is: a white image minus a black one.
    """
    return black_and_white(classifier)[2]


def black_and_white(classifier: Classifier) -> tuple[Tensor, Tensor, Tensor]:
    """The network's input where a pixel is 0, where it is 1, and the difference, per channel, on its device.

    Once per classifier: sending it to a GPU waits for all work before it.
    """
    if classifier not in _ENDS:
        black = np.zeros((64, 64, 3), dtype=np.uint8)
        prepared = classifier.prepare([black, ~black])
        ends = (prepared[0], prepared[1], prepared[1] - prepared[0])
        first, last, unit = (each.mean(dim=(1, 2), keepdim=True).to(classifier.device) for each in ends)
        _ENDS[classifier] = first, last, unit
    return _ENDS[classifier]


_ENDS: WeakKeyDictionary[Classifier, tuple[Tensor, Tensor, Tensor]] = WeakKeyDictionary()


def _largest_only(gradient: Tensor) -> Tensor:
    flat = gradient.flatten(1)
    where = flat.abs().argmax(dim=1, keepdim=True)
    return torch.zeros_like(flat).scatter(1, where, flat.gather(1, where).sign()).view_as(gradient)


class SteppedMaps(Probe):
    r"""For each stage, its pooled map after the image has moved towards that stage's nearest class.

    .. math:: x_l' = x - \varepsilon\,\mathrm{sign}\bigl(\nabla_x \min_c \lVert A_l^\top(f_l(x)-\mu_{lc})\rVert^2\bigr)

    Lee et al., "A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial Attacks",
    NeurIPS 2018. One recorded pass serves all stages; each then takes one backward and one forward pass.

    Parameters
    ----------
    origin, whiten, means : the fitted Gaussians: ``[L, W]``, ``[L, W, W]`` and, in whitened coordinates,
        ``[L, C, W]``.
    epsilon : length of the step, in pixels of [0, 1].
    """

    def __init__(self, origin: Tensor, whiten: Tensor, means: Tensor, epsilon: float) -> None:
        self.origin, self.whiten, self.means = origin, whiten, means
        self.epsilon = epsilon
        self._stages = len(origin)
        self._state = fingerprint(*(part.cpu().double().numpy() for part in (origin, whiten, means)))[:16]

    @property
    def column(self) -> str:
        return f"stepped_maps(epsilon={self.epsilon:g}, gaussians={self._state})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset({"recorded maps", *(f"{self.column}, stage {stage}" for stage in range(self._stages))})

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset(f"{self.column}, stage {stage}" for stage in range(self._stages))

    def __call__(self, passes: Passes) -> Tensor:
        classifier, pool = passes.classifier, PooledMaps().reduce
        unit = self.epsilon * pixel_unit(classifier)
        leaf = passes.images.clone().requires_grad_(True)
        with watched_maps(classifier.model, classifier.anatomy.stages, pool) as shown:
            classifier.forward(leaf, grad=True)
            recorded, moved = stacked(shown), []
            for stage in range(self._stages):
                distance = self._distance(recorded[:, stage], stage)
                (gradient,) = torch.autograd.grad(distance.sum(), leaf, retain_graph=True)
                classifier.forward(passes.images - unit * gradient.sign())
                moved.append(stacked(shown)[:, stage])
        return torch.stack(moved, dim=1)

    def _distance(self, pooled: Tensor, stage: int) -> Tensor:
        origin, whiten, means = (part[stage].to(pooled) for part in (self.origin, self.whiten, self.means))
        whitened = (pooled - origin) @ whiten
        nearest: Tensor = (means.square().sum(dim=1) - 2 * whitened @ means.T).amin(dim=1)
        return whitened.square().sum(dim=1) + nearest

"""The probe behind the Mahalanobis ensemble: pooled maps after a step towards the nearest class."""

import torch
from torch import Tensor

from oodscope.activations.passes import Passes
from oodscope.activations.perturbation import pixel_unit
from oodscope.activations.probe import Probe
from oodscope.activations.taps import PooledMaps, stacked
from oodscope.base.hashing import fingerprint
from oodscope.models.stages import watched_maps


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
        unit = self.epsilon * pixel_unit(classifier).to(passes.images.device)
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

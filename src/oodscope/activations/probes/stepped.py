"""SteppedNumerators: what a network trained by G-ODIN says of an image after a step towards its class."""

import torch
from torch import Tensor

from oodscope.activations.probes.perturbation import pixel_unit
from oodscope.activations.probes.probe import Passes, Probe
from oodscope.base.errors import ActivationError
from oodscope.models.classifier.anatomy import captured
from oodscope.models.classifier.branches import NUMERATORS


class SteppedNumerators(Probe):
    r"""The numerators :math:`h(x')` of an image that moved where the largest of them rises, ``[N, C]``.

    .. math:: x' = x + \varepsilon\,\mathrm{sign}\bigl(\nabla_x \max_c h_c(x)\bigr)

    with :math:`\mathrm{sign}(0) = 1`. The step is taken in pixels of [0, 1].

    Parameters
    ----------
    epsilon : length of the step in each pixel; 0 takes none, and costs no gradient.
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    @property
    def column(self) -> str:
        return f"stepped_numerators(epsilon={self.epsilon:g})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset({"recorded numerators", self.column} if self.epsilon else {self.column})

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset({"largest numerator"} if self.epsilon else ())

    def __call__(self, passes: Passes) -> Tensor:
        images = passes.images
        if self.epsilon:
            leaf = images.clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad(self._numerators(passes, leaf, grad=True).amax(dim=1).sum(), leaf)
            direction = torch.where(gradient >= 0, 1.0, -1.0)
            images = images + self.epsilon * pixel_unit(passes.classifier) * direction
        return self._numerators(passes, images, grad=False).float()

    def _numerators(self, passes: Passes, images: Tensor, grad: bool) -> Tensor:
        with captured(passes.classifier.model, NUMERATORS) as seen:
            passes.classifier.forward(images, grad=grad)
        if not seen:
            raise ActivationError(f"{passes.classifier.name} returns no {NUMERATORS!r} beside its logits")
        return seen[-1]

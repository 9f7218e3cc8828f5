"""CertifiedConfidence: how sure a network can be of any image around another, proven by interval bounds."""

from torch import Tensor, nn

from oodscope.activations.probes.perturbation import black_and_white
from oodscope.activations.probes.probe import Passes, Probe
from oodscope.base.errors import ModelError
from oodscope.models.classifier.intervals import Interval, bounded_layers, certified_confidence
from oodscope.models.classifier.network import evaluating


def has_bounds(model: nn.Module) -> bool:
    """Whether bounds can be carried through the network."""
    try:
        return isinstance(bounded_layers(model)[-1], nn.Linear)
    except ModelError:
        return False


class CertifiedConfidence(Probe):
    r"""An upper bound on the largest class probability of all images of pixels in [0, 1] within a radius, ``[N, 1]``.

    .. math:: \bar c(x) \ge \max_{\lVert\delta\rVert_\infty\le\varepsilon}\max_k p_k(x + \delta)

    For networks that are chains of layers with known bounds. It takes about as long as two passes.

    Parameters
    ----------
    epsilon : :math:`\varepsilon` in pixels of [0, 1].
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    @property
    def column(self) -> str:
        return f"certified_confidence(epsilon={self.epsilon:g})"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset({f"{self.column}, centre", f"{self.column}, radius"})

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, passes: Passes) -> Tensor:
        model, images = passes.classifier.model, passes.images.float()
        black, white, unit = black_and_white(passes.classifier)
        radius = self.epsilon * unit
        box = Interval((images - radius).clamp(min=black), (images + radius).clamp(max=white))
        with evaluating(model):
            return certified_confidence(bounded_layers(model), box).detach()[:, None]

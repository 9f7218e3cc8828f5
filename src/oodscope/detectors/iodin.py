"""i-ODIN: ODIN's step in the one most sensitive input value."""

from oodscope.activations.probes.perturbation import PerturbedLogits
from oodscope.activations.probes.probe import Probe
from oodscope.detectors.base import Paper
from oodscope.detectors.odin import ODIN


class IODIN(ODIN):
    r"""One minus the largest softmax probability after a step in a single input value.

    .. math:: s(x) = 1 - \max_c \mathrm{softmax}_c\bigl(z(x')/T\bigr), \qquad
              x' = x - \varepsilon\,\mathrm{sign}(g_j)\,e_j, \quad j = \arg\max_i |g_i|

    with :math:`g` the gradient of ODIN. The step over all pixels adds noise where the network does not look;
    this one does not. It shares ODIN's gradient, so beside ODIN it costs one forward pass.

    Parameters
    ----------
    temperature : high values bring the logits' size back into the probabilities.
    epsilon : length of the step, in pixels of [0, 1].
    """

    name = "iodin"
    paper = Paper("Going Beyond Conventional OOD Detection", "Regmi", "arXiv 2411.10794")

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (PerturbedLogits(self.temperature, self.epsilon, single=True),)

"""ODIN and i-ODIN: softmax at high temperature after a step towards the predicted class."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.perturbation import PerturbedLogits
from oodscope.activations.probes.probe import Probe
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.math.numbers import precise
from oodscope.detectors.methods.msp import MSP


class ODIN(Detector):
    r"""One minus the largest softmax probability of the perturbed image at temperature T.

    .. math:: s(x) = 1 - \max_c \mathrm{softmax}_c\bigl(z(x')/T\bigr)

    In-distribution images gain more from the step :math:`x \to x'` (see ``PerturbedLogits``) than outliers.

    Parameters
    ----------
    temperature : high values bring the logits' size back into the probabilities.
    epsilon : length of the step, in pixels of [0, 1].
    """

    name = "odin"
    paper = Paper(
        "Enhancing the Reliability of Out-of-distribution Image Detection in Neural Networks",
        "Liang, Li & Srikant",
        "ICLR 2018",
    )
    needs = Needs.GRADIENTS
    cost = Cost.PASSES
    grid = {"temperature": (1.0, 10.0, 100.0, 1000.0), "epsilon": (0.0014, 0.0028)}

    def __init__(self, temperature: float = 1000.0, epsilon: float = 0.0014) -> None:
        self.temperature = temperature
        self.epsilon = epsilon

    @property
    def probes(self) -> tuple[Probe, ...]:
        return (PerturbedLogits(self.temperature, self.epsilon),)

    def _score(self, batch: Activations) -> Tensor:
        return MSP().of_logits(precise(batch[self.probes[0].column]) / self.temperature)


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

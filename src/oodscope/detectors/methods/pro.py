"""PRO: the worst score along a short walk that raises it."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.copies import PushedScores
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Needs
from oodscope.detectors.copyscore import CopyScore
from oodscope.detectors.math.numbers import precise


class PRO(CopyScore):
    r"""Largest value of a logit score over an image and a few small steps that raise it.

    .. math:: s(x) = \max_{t=0..T} s_0(x_t), \qquad x_0 = x, \quad
              x_{t+1} = x_t + \varepsilon\,\mathrm{sign}\,\nabla_x s_0(x_t)

    Confidence in outliers is easier to shake than in known images. Steps are in the network's normalised input. Every
    image costs T + 1 forward and T backward passes.

    Parameters
    ----------
    detector : :math:`s_0`, a score of logits; the paper takes ``msp``, ``entropy`` and ``gen``, and ``msp`` at a
        calibrated ``temperature``.
    epsilon : length of a step; the paper searches .0003 to .001 for GEN and .0001 to .03 for MSP.
    steps : T; the paper searches 1 to 5.
    temperature : by which logits are divided.
    clip : keep pixels in [0, 1]; the authors do not.
    """

    name = "pro"
    paper = Paper(
        "Leveraging Perturbation Robustness to Enhance Out-of-Distribution Detection",
        "Chen et al.",
        "CVPR 2025, arXiv 2503.18784",
    )
    needs = Needs.GRADIENTS | Needs.COPIES
    cost = Cost.PASSES
    grid = {"epsilon": (0.0003, 0.0005, 0.0008, 0.001), "steps": (1, 2, 3, 5)}

    def __init__(
        self,
        detector: str = "gen",
        epsilon: float = 0.0005,
        steps: int = 3,
        temperature: float = 1.0,
        clip: bool = False,
    ) -> None:
        self.detector = detector
        self.epsilon = epsilon
        self.steps = steps
        self.temperature = temperature
        self.clip = clip

    @property
    def probes(self) -> tuple[Probe, ...]:
        if self.steps < 1:
            raise DetectorError(f"pro: steps must be at least 1, not {self.steps}")
        return (PushedScores(self.wrapped, self.of_logits, self.epsilon, self.steps, self.clip),)

    def _score(self, batch: Activations) -> Tensor:
        return precise(batch[self.probes[0].column]).amax(dim=1)

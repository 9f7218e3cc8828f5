"""MC dropout: how much a network's predictions differ between passes with its own dropout layers at work."""

from typing import Literal

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.dropped import DroppedLogits
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError
from oodscope.base.paper import Paper
from oodscope.detectors.base import Cost, Detector, Needs
from oodscope.detectors.methods.ensembles import entropy_of_mean
from oodscope.detectors.methods.entropy import Entropy


class MCDropout(Detector):
    r"""Mutual information of prediction and mask, or the entropy of the mean prediction, in nats.

    .. math:: s(x) = H\Bigl(\frac1M\sum_m p^{(m)}\Bigr) - \frac1M\sum_m H\bigl(p^{(m)}\bigr)

    over passes with dropout (``DroppedLogits``). For networks that were trained with dropout layers; ``dropout`` masks
    the features of any network's head instead, without further passes.

    Parameters
    ----------
    passes : :math:`M`.
    form : ``information``, or ``entropy`` for the first term alone.
    seed : of the masks.
    """

    name = "mc_dropout"
    paper = Paper(
        "Dropout as a Bayesian Approximation: Representing Model Uncertainty in Deep Learning",
        "Gal & Ghahramani",
        "ICML 2016",
    )
    needs = Needs.DROPOUT
    cost = Cost.PASSES

    def __init__(
        self, passes: int = 10, form: Literal["information", "entropy"] = "information", seed: int = 0
    ) -> None:
        self.passes = passes
        self.form = form
        self.seed = seed

    @property
    def probes(self) -> tuple[Probe, ...]:
        if self.passes < 2:
            raise DetectorError(f"mc_dropout: passes must be at least 2, not {self.passes}")
        return (DroppedLogits(self.passes, self.seed),)

    def _score(self, batch: Activations) -> Tensor:
        members = batch[self.probes[0].column]
        total = entropy_of_mean(members)
        if self.form == "entropy":
            return total
        return (total - Entropy().of_logits(members).mean(dim=1)).clamp(min=0)

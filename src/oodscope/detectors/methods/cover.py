"""CoVer: mean score over an image and corrupted copies of it."""

from torch import Tensor

from oodscope.activations.activations import Activations
from oodscope.activations.probes.copies import CorruptedScores
from oodscope.activations.probes.probe import Probe
from oodscope.base.errors import DetectorError, did_you_mean
from oodscope.base.paper import Paper
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.detectors.base import Capabilities, Cost, Needs
from oodscope.detectors.copyscore import CopyScore
from oodscope.detectors.math.numbers import precise


class CoVer(CopyScore):
    r"""Mean of a logit score over the image and its copies under several corruptions.

    .. math:: s(x) = \frac1{1+K}\Bigl(s_0(x) + \sum_{k=1}^K s_0\bigl(T_k(x)\bigr)\Bigr)

    Confidence in outliers falls more when their small details are disturbed. Every image costs K forward passes more.

    The paper was known by its abstract when this was written; the corruptions and their severity are ours.

    Parameters
    ----------
    detector : :math:`s_0`, a score of logits.
    corruptions : names from ``oodscope list corruptions``, separated by commas.
    severity : 1 to 5.
    temperature : by which logits are divided.
    """

    name = "cover"
    paper = Paper("What If the Input is Expanded in OOD Detection?", "Zhang et al.", "NeurIPS 2024")
    needs = Needs.LOGITS | Needs.COPIES
    cost = Cost.PASSES
    unverified_form = True
    grid = {"severity": (1, 2, 3)}

    def __init__(
        self,
        detector: str = "msp",
        corruptions: str = "gaussian_noise,gaussian_blur,brightness,contrast",
        severity: float = 1,
        temperature: float = 1.0,
    ) -> None:
        self.detector = detector
        self.corruptions = corruptions
        self.severity = severity
        self.temperature = temperature

    @property
    def probes(self) -> tuple[Probe, ...]:
        names = [name.strip() for name in self.corruptions.split(",") if name.strip()]
        unknown = [name for name in names if name not in CORRUPTIONS]
        if unknown or not names:
            hint = did_you_mean(unknown[0], list(CORRUPTIONS)) if unknown else ""
            raise DetectorError(
                f"cover: corruptions must be names of corruptions, separated by commas, not {self.corruptions!r}.{hint}"
            )
        return (CorruptedScores(self.wrapped, self.of_logits, names, self.severity),)

    def unmet_requirement(self, capabilities: Capabilities) -> str | None:
        if capabilities.image_shape == ():
            return "needs pixels, and the classifier's preprocessing does more than scale and shift them"
        return super().unmet_requirement(capabilities)

    def _score(self, batch: Activations) -> Tensor:
        copies = precise(batch[self.probes[0].column])
        return (self.of_logits(batch.logits) + copies.sum(dim=1)) / (1 + copies.shape[1])

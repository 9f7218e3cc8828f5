"""TurnLosses: how well a network recognises the four quarter turns of each image."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from oodscope.activations.probes.probe import Passes, Probe
from oodscope.base.errors import ActivationError
from oodscope.models.classifier.anatomy import captured
from oodscope.models.classifier.branches import ROTATION, TURNS


class TurnLosses(Probe):
    r"""The cross-entropy of each turn, :math:`\mathrm{CE}(r(T_k x), k)` for :math:`k = 0, \dots, 3`, ``[N, 4]``.

    For networks that return the logits of the four turns under ``rotation``; turns are counter-clockwise.
    """

    @property
    def column(self) -> str:
        return "turn_losses"

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset(f"quarter turn {turn}" for turn in range(TURNS))

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, passes: Passes) -> Tensor:
        losses = []
        for turn in range(TURNS):
            with captured(passes.classifier.model, ROTATION) as seen:
                passes.classifier.forward(passes.images.rot90(turn, (2, 3)))
            if not seen:
                raise ActivationError(f"{passes.classifier.name} returns no {ROTATION!r} beside its logits")
            rotation = seen[-1].float()
            labels = torch.full((len(rotation),), turn, device=rotation.device)
            losses.append(cross_entropy(rotation, labels, reduction="none"))
        return torch.stack(losses, dim=1)

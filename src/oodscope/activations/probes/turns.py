"""What a network says of the four quarter turns of each image."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from oodscope.activations.probes.probe import Passes, Probe
from oodscope.base.errors import ActivationError
from oodscope.models.classifier.anatomy import captured
from oodscope.models.classifier.branches import JOINT, ROTATION, TURNS


class _OfTurns(Probe):
    """A probe that sends each image through the network once in every quarter turn."""

    @property
    def forwards(self) -> frozenset[str]:
        return frozenset(f"quarter turn {turn}" for turn in range(TURNS))

    @property
    def backwards(self) -> frozenset[str]:
        return frozenset()


class TurnLosses(_OfTurns):
    r"""The cross-entropy of each turn, :math:`\mathrm{CE}(r(T_k x), k)` for :math:`k = 0, \dots, 3`, ``[N, 4]``.

    For networks that return the logits of the four turns under ``rotation``; turns are counter-clockwise.
    """

    @property
    def column(self) -> str:
        return "turn_losses"

    def __call__(self, passes: Passes) -> Tensor:
        losses = []
        for turn, rotation in enumerate(_of_turns(passes, ROTATION)):
            labels = torch.full((len(rotation),), turn, device=rotation.device)
            losses.append(cross_entropy(rotation, labels, reduction="none"))
        return torch.stack(losses, dim=1)


class JointLogits(_OfTurns):
    r"""The logits of each class with each turn, of the image in that turn, averaged over turns, ``[N, C]``.

    .. math:: \ell_c(x) = \frac14\sum_{k=0}^3 j_{kC + c}(T_k x)

    For networks that return the logits of turn and class together under ``joint``; turns are counter-clockwise.
    """

    @property
    def column(self) -> str:
        return "joint_logits"

    def __call__(self, passes: Passes) -> Tensor:
        own = [joint.chunk(TURNS, dim=1)[turn] for turn, joint in enumerate(_of_turns(passes, JOINT))]
        return torch.stack(own).mean(dim=0)


def _of_turns(passes: Passes, name: str) -> Iterator[Tensor]:
    """What the network returns under a name, of the images in each turn."""
    for turn in range(TURNS):
        with captured(passes.classifier.model, name) as seen:
            passes.classifier.forward(passes.images.rot90(turn, (2, 3)))
        if not seen:
            raise ActivationError(f"{passes.classifier.name} returns no {name!r} beside its logits")
        yield seen[-1].float()

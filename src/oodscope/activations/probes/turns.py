"""What a network says of the four quarter turns of each image."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, cross_entropy, grid_sample

from oodscope.activations.probes.probe import Passes, Probe
from oodscope.base.errors import ActivationError
from oodscope.models.classifier.anatomy import captured
from oodscope.models.classifier.branches import JOINT, PROJECTION, ROTATION, TURNS

_SHARE = 0.54


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


class TurnedViews(_OfTurns):
    r"""Of each turn :math:`k` the projection and the logit of that turn, averaged over fixed crops, ``[N, 4, P + 1]``.

    For networks that return ``projection`` and ``rotation``. The crops hold .54 of the area, some of mirrored images.
    They are drawn once by the seed and are the same for all images, so that a score does not depend on its batch.

    Parameters
    ----------
    views : how many crops.
    seed : of their places.
    """

    def __init__(self, views: int, seed: int = 0) -> None:
        self.views, self.seed = views, seed

    @property
    def column(self) -> str:
        return f"turned_views(views={self.views}, seed={self.seed}, mirrored first)"

    @property
    def forwards(self) -> frozenset[str]:
        pairs = [(turn, view) for turn in range(TURNS) for view in range(self.views)]
        return frozenset(f"quarter turn {turn}, view {view}, seed {self.seed}" for turn, view in pairs)

    def __call__(self, passes: Passes) -> Tensor:
        found = []
        for turn in range(TURNS):
            rows = [self._row(passes, each, turn) for each in self._shown(passes.images, turn)]
            found.append(torch.stack(rows).mean(dim=0))
        return torch.stack(found, dim=1)

    def _row(self, passes: Passes, images: Tensor, turn: int) -> Tensor:
        with captured(passes.classifier.model, PROJECTION) as seen, captured(passes.classifier.model, ROTATION) as told:
            passes.classifier.forward(images)
        if not seen or not told:
            raise ActivationError(f"{passes.classifier.name} returns no {PROJECTION!r} and {ROTATION!r}")
        return torch.cat([seen[-1].float(), told[-1][:, turn : turn + 1].float()], dim=1)

    def _shown(self, images: Tensor, turn: int) -> Iterator[Tensor]:
        draws = torch.Generator().manual_seed(self.seed)
        side = _SHARE**0.5
        for chance in torch.rand(self.views, 3, generator=draws).tolist():
            # before the turn, as in training: mirrored after it, a quarter turn would be the opposite one
            turned = (images.flip(3) if chance[2] < 0.5 else images).rot90(turn, (2, 3))
            shift = [(1 - side) * (2 * each - 1) for each in chance[:2]]
            theta = torch.tensor([[side, 0.0, shift[0]], [0.0, side, shift[1]]], device=images.device)
            grid = affine_grid(theta.expand(len(images), 2, 3), list(images.shape), align_corners=False)
            yield grid_sample(turned.float(), grid, mode="bilinear", align_corners=False).to(images.dtype)

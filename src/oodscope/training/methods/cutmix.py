"""CutMix: a patch of another image, and its share of the label."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.mixup import drawn_partners, drawn_share, mixed_loss
from oodscope.training.recipe import Batch, Step


class CutMix(CrossEntropy):
    r"""Cross-entropy on images with a patch of another, towards both labels by area.

    The patch has the sides :math:`\lfloor W\sqrt{1-\lambda}\rfloor` and :math:`\lfloor H\sqrt{1-\lambda}\rfloor`, its
    centre lies anywhere in the image, and what hangs over is cut off; one :math:`\lambda \sim
    \mathrm{Beta}(\alpha, \alpha)` and one box for each batch. Then :math:`\lambda` is the share that is left.

    Parameters
    ----------
    alpha : :math:`\alpha`.
    probability : that a batch is mixed at all.
    """

    name: ClassVar[str] = "cutmix"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper(
        "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features",
        "Yun et al.",
        "ICCV 2019",
    )

    alpha: float = Field(default=1.0, gt=0)
    probability: float = Field(default=0.5, ge=0, le=1)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        assert batch.draws is not None, "the loop gives each batch its random numbers"
        partner = drawn_partners(batch)
        inside = drawn_box(batch, drawn_share(batch, self.alpha, self.alpha))
        mixed = torch.rand((), generator=batch.draws, device=batch.draws.device) < self.probability
        inside = inside & mixed.to(inside.device)
        images = torch.where(inside, batch.images[partner], batch.images)
        left = 1 - inside.float().mean()
        return Step(mixed_loss(logits_of(model(images)), batch.labels, batch.labels[partner], left))


def drawn_box(batch: Batch, share: Tensor) -> Tensor:
    """Where the patch lies, ``[H, W]``, with a random centre."""
    assert batch.draws is not None, "the loop gives each batch its random numbers"
    height, width = batch.images.shape[2:]
    draws = batch.draws
    row = torch.randint(height, (), generator=draws, device=draws.device).to(share.device)
    column = torch.randint(width, (), generator=draws, device=draws.device).to(share.device)
    return box(height, width, share, row, column)


def box(height: int, width: int, share: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """The patch around a centre that leaves about ``share`` of the image, ``[H, W]``."""

    def covered(length: int, centre: Tensor) -> Tensor:
        half = (length * (1 - share).clamp(min=0).sqrt()).floor().div(2).floor()
        place = torch.arange(length, device=share.device)
        return (place >= centre - half) & (place < centre + half)

    return covered(height, row)[:, None] & covered(width, column)[None, :]

"""Mixup: images and labels of two are averaged."""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from oodscope.base.paper import Paper
from oodscope.training.loop.logits import logits_of
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.recipe import Batch, Step


class Mixup(CrossEntropy):
    r"""Cross-entropy on mixtures of images, towards both of their labels.

    .. math:: \bar x = \lambda x + (1-\lambda) x', \qquad
              L = \lambda\,\mathrm{CE}(z(\bar x), y) + (1-\lambda)\,\mathrm{CE}(z(\bar x), y'), \qquad
              \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    with one :math:`\lambda` for each batch and a random partner :math:`x'` for each image.

    Parameters
    ----------
    alpha : :math:`\alpha`.
    """

    name: ClassVar[str] = "mixup"
    recordable: ClassVar[bool] = True
    paper: ClassVar[Paper | None] = Paper("mixup: Beyond Empirical Risk Minimization", "Zhang et al.", "ICLR 2018")

    alpha: float = Field(default=0.2, gt=0)

    def loss(self, model: nn.Module, batch: Batch) -> Step:
        share, partner = drawn_share(batch, self.alpha, self.alpha), drawn_partners(batch)
        mixed = share * batch.images + (1 - share) * batch.images[partner]
        return Step(mixed_loss(logits_of(model(mixed)), batch.labels, batch.labels[partner], share))


def mixed_loss(logits: Tensor, labels: Tensor, others: Tensor, share: Tensor) -> Tensor:
    """Cross-entropy towards two labels, of which the first counts ``share``."""
    return share * cross_entropy(logits, labels) + (1 - share) * cross_entropy(logits, others)


def drawn_share(batch: Batch, alpha: float, beta: float) -> Tensor:
    """One number of Beta(alpha, beta) for the batch, as a tensor without dimensions on its device."""
    assert batch.draws is not None, "the loop gives each batch its random numbers"
    shapes = torch.full((2,), alpha, device=batch.draws.device)
    shapes[1:].fill_(beta)
    gammas = torch._standard_gamma(shapes, generator=batch.draws)
    # both may underflow where the shapes are small; half of each is then as good as any
    share = (gammas[0] + _TINY) / (gammas.sum() + 2 * _TINY)
    return share.to(batch.images.device)


def drawn_partners(batch: Batch) -> Tensor:
    """A random order of the batch."""
    assert batch.draws is not None, "the loop gives each batch its random numbers"
    order = torch.rand(len(batch.labels), generator=batch.draws, device=batch.draws.device).argsort()
    return order.to(batch.labels.device)


_TINY = torch.finfo(torch.float32).tiny

"""Perturbation: the worst image in a ball around another, found by projected gradient ascent.

One engine for training and for attacks: methods that learn from attacked images and samplers that attack a detector
take the same steps. Everything here is in pixels of [0, 1], whatever a network's normalisation is.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from oodscope.models.classifier.clip import clip
from oodscope.models.classifier.network import evaluating
from oodscope.training.recipe import Scale

Norm = Literal["linf", "l2"]
Keep = Literal["last", "best"]

_TINY = 1e-12


def steepest(gradient: Tensor, norm: Norm) -> Tensor:
    r"""The step of length 1 in a norm that climbs most: :math:`\mathrm{sign}\,g`, or :math:`g/\lVert g\rVert_2`."""
    if norm == "linf":
        return gradient.sign()
    return gradient / _length(gradient).clamp(min=_TINY)


@dataclass(frozen=True)
class Ball:
    """All images whose difference from a given one is at most ``epsilon`` long.

    Parameters
    ----------
    norm : ``linf`` bounds every value by itself, ``l2`` the whole image.
    epsilon : in pixels of [0, 1].
    """

    norm: Norm
    epsilon: float

    def projected(self, difference: Tensor) -> Tensor:
        """The nearest difference within the ball."""
        if self.norm == "linf":
            return clip(difference, -self.epsilon, self.epsilon)
        return difference * (self.epsilon / _length(difference).clamp(min=_TINY)).clamp(max=1.0)

    def drawn(self, images: Tensor, draws: torch.Generator) -> Tensor:
        """A difference for each image, uniform in the ball."""
        place = draws.device
        if self.norm == "linf":
            chance = torch.rand(images.shape, generator=draws, device=place).to(images.device)
            return self.epsilon * (2 * chance - 1)
        way = torch.randn(images.shape, generator=draws, device=place).to(images.device)
        share = torch.rand(len(images), generator=draws, device=place).to(images.device)
        radius = self.epsilon * share.pow(1 / math.prod(images.shape[1:]))
        return steepest(way, "l2") * radius.view(-1, *[1] * (images.ndim - 1))


def worst_in_ball(
    objective: Callable[[Tensor], Tensor],
    images: Tensor,
    ball: Ball,
    *,
    steps: int,
    step: float,
    start: Tensor | None = None,
    keep: Keep = "last",
) -> Tensor:
    r"""Images of the ball around ``images`` at which ``objective`` is large, with pixels in [0, 1].

    .. math:: \delta \leftarrow \Pi_\varepsilon\bigl(\delta + \alpha\,\mathrm{steepest}(\nabla J(x + \delta))\bigr),
              \qquad x + \delta \leftarrow \mathrm{clip}_{[0, 1]}

    Madry et al., "Towards Deep Learning Models Resistant to Adversarial Attacks", ICLR 2018. Cutting off pixels never
    makes a difference longer. Each image has a gradient of its own: the objective gives one number per image.

    Parameters
    ----------
    objective : of pixels ``[B, C, H, W]``, one number for each image; larger is worse.
    steps, step : their number and their length :math:`\alpha` in the ball's norm; 0 steps without a start give the
        images themselves.
    start : differences to begin with; zeros if there are none.
    keep : the images of the last step, or for each image the one with the largest objective of all that were visited,
        the first included. The objective is compared with itself alone: a start by another would keep clean images.
    """
    images = images.detach()
    there = images if start is None else clip(images + start, 0, 1)
    best, highest = there, None
    for _ in range(steps):
        there = there.detach().requires_grad_()
        values = objective(there)
        (gradient,) = torch.autograd.grad(values.sum(), there)
        if keep == "best":
            best, highest = _better(best, highest, there, values)
        moved = ball.projected(there.detach() - images + step * steepest(gradient.float(), ball.norm))
        there = clip(images + moved, 0, 1)
    if keep == "best" and steps:
        with torch.no_grad():
            best, _ = _better(best, highest, there, objective(there))
        return best
    return there.detach()


@dataclass(frozen=True)
class Attack:
    """How a training method attacks the images of a batch.

    Parameters
    ----------
    ball : where attacked images may lie.
    steps, step, keep : of ``worst_in_ball``.
    random_start : begin at a random image of the ball.
    """

    ball: Ball
    steps: int
    step: float
    random_start: bool = False
    keep: Keep = "last"

    def __call__(
        self,
        model: nn.Module,
        objective: Callable[[Tensor], Tensor],
        images: Tensor,
        scale: Scale | None,
        draws: torch.Generator | None,
    ) -> Tensor:
        """Attacked forms of normalised images; those themselves where there is neither a step nor a random start.

        The network is in evaluation mode meanwhile, so that attacked images leave its statistics alone. With float16
        the attack runs in float32, because small gradients vanish there.

        Parameters
        ----------
        objective : of normalised images, one number for each; larger is worse.
        scale : how pixels were normalised.
        draws : where a random start comes from.
        """
        assert scale is not None and draws is not None, "the loop gives each batch its scale and random numbers"
        if not self.steps and not self.random_start:
            return images
        pixels = scale.to_pixels(images)
        with evaluating(model), _enough_digits(images.device):
            found = worst_in_ball(
                lambda there: objective(scale.from_pixels(there)),
                pixels,
                self.ball,
                steps=self.steps,
                step=self.step,
                start=self.ball.drawn(pixels, draws) if self.random_start else None,
                keep=self.keep,
            )
        return scale.from_pixels(found)


def _enough_digits(device: torch.device) -> AbstractContextManager[object]:
    half = torch.is_autocast_enabled(device.type) and torch.get_autocast_dtype(device.type) == torch.half
    return torch.autocast(device.type, enabled=False) if half else nullcontext()


def _better(best: Tensor, highest: Tensor | None, there: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    there, values = there.detach(), values.detach()
    if highest is None:
        return there, values
    rises = values > highest
    return torch.where(rises.view(-1, *[1] * (there.ndim - 1)), there, best), torch.where(rises, values, highest)


def _length(values: Tensor) -> Tensor:
    """The Euclidean length of each row, shaped to be divided by."""
    exact = values.flatten(1).to(torch.promote_types(values.dtype, torch.float32))
    flat: Tensor = torch.linalg.vector_norm(exact, dim=1)
    return flat.view(-1, *[1] * (values.ndim - 1))

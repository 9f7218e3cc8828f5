"""Langevin chains: noisy descent of an energy."""

from collections.abc import Callable

import torch
from torch import Tensor

from oodscope.base.errors import ModelError
from oodscope.models.classifier.clip import clip

_ROUNDING = 1e-3
"""How far a start may lie off the set of allowed points."""


def langevin(
    energy: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    steps: int,
    step: float,
    noise: Callable[[int], float],
    draws: torch.Generator,
    project: Callable[[Tensor], Tensor] | None = None,
    longest: float = 0.0,
) -> Tensor:
    r"""The end of a chain for every row of ``start``, as constants: no gradient flows through it.

    .. math:: x \leftarrow \Pi\bigl(x - \lambda \nabla E(x) + \sigma_t \xi\bigr), \qquad \xi \sim \mathcal N(0, I)

    Unadjusted: on :math:`E = x^2/2` the variance is :math:`\sigma^2 / (1 - (1 - \lambda)^2)`.

    Parameters
    ----------
    energy : of each row, ``[N]``.
    steps : how many.
    step : :math:`\lambda`.
    noise : :math:`\sigma_t` of a step.
    draws : where the noise comes from.
    project : :math:`\Pi`, to the nearest allowed point, such as a box of pixels or a sphere. A chain that starts
        outside is refused, and so is one whose points are no numbers any more.
    longest : gradients are cut to this length, row by row of the last axis, as the authors' code does; 0 leaves them.
    """
    place = start.detach()
    if project is not None and bool(((project(place) - place).abs() > _ROUNDING).any()):
        raise ModelError(
            "a Langevin chain starts outside of its box: pixels must lie in [0, 1] and latents on the unit sphere"
        )
    for number in range(steps):
        with torch.enable_grad():
            leaf = place.requires_grad_(True)
            (slope,) = torch.autograd.grad(energy(leaf).sum(), leaf)
        if longest:
            slope = slope * (longest / slope.norm(dim=-1, keepdim=True).clamp(min=longest))
        shaken = torch.randn(place.shape, generator=draws, device=draws.device, dtype=place.dtype).to(place.device)
        place = place.detach() - step * slope + noise(number) * shaken
        place = place if project is None else project(place)
    if not bool(torch.isfinite(place).all()):
        raise ModelError(
            f"a Langevin chain left every box after {steps} steps of {step:g}: the energy or its gradient is not "
            "finite; use shorter steps, or cut the gradients"
        )
    return place.detach()


def unit_box(values: Tensor) -> Tensor:
    """The nearest pixels in [0, 1]."""
    return clip(values, 0, 1)


def unit_sphere(values: Tensor) -> Tensor:
    """Rows of length one."""
    return torch.nn.functional.normalize(values, dim=1)

"""Variations by name."""

import inspect
from typing import Any

from torch import Tensor

from oodscope.base.errors import OodscopeError, UsageError, did_you_mean
from oodscope.base.registry import Registry
from oodscope.generation.variations.base import Variation
from oodscope.generation.variations.composition import Composition

VARIATIONS: Registry[Variation] = Registry("variation", Variation)  # type: ignore[type-abstract]


def create_variation(
    name: str, *, image_shape: tuple[int, int, int] = (3, 32, 32), partners: Tensor | None = None, **params: Any
) -> Variation:
    """A variation by its registry name, or several joined by ``+``.

    ``affine+color`` is affine ∘ color: what stands on the right acts first, so colours change before black comes in
    from outside. ``corruption:fog`` is one type of a corruption, ``corruption`` a choice among several.

    Parameters
    ----------
    image_shape : ``(C, H, W)`` of the images that will be varied.
    partners : ``[P, C, H, W]`` in [0, 1], in-distribution images, for ``blend``.
    params : of the variation's class, where the name is of one: ``create_variation("linf", epsilon=0.03)``.
    """
    if "+" in name:
        if params:
            raise OodscopeError(f"{name}: parameters are given to one variation, not to several; use Composition")
        parts = [create_variation(part.strip(), image_shape=image_shape, partners=partners) for part in name.split("+")]
        return Composition(tuple(reversed(parts)))
    first, colon, types = name.partition(":")
    cls = VARIATIONS.get(first)
    accepted = inspect.signature(cls).parameters
    if colon:
        if "types" not in accepted:
            raise OodscopeError(f"{first} has no types; {name!r} names one. Did you mean {first!r}?")
        params = {**params, "types": (types,)}
    for key in params:
        if key not in accepted:
            hint = did_you_mean(key, accepted) or f" It has: {', '.join(accepted) or 'none'}"
            raise UsageError(f"{first}: no parameter {key!r}.{hint}")
    context = {"image_shape": image_shape, "partners": partners}
    params = {**{key: value for key, value in context.items() if key in accepted and value is not None}, **params}
    missing = [key for key, each in accepted.items() if each.default is each.empty and key not in params]
    if missing:
        raise OodscopeError(f"{first} needs {' and '.join(missing)}: create_variation({first!r}, {missing[0]}=...)")
    return cls(**params)

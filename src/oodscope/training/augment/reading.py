"""Augmentations as a configuration declares them."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

from oodscope.base.config import parse_declared
from oodscope.base.errors import OodscopeError, UnknownNameError, UsageError
from oodscope.training.augment.augmix import AugMix
from oodscope.training.augment.autoaugment import AutoAugment
from oodscope.training.augment.base import Augmentation, Chain, Unchanged
from oodscope.training.augment.crop import Augment
from oodscope.training.augment.cutout import Cutout
from oodscope.training.augment.jitter import ColourJitter
from oodscope.training.augment.noise import Noise
from oodscope.training.augment.pixmix import PixMix
from oodscope.training.augment.randaugment import RandAugment
from oodscope.training.augment.resized_crop import ResizedCrop
from oodscope.training.augment.style import StyleSwap

KINDS: dict[str, type[Augmentation]] = {
    # what cuts whole pictures comes first, as in any list
    cls.kind: cls
    for cls in (
        ResizedCrop,
        Augment,
        Cutout,
        RandAugment,
        AutoAugment,
        AugMix,
        PixMix,
        ColourJitter,
        Noise,
        StyleSwap,
        Unchanged,
    )
}


def read_augment(declared: Any) -> Augmentation:
    """An augmentation by name, as settings with their ``kind`` (``crop`` if none is named), or a list of these."""
    if isinstance(declared, Augmentation):
        return declared
    if isinstance(declared, list | tuple):
        chain = Chain(steps=tuple(read_augment(each) for each in declared))
        late = [part.kind for part in chain.parts()[1:] if part.before_crop]
        if late:
            raise UsageError(f"augmentation {late[0]!r} cuts whole pictures, so it comes first in a list")
        return chain
    if not isinstance(declared, str | Mapping):
        raise UsageError("an augmentation is a name, a mapping such as {kind: cutout, size: 8}, or a list of these")
    settings = {"kind": declared} if isinstance(declared, str) else dict(declared)
    kind = str(settings.pop("kind", Augment.kind))
    if kind not in KINDS:
        raise UnknownNameError("augmentation", kind, KINDS, f"Known: {', '.join(KINDS)}")
    return parse_declared(KINDS[kind], settings, f"augmentation {kind!r}")


def _read(declared: Any) -> Augmentation:
    try:
        return read_augment(declared)
    except OodscopeError as error:
        raise PydanticCustomError("augment", "{reason}", {"reason": str(error)}) from error


def describe_augment(augment: Augmentation) -> Any:
    """What ``read_augment`` makes the same of."""
    if isinstance(augment, Chain):
        return [describe_augment(step) for step in augment.steps]
    settings = augment.model_dump(mode="json")
    return settings if type(augment) is Augment else {"kind": augment.kind, **settings}


AnyAugment = Annotated[Augmentation, BeforeValidator(_read), PlainSerializer(describe_augment)]
"""A field of a recipe that takes any augmentation."""

"""Samplers by name."""

from typing import Any

from oodscope.base.errors import UsageError, did_you_mean
from oodscope.base.registry import Registry
from oodscope.generation.samplers.base import Sampler

SAMPLERS: Registry[Sampler] = Registry("sampler", Sampler)  # type: ignore[type-abstract]


def create_sampler(name: str, **settings: Any) -> Sampler:
    """The sampler called ``name``; unknown names and settings suggest the nearest."""
    cls = SAMPLERS.get(name)
    known = tuple(cls.__dataclass_fields__)  # type: ignore[attr-defined]
    for setting in settings:
        if setting not in known:
            near = did_you_mean(setting, known)
            raise UsageError(f"{name}: unknown setting {setting!r}.{near} Settings: {', '.join(known) or 'none'}")
    return cls(**settings)

"""Unit: a piece of work as data. Who does it, where and how often, changes no digit of what comes of it."""

import re
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from oodscope.base.config import StrictModel
from oodscope.base.errors import UsageError
from oodscope.base.hashing import fingerprint


class Unit(StrictModel):
    """One piece of work, as JSON: no closures, nothing pickled.

    Its result is published under an address of its own (a shard of activations, a checkpoint, a block of a search), or
    in the plan's folder; the first publisher wins, so that doing a unit twice is harmless.

    Parameters
    ----------
    kind : which function does it; see ``oodscope.jobs.units``.
    spec : all that decides the result; models and sets by what they are called, never by object.
    needs : names of the units whose results it reads.
    device : what it runs on: ``gpu`` work takes whole GPUs, ``cpu`` work none, ``any`` takes one where there is one.
    seconds : an estimate, for plans and for order; it decides nothing.
    """

    kind: str
    spec: dict[str, Any]
    needs: tuple[str, ...] = ()
    device: Literal["any", "gpu", "cpu"] = "any"
    gpus: int = Field(default=1, ge=1)
    seconds: float | None = None
    label: str = ""

    @cached_property
    def name(self) -> str:
        """The content address: a hash of kind and spec."""
        return f"{self.kind}-{fingerprint(self.kind, self.spec)[:16]}"

    def __str__(self) -> str:
        return self.label or self.name


class Share(StrictModel):
    """Part ``number`` of ``count``: every unit is in exactly one part.

    >>> [unit for unit in range(7) if Share.read("2/3").owns(unit)]
    [2, 5]
    """

    number: int = Field(default=0, ge=0)
    count: int = Field(default=1, ge=1)

    @classmethod
    def read(cls, text: str) -> "Share":
        """From ``i/n``, counted from 0, as arrays of schedulers count."""
        matched = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
        if matched is None or int(matched[1]) >= int(matched[2]):
            raise UsageError(f"--share {text}: write i/n with i from 0 to n - 1, such as 0/8")
        return cls(number=int(matched[1]), count=int(matched[2]))

    def owns(self, position: int) -> bool:
        return position % self.count == self.number

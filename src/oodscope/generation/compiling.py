"""Compiling: a function that torch compiles for one size of batch, or runs as it is where it cannot."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from oodscope.base.hashing import fingerprint
from oodscope.models.classifier.network import first_line

LIMIT = 64
"""Sizes, networks and variations that one process may compile for; torch's own limit of 8 ends in silence."""
KEPT = 8
"""Compiled functions that wait for the next search; with a network goes a copy of its weights."""

_KEPT: "OrderedDict[str, Compiled]" = OrderedDict()


class Compiled:
    """A function of tensors, compiled at its first call; all calls have the same shapes.

    Parameters
    ----------
    function : what to compile.
    what : its name, for the note where compiling fails.
    """

    def __init__(self, function: Callable[..., Tensor], what: str) -> None:
        self.note: str | None = None
        self._plain = function
        self._what = what
        self._chosen: Callable[..., Tensor] | None = None

    def __call__(self, *tensors: Tensor | None) -> Tensor:
        if self._chosen is None:
            return self._first(*tensors)
        return self._chosen(*tensors)

    def _first(self, *tensors: Tensor | None) -> Tensor:
        compiled = compile_for_one_size(self._plain)
        try:
            with torch._dynamo.config.patch(recompile_limit=LIMIT):
                result = compiled(*tensors)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever a compiler says, the search can do without it
            self.note = f"the {self._what} runs uncompiled: torch.compile failed ({first_line(error)})"
            self._chosen = self._plain
            return self._plain(*tensors)
        self._chosen = compiled
        return result


def compile_for_one_size(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``torch.compile`` for fixed shapes."""
    compiled: Any = torch.compile(function, dynamic=False)
    return compiled  # type: ignore[no-any-return]


def kept(key: list[Any], make: Callable[[], Compiled]) -> Compiled:
    """The compiled function of an earlier search with the same key (plain JSON values), or a new one."""
    name = fingerprint(key)
    if name not in _KEPT:
        _KEPT[name] = make()
    _KEPT.move_to_end(name)
    while len(_KEPT) > KEPT:
        _KEPT.popitem(last=False)
    return _KEPT[name]

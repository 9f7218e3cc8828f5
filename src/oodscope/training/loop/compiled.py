"""Compilation: the kernels of a network's step fused by torch, where torch can."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from oodscope.models.classifier.network import first_line

BACKEND = "inductor"
"""What ``torch.compile`` makes kernels with."""

WORTH_STEPS = 15_000
"""Compiling takes about 19 s on an H200 and saves half a millisecond of a recorded step, more of a plain one."""

_LOG = logging.getLogger(__name__)


def worth_compiling(device: torch.device, steps: int) -> bool:
    """Whether a training that says nothing about it is compiled: a long one on a GPU."""
    return device.type == "cuda" and steps >= WORTH_STEPS


class Compilation:
    """A network whose calls run compiled, for batches of one size; batches of any other size run as they are.

    Training images are dealt into batches of two sizes that differ by one. Kernels for the second would take as long to
    make as those for the first, and serve a tenth of the steps. Whatever cannot be compiled runs as it is, with a note.

    Parameters
    ----------
    model : the network that a recipe's loss calls; its parts, called by themselves, are not compiled.
    size : training images of a step that is compiled.
    wanted : whether to compile at all.
    """

    def __init__(self, model: nn.Module, size: int, wanted: bool) -> None:
        self.model, self.size, self.active = model, size, wanted
        if wanted:
            model.compile(dynamic=False, backend=BACKEND)

    @contextmanager
    def used(self, count: int) -> Iterator[None]:
        """Inside, the network runs compiled if ``count`` training images are what it was compiled for."""
        if not self.active or count == self.size:
            yield
        else:
            with torch.compiler.set_stance("force_eager"):
                yield

    def given_up(self, error: Exception) -> bool:
        """Leave compilation after an error; ``False`` where there was none to leave and the error is the network's."""
        if not self.active:
            return False
        _LOG.info("the network cannot be compiled and runs as it is: %s", first_line(error))
        self.close()
        return True

    def close(self) -> None:
        """The network as it was, and space in torch's cache of compiled code for the next."""
        if self.active:
            self.active = False
            self.model._compiled_call_impl = None  # what ``compile`` set; torch has no public way back
            torch._dynamo.reset()

"""Replay: a GPU repeats the step of a training from a recording, without being told each of its operations again."""

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from oodscope.models.classifier.network import first_line

Step = Callable[[torch.Generator], Sequence[Tensor]]
"""One step of training; all its chance comes from the generator, all that it returns is its losses."""

REHEARSALS = 3
"""Steps taken as they are before one is recorded: libraries choose their algorithms and optimisers their memory."""

_LOG = logging.getLogger(__name__)


class Replay:
    """A step of training, recorded as a CUDA graph once it is known to work, and replayed from then on.

    A step of a small generator is thousands of short operations, and a GPU does them faster than Python names them.
    The digits are those of the plain step. Whatever cannot be recorded (a term that asks the host) is taken plainly, as
    is everything without CUDA.

    Parameters
    ----------
    step : it works on tensors that stay where they are, and depends on nothing else that changes.
    """

    def __init__(self, step: Step, device: torch.device) -> None:
        self._step = step
        self._draws = torch.Generator(device)
        self._taken = 0
        self._recording: tuple[torch.cuda.CUDAGraph, Tensor] | None = None
        # a recording needs a stream of its own, and gradients belong to the stream that they were first taken on
        self._stream: torch.cuda.Stream | None = (
            torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        )

    @property
    def recorded(self) -> bool:
        """Whether steps are replayed by now."""
        return self._recording is not None

    def __call__(self, seed: int) -> Tensor:
        """The losses of one step whose chance begins at ``seed``."""
        self._draws.manual_seed(seed)
        if self._stream is None:
            return self._plain()
        here = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            losses = self._on_stream()
        here.wait_stream(self._stream)
        return losses

    def _on_stream(self) -> Tensor:
        if self._taken == REHEARSALS:
            self._record()
        self._taken += 1
        if self._recording is None:
            return self._plain()
        graph, losses = self._recording
        graph.replay()
        return losses.clone()

    def _plain(self) -> Tensor:
        return torch.stack([loss.detach().float() for loss in self._step(self._draws)])

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._draws)
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                losses = self._plain()
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever forbids a recording, the training can do without it
            # the one that was to be recorded believes for ever that it still is
            self._draws = torch.Generator(self._draws.device).manual_seed(self._draws.initial_seed())
            _LOG.info("the step of a training cannot be recorded and is taken plainly: %s", first_line(error))
        else:
            self._recording = graph, losses

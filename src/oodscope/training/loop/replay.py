"""Replay: a GPU repeats the step of a training from a recording, without a new launch of each of its operations."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer

from oodscope.models.classifier.network import first_line
from oodscope.training.loop.lars import LARS
from oodscope.training.loop.parts import parts_of

Kind = tuple[int, tuple[torch.Size, ...]]
"""What has a recording of its own: a phase of the training, and the shapes of a step's inputs."""

Step = Callable[..., Sequence[Tensor]]
"""One step of training, called with its generators and then its inputs: all its chance comes from the former, all its
data from the latter or from tensors that stay where they are; all that it returns is numbers to report, such as its
losses."""

REHEARSALS = 3
"""Steps taken as they are before one is recorded: libraries choose their algorithms and optimisers their memory."""

_LOG = logging.getLogger(__name__)


class _Recording(NamedTuple):
    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]
    outputs: Tensor


class Replay:
    """A step of training, recorded as a CUDA graph once it is known to work, and replayed from then on.

    A step of a small network is hundreds or thousands of short operations, and a GPU does them faster than Python names
    them. The digits are those of the plain step. Inputs of other shapes are another recording, as is another phase of
    the training. Whatever cannot be recorded (a term that asks the host) is taken plainly, as is everything without
    CUDA.

    Parameters
    ----------
    step : it works on tensors that stay where they are, and depends on nothing else that changes.
    generators : how many generators of random numbers it takes.
    record : whether to try; a step that depends on more than its inputs must be taken plainly.
    """

    def __init__(self, step: Step, device: torch.device, *, generators: int = 1, record: bool = True) -> None:
        self._step, self._device = step, device
        self._record_steps = record and device.type == "cuda"
        # a step that is not to be recorded draws its numbers on the host, so that a GPU sees the same as a CPU
        self._draws = [torch.Generator(device if record else "cpu") for _ in range(generators)]
        self._taken: Counter[Kind] = Counter()
        self._recordings: dict[Kind, _Recording] = {}
        # a recording needs a stream of its own, and gradients belong to the stream that they were first taken on
        self._stream: torch.cuda.Stream | None = (
            torch.cuda.Stream(device) if self._record_steps else None  # type: ignore[no-untyped-call]
        )

    @property
    def recorded(self) -> bool:
        """Whether steps are replayed by now."""
        return bool(self._recordings)

    def __call__(self, *seeds: int, inputs: Sequence[Tensor] = (), phase: int = 0) -> Tensor:
        """The numbers of one step whose chance begins at ``seeds``, one for each generator.

        ``phase`` stands for all that the step does by the host's decision.
        """
        for draws, seed in zip(self._draws, seeds, strict=True):
            draws.manual_seed(seed)
        if self._stream is None:
            return self._plain(inputs)
        here = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            numbers = self._on_stream(inputs, phase)
        here.wait_stream(self._stream)
        return numbers

    def _on_stream(self, inputs: Sequence[Tensor], phase: int) -> Tensor:
        kind = phase, tuple(each.shape for each in inputs)
        if self._taken[kind] == REHEARSALS and self._record_steps:
            self._record(kind, inputs)
        self._taken[kind] += 1
        recording = self._recordings.get(kind)
        if recording is None:
            return self._plain(inputs)
        for place, given in zip(recording.inputs, inputs):
            place.copy_(given)
        recording.graph.replay()
        return recording.outputs.clone()

    def _plain(self, inputs: Sequence[Tensor]) -> Tensor:
        return torch.stack([number.detach().float() for number in self._step(*self._draws, *inputs)])

    def _record(self, kind: Kind, inputs: Sequence[Tensor]) -> None:
        graph = torch.cuda.CUDAGraph()
        for draws in self._draws:
            graph.register_generator_state(draws)
        places = [each.clone() for each in inputs]
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                outputs = self._plain(places)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever forbids a recording, the training can do without it
            # generators that were to be recorded believe for ever that they still are
            seeds = [draws.initial_seed() for draws in self._draws]
            self._draws = [torch.Generator(self._device).manual_seed(seed) for seed in seeds]
            self._recordings, self._record_steps = {}, False
            _LOG.info("the step of a training cannot be recorded and is taken plainly: %s", first_line(error))
        else:
            self._recordings[kind] = _Recording(graph, places, outputs)


def rates_on_device(optimizer: Optimizer, device: torch.device) -> list[Tensor] | None:
    """Let an optimiser work on the device alone, its learning rates included, so that it can be recorded.

    Returns the rates, one tensor for each group, to be filled before each step; ``None`` for an optimiser that must ask
    the host.
    """
    if device.type != "cuda" or any(type(each) not in (SGD, Adam, AdamW, LARS) for each in parts_of(optimizer)):
        return None
    rates = []
    for part in parts_of(optimizer):
        for group in part.param_groups:
            rate = torch.tensor(float(group["lr"]), device=device)
            group.update(lr=rate)
            if type(part) is not LARS:
                group.update(fused=True, foreach=False)
            if "capturable" in group:
                group["capturable"] = True
            rates.append(rate)
    begin_momentum(optimizer)
    return rates


def begin_momentum(optimizer: Optimizer) -> None:
    """Give each parameter of an SGD with momentum its buffer now, of zeros: the first step is the same to the bit.

    A fused SGD refuses parameters of which only some have a buffer: those that a later phase of a training reaches
    first, beside those that moved before.
    """
    for part in parts_of(optimizer):
        for group in part.param_groups if type(part) is SGD else ():
            for parameter in group["params"] if group["momentum"] and not group["dampening"] else ():
                if part.state[parameter].get("momentum_buffer") is None:
                    part.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)

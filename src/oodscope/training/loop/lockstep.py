"""Lockstep: trainings of one recipe under several seeds, a step of each at a time."""

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from oodscope.execution.progress import Advance
from oodscope.training.loop.checkpoint import CHECKPOINT_SECONDS, SAVING_SHARE
from oodscope.training.loop.fabric import arithmetic
from oodscope.training.loop.loop import Loop
from oodscope.training.loop.replay import Replay, Step
from oodscope.training.loop.streams import GENERATORS, Raw


class Lockstep:
    """Several trainings that take each step together; one training is a lockstep of one.

    At batches of 128 a small network leaves half of a large GPU idle. The steps of all trainings are branches of one
    recorded graph, each on a stream of its own, and share nothing: the digits are those of each training alone.

    Parameters
    ----------
    loops : trainings with the same number of steps and the same sizes of batches, on one device.
    """

    def __init__(self, loops: Sequence[Loop]) -> None:
        self.loops, self.device = list(loops), loops[0].device
        for loop in loops:
            loop.share = 1 / len(loops)
        steps = [loop.learn for loop in loops]
        self.replay = Replay(
            steps[0] if len(steps) == 1 else side_by_side(steps, self.device),
            self.device,
            generators=GENERATORS * len(loops),
            record=all(loop.rates is not None for loop in loops),
        )
        self.next_save = time.perf_counter() + CHECKPOINT_SECONDS

    def run(self, until: int, advance: Advance) -> None:
        """Train up to the step ``until``, counted from the start of the training, or to an earlier end."""
        first = self.loops[0]
        for loop in self.loops:
            if loop.step and loop.epoch_is_over:  # killed after the last step of an epoch, before its line was written
                loop.open_epoch()
                loop.close_epoch()
        while first.position < until and not first.ended:
            for loop in self.loops:
                loop.open_epoch()
            for raws in zip(*(loop.streams.serve(loop.epoch, loop.step) for loop in self.loops)):
                self.descend(raws)
                advance(len(self.loops))
                self._save_in_time()
                if first.position == until:
                    break
            if first.epoch_is_over:
                for loop in self.loops:
                    loop.close_epoch()
                self._save_in_time()

    def descend(self, raws: Sequence[list[Raw]]) -> None:
        """One step of each training on its batch."""
        seeds = [seed for loop in self.loops for seed in loop.begin_step()]
        inputs = [each for parts in raws for raw in parts for each in raw]
        phase = self.loops[0].recipe.phase(self.loops[0].epoch)
        numbers = self.replay(*seeds, inputs=inputs, phase=phase).view(len(self.loops), -1)
        for loop, parts, own in zip(self.loops, raws, numbers):
            loop.end_step(own, len(parts[0].labels))

    def _save_in_time(self) -> None:
        begin = time.perf_counter()
        if begin < self.next_save:
            return
        for loop in self.loops:
            loop.save()
        end = time.perf_counter()
        self.next_save = end + max(CHECKPOINT_SECONDS, (end - begin) / SAVING_SHARE)


def side_by_side(steps: Sequence[Step], device: torch.device) -> Step:
    """One step that is several, each with its share of the generators and inputs, on a GPU each on its own stream.

    The streams fork from the current one and join it again, also while it is recorded.
    """
    streams = [torch.cuda.Stream(device) for _ in steps] if device.type == "cuda" else []  # type: ignore[no-untyped-call]

    def share(values: Sequence[Tensor | torch.Generator], number: int) -> Sequence[Tensor | torch.Generator]:
        width = len(values) // len(steps)
        return values[number * width : (number + 1) * width]

    def joint(*given: Tensor | torch.Generator) -> list[Tensor]:
        count = GENERATORS * len(steps)
        draws, inputs = given[:count], given[count:]
        numbers: list[Tensor] = []
        if not streams:
            for place, step in enumerate(steps):
                numbers += step(*share(draws, place), *share(inputs, place))
            return numbers
        here = torch.cuda.current_stream(device)
        for place, (step, stream) in enumerate(zip(steps, streams)):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                numbers += [each.detach().float() for each in step(*share(draws, place), *share(inputs, place))]
        for stream in streams:
            here.wait_stream(stream)
        return numbers

    return joint


def run_loops(loops: Sequence[Loop], advance: Advance) -> None:
    """Train all from their last checkpoints, or from the start, to the end.

    A kill between two checkpoints leaves one training behind another; those behind first catch up alone.
    """
    for loop in loops:
        loop.resume()
    total = loops[0].total
    advance(sum(loop.position for loop in loops))
    with arithmetic(loops[0].device, loops[0].recipe.precision):
        ahead = max(loop.position for loop in loops)
        for loop in loops:
            if loop.position < ahead:
                Lockstep([loop]).run(ahead, advance)
        Lockstep(loops).run(total, advance)
        for loop in loops:
            advance(max(0, total - loop.position))
            loop.close()

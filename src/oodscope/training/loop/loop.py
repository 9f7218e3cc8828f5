"""One training: its steps, epochs and checkpoints, and the way back to where it was killed."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.compiled import Compilation, worth_compiling
from oodscope.training.loop.fabric import open_fabric, quiet
from oodscope.training.loop.finished import load_weights
from oodscope.training.loop.history import Epoch, Meter
from oodscope.training.loop.logits import logits_of
from oodscope.training.loop.parts import here
from oodscope.training.loop.patience import Patience
from oodscope.training.loop.randomness import generator, restore_rng, rng_state, seed_of
from oodscope.training.loop.replay import begin_momentum, rates_on_device
from oodscope.training.loop.shared import SynchronisedNorms, own_part, total
from oodscope.training.loop.streams import Raw, Stream, Streams
from oodscope.training.recipe import Batch, Recipe, Step

if TYPE_CHECKING:
    from lightning_fabric import Fabric

GPU_BATCH = 1024
"""Validation images that a GPU takes at once."""


class Objective(nn.Module):
    """The recipe's loss as a module.

    Fabric watches only the forward of the module it was given. Were that the network itself, a recipe could
    not call the network's parts; so it is the whole step, and within it a recipe may call what it likes.
    """

    def __init__(self, recipe: Recipe, model: nn.Module) -> None:
        super().__init__()
        self.recipe = recipe
        self.model = model

    def forward(self, batch: Batch) -> Step:
        return self.recipe.loss(self.model, batch)


class Loop:
    """One training on one device: its state is exactly what a checkpoint holds. ``Lockstep`` drives it.

    Where ranks share it, each has a loop: all take the same steps on the same batches, each computes the gradients of
    its rows, and the first writes.

    Parameters
    ----------
    model : the prepared network.
    streams : its data, on the device.
    checkpoints : where its state is kept; ``None`` keeps none.
    compiled : whether torch fuses the network's kernels; ``None`` decides by device and length.
    fabric : of the ranks that share the training; by default one of this device is opened.
    """

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        streams: Streams,
        checkpoints: Checkpoints | None = None,
        *,
        compiled: bool | None = None,
        fabric: "Fabric | None" = None,
    ) -> None:
        self.model, self.recipe, self.streams, self.checkpoints = model, recipe, streams, checkpoints
        self.device = device = streams.train.device
        self.ranks = streams.ranks
        self.total = recipe.total_steps(streams.steps)
        self.fabric = fabric or open_fabric(device, recipe.precision)
        model.to(memory_format=torch.channels_last)
        self.optimizer = recipe.optimizer(model)
        for group in self.optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        with quiet():
            self.objective, self.stepper = self.fabric.setup(Objective(recipe, model), self.optimizer)
        synced = recipe.sync_batchnorm and not self.ranks.alone
        self.norms = SynchronisedNorms(model) if synced else None
        # a scaler of 16-bit gradients looks at each step before it is taken, and ranks wait for each other in it
        record = recipe.can_be_recorded() and recipe.precision != "16-mixed" and self.ranks.alone
        self.rates = rates_on_device(self.optimizer, device) if record else None
        wanted = self.rates is not None and worth_compiling(device, self.total) if compiled is None else compiled
        self.compilation = Compilation(model, -(-len(streams.train) // streams.steps), wanted)
        self.still = [each for each in model.modules() if _is_frozen(each)]
        self.epoch, self.step, self.share = 0, 0, 1.0
        self.history: list[Epoch] = []
        self.last: dict[str, Tensor] | None = None
        self.meter = Meter(epoch=0)
        self.patience = Patience(recipe.patience, model, recipe.keep == "best")

    @property
    def position(self) -> int:
        """Steps taken since the start of the training."""
        return self.epoch * self.streams.steps + self.step

    @property
    def ended(self) -> bool:
        """Whether all steps are done, or patience is at its end."""
        return self.position >= self.total or self.patience.ended(self.history)

    @property
    def epoch_is_over(self) -> bool:
        return self.step == self.streams.steps or self.position == self.total

    def open_epoch(self) -> None:
        """Before the first step of an epoch, or of what is left of it."""
        self.clock = time.perf_counter()
        if self.step == 0:
            self.objective.eval()
            with self._eager():
                self.recipe.start_epoch(self.model, self.epoch, self.streams)
        self.streams.outlier_rows = self.recipe.outliers(self.model)
        self.objective.train()
        for module in self.still:
            module.eval()

    def begin_step(self) -> tuple[int, ...]:
        """Set the learning rates of the next step; the seeds of its random numbers."""
        self.factor = self.recipe.schedule(self.position, self.streams.steps)
        for number, group in enumerate(self.optimizer.param_groups):
            if self.rates is None:
                group["lr"] = group["initial_lr"] * self.factor
            else:
                self.rates[number].fill_(group["initial_lr"] * self.factor)
        return self.streams.seeds(self.epoch, self.step)

    def learn(self, view: torch.Generator, ood: torch.Generator, loss: torch.Generator, *raws: Tensor) -> list[Tensor]:
        """One step; nothing in it asks the host, unless the recipe does."""
        width = len(Raw._fields)
        parts = [Raw(*raws[start : start + width]) for start in range(0, len(raws), width)]
        batch = self.streams.batch(parts, [view, ood, loss], self.epoch)
        if self.ranks.alone:
            result = self._gradients(batch)
        else:
            batch, weight = own_part(batch, self.ranks)
            # dropout of each rank's rows: a function of the place, so that a resumed training repeats it
            torch.manual_seed(seed_of("rank", self.recipe.seed, self.position, self.ranks.number))
            result = self._gradients(batch, weight)
        if self.recipe.clip_norm:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.stepper.step()
        correct = None if result.logits is None else (result.logits.detach().argmax(1) == batch.labels).sum()
        if self.ranks.alone:
            return [result.loss] if correct is None else [result.loss, correct]
        shared = result.loss * (weight / self.ranks.count)
        return total([shared] if correct is None else [shared, correct])

    def _gradients(self, batch: Batch, weight: float = 1.0) -> Step:
        self.stepper.zero_grad()
        try:
            with self.compilation.used(len(batch.labels)):
                result: Step = self.objective(batch)
                self.fabric.backward(result.loss if weight == 1.0 else result.loss * weight)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            if not self.compilation.given_up(error):
                raise
            return self._gradients(batch, weight)
        return result

    def end_step(self, numbers: Tensor, count: int) -> None:
        """Count a step that was taken on ``count`` training images."""
        rate = self.optimizer.param_groups[0]["initial_lr"] * self.factor
        self.meter.add(numbers, count, self.step, rate)
        self.step += 1

    def close_epoch(self) -> None:
        """Validate, and write the epoch's line of history."""
        accuracy = loss = None
        if self.streams.val:
            if self.recipe.labelled:
                accuracy = self._accuracy(self.streams.val)
            else:
                loss = self._loss(self.streams.val)
        self._tick()
        self.history.append(self.meter.close(accuracy, loss))
        self.patience.see(self.history)
        self.epoch, self.step = self.epoch + 1, 0
        self.meter = Meter(self.epoch)

    def close(self) -> None:
        """The last pass of the recipe, then the weights that are kept, on the CPU."""
        if self.recipe.keep == "best":
            self.last = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
        self.patience.restore()
        self.compilation.close()
        if self.norms is not None:
            self.norms.close()
        self.objective.eval()
        self.recipe.finish(self.model, self.streams)
        self.model.to("cpu").to(memory_format=torch.contiguous_format)

    @torch.no_grad()
    def _accuracy(self, stream: Stream) -> float:
        hits = [torch.zeros((), dtype=torch.long, device=self.device)]
        # ranks judge a share each
        share = None if self.ranks.alone else self.ranks.share(len(stream))
        for batch in self._judged(stream, share):
            with self.fabric.autocast():
                predicted = logits_of(self.model(batch.images)).argmax(1)
            hits.append((predicted == batch.labels).sum())
        correct = torch.stack(hits).sum()
        return int(correct if self.ranks.alone else total([correct])[0]) / len(stream)

    @torch.no_grad()
    def _loss(self, stream: Stream) -> float:
        """The mean loss of images as they are, under the same random numbers after every epoch."""
        draws = generator("val", self.recipe.seed)
        sums = [
            self.objective(batch._replace(draws=draws)).loss.double() * len(batch.rows)
            for batch in self._judged(stream)
        ]
        return float(torch.stack(sums).sum()) / len(stream)

    def _judged(self, stream: Stream, share: slice | None = None) -> Iterator[Batch]:
        self.objective.eval()
        with self._eager():
            yield from stream.walk(GPU_BATCH if self.device.type == "cuda" else self.recipe.batch_size, share)

    def _eager(self) -> AbstractContextManager[None]:
        """Inside, nothing is compiled: what is called with many sizes would be compiled for each."""
        return self.compilation.used(-1)

    def _tick(self) -> None:
        """Add the time since the last tick to the epoch's seconds."""
        now = time.perf_counter()
        self.meter.sums["seconds"] += (now - self.clock) * self.share
        self.clock = now

    def save(self) -> None:
        """Write a checkpoint, if they are kept."""
        if self.checkpoints is not None and self.ranks.first:
            self.checkpoints.save(self._state())

    def resume(self) -> None:
        """Go to the last checkpoint, if there is one; ranks to that which the first has read."""
        if self.checkpoints is None:
            return
        state = self.checkpoints.load() if self.ranks.first else None
        if not self.ranks.alone:
            state = self.fabric.broadcast(state)
        if state:
            self._restore(state, self.checkpoints)

    def _state(self) -> dict[str, Any]:
        self._tick()
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "precision": self.fabric.strategy.precision.state_dict(),
            "rng": rng_state(self.device),
            "epoch": self.epoch,
            "step": self.step,
            "history": [epoch.model_dump() for epoch in self.history],
            "meter": self.meter.flush(),
            "best": self.patience.best,
        }

    def _restore(self, state: dict[str, Any], checkpoints: Checkpoints) -> None:
        load_weights(self.model, state["model"], checkpoints.latest)
        here(state["optimizer"], self.optimizer)
        self.optimizer.load_state_dict(state["optimizer"])
        for group, rate in zip(self.optimizer.param_groups, self.rates or ()):
            group["lr"] = rate
        if self.rates is not None:
            begin_momentum(self.optimizer)
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        self.epoch, self.step = state["epoch"], state["step"]
        self.history = [Epoch.model_validate(epoch) for epoch in state["history"]]
        self.meter = Meter(self.epoch, state["meter"])
        self.patience.best = {name: value.to(self.device) for name, value in state.get("best", {}).items()}
        restore_rng(state["rng"], self.device)


def _is_frozen(module: nn.Module) -> bool:
    """Whether all weights of its own are frozen: its running statistics then stay, too."""
    own = list(module.parameters(recurse=False))
    return bool(own) and not any(each.requires_grad for each in own)

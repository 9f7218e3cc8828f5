"""The training loop: steps, epochs, checkpoints, and the way back to where it was killed."""

import time
from typing import Any

import torch
from torch import Tensor, nn

from oodscope.data.preprocess import Preprocess
from oodscope.execution.progress import Advance
from oodscope.training.loop.checkpoint import Checkpoints
from oodscope.training.loop.fabric import arithmetic, open_fabric, quiet
from oodscope.training.loop.finished import load_weights
from oodscope.training.loop.history import Epoch, Meter
from oodscope.training.loop.logits import logits_of
from oodscope.training.loop.randomness import restore_rng, rng_state
from oodscope.training.loop.replay import Replay, rates_on_device
from oodscope.training.loop.sets import Sets
from oodscope.training.loop.streams import Raw, Stream, Streams
from oodscope.training.recipe import Batch, Recipe, Step


class Patience:
    """Watches one training. Only the best weights are state of its own; the rest is in the history.

    Parameters
    ----------
    epochs : how many without a better accuracy to bear; 0 never stops and keeps the last weights.
    model : the network that is trained; the best weights are copies, on its device.
    keep_best : keep the best weights without ever stopping, the latest of equals.
    """

    def __init__(self, epochs: int, model: nn.Module, keep_best: bool = False) -> None:
        self.epochs = epochs
        self.model = model
        self.keep_best = keep_best
        self.best: dict[str, Tensor] = {}

    def see(self, history: list[Epoch]) -> None:
        """After an epoch: keep its weights if they are the best so far. Under patience the first of equals stays."""
        accuracies = [epoch.val_accuracy or 0.0 for epoch in history]
        best = _best(history) == len(history) if self.epochs else self.keep_best and accuracies[-1] == max(accuracies)
        if best:
            self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def ended(self, history: list[Epoch]) -> bool:
        """Whether it has borne enough."""
        return 0 < self.epochs <= len(history) - _best(history)

    def restore(self) -> None:
        """Put the best weights back."""
        if self.best:
            self.model.load_state_dict(self.best)


def _best(history: list[Epoch]) -> int:
    """The number of the best epoch, from 1; 0 before the first."""
    accuracies = [epoch.val_accuracy or 0.0 for epoch in history]
    return accuracies.index(max(accuracies)) + 1 if accuracies else 0


CHECKPOINT_SECONDS = 10.0
"""The most work that a kill can lose, unless saving is so slow that this would waste time."""

SAVING_SHARE = 0.05
"""The most time, of all, that goes into checkpoints."""

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
    """One training on one device: its state is exactly what a checkpoint holds."""

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        sets: Sets,
        preprocess: Preprocess,
        checkpoints: Checkpoints | None,
        device: torch.device,
    ) -> None:
        self.model, self.recipe, self.checkpoints, self.device = model, recipe, checkpoints, device
        self.streams = Streams(recipe, sets, preprocess, device)
        self.fabric = open_fabric(device, recipe.precision)
        model.to(memory_format=torch.channels_last)
        self.optimizer = recipe.optimizer(model)
        for group in self.optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        with quiet():
            self.objective, self.stepper = self.fabric.setup(Objective(recipe, model), self.optimizer)
        # a scaler of 16-bit gradients looks at each step before it is taken
        record = recipe.can_be_recorded() and recipe.precision != "16-mixed"
        self.rates = rates_on_device(self.optimizer, device) if record else None
        self.replay = Replay(self._learn, device, generators=3, record=self.rates is not None)
        self.epoch, self.step = 0, 0
        self.history: list[Epoch] = []
        self.last: dict[str, Tensor] | None = None
        self.meter = Meter(epoch=0)
        self.patience = Patience(recipe.patience, model, recipe.keep == "best")
        self.next_save = time.perf_counter() + CHECKPOINT_SECONDS

    def run(self, advance: Advance) -> list[Epoch]:
        """Train from the last checkpoint, or from the start, to the end, which patience may bring early."""
        if self.checkpoints and (state := self.checkpoints.load()):
            self._restore(state, self.checkpoints)
        advance(self.epoch * self.streams.steps + self.step)
        with arithmetic(self.device, self.recipe.precision):
            while self.epoch < self.recipe.epochs and not self.patience.ended(self.history):
                self._run_epoch(advance)
                if time.perf_counter() >= self.next_save:
                    self._save()
        advance((self.recipe.epochs - self.epoch) * self.streams.steps)
        if self.recipe.keep == "best":
            self.last = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
        self.patience.restore()
        self.model.to("cpu").to(memory_format=torch.contiguous_format)
        return self.history

    def _run_epoch(self, advance: Advance) -> None:
        self.clock = time.perf_counter()
        if self.step == 0:
            self.objective.eval()
            self.recipe.start_epoch(self.model, self.epoch, self.streams)
        self.objective.train()
        for raws in self.streams.serve(self.epoch, self.step):
            self._descend(raws)
            self.step += 1
            advance(1)
            if time.perf_counter() >= self.next_save:
                self._save()
        accuracy = self._accuracy(self.streams.val) if self.streams.val else None
        self._tick()
        self.history.append(self.meter.close(accuracy))
        self.patience.see(self.history)
        self.epoch, self.step = self.epoch + 1, 0
        self.meter = Meter(self.epoch)

    def _descend(self, raws: list[Raw]) -> None:
        steps = self.streams.steps
        factor = self.recipe.schedule(self.epoch * steps + self.step, steps)
        for number, group in enumerate(self.optimizer.param_groups):
            if self.rates is None:
                group["lr"] = group["initial_lr"] * factor
            else:
                self.rates[number].fill_(group["initial_lr"] * factor)
        seeds = self.streams.seeds(self.epoch, self.step)
        numbers = self.replay(*seeds, inputs=[each for raw in raws for each in raw])
        rate = self.optimizer.param_groups[0]["initial_lr"] * factor
        self.meter.add(numbers, len(raws[0].labels), self.step, rate)

    def _learn(self, view: torch.Generator, ood: torch.Generator, loss: torch.Generator, *raws: Tensor) -> list[Tensor]:
        """One step; nothing in it asks the host, unless the recipe does."""
        width = len(Raw._fields)
        parts = [Raw(*raws[start : start + width]) for start in range(0, len(raws), width)]
        batch = self.streams.batch(parts, [view, ood, loss], self.epoch)
        self.stepper.zero_grad()
        result = self.objective(batch)
        self.fabric.backward(result.loss)
        self.stepper.step()
        if result.logits is None:
            return [result.loss]
        return [result.loss, (result.logits.detach().argmax(1) == batch.labels).sum()]

    @torch.no_grad()
    def _accuracy(self, stream: Stream) -> float:
        self.objective.eval()
        hits = []
        for batch in stream.walk(GPU_BATCH if self.device.type == "cuda" else self.recipe.batch_size):
            with self.fabric.autocast():
                predicted = logits_of(self.model(batch.images)).argmax(1)
            hits.append((predicted == batch.labels).sum())
        return int(torch.stack(hits).sum()) / len(stream)

    def _tick(self) -> None:
        """Add the time since the last tick to the epoch's seconds."""
        now = time.perf_counter()
        self.meter.sums["seconds"] += now - self.clock
        self.clock = now

    def _save(self) -> None:
        if self.checkpoints is None:
            return
        begin = time.perf_counter()
        self.checkpoints.save(self._state())
        end = time.perf_counter()
        self.next_save = end + max(CHECKPOINT_SECONDS, (end - begin) / SAVING_SHARE)

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
        # where the optimiser works is this device's business, not the checkpoint's
        for saved, ours in zip(state["optimizer"]["param_groups"], self.optimizer.param_groups):
            saved.update({key: ours[key] for key in ("lr", "fused", "foreach", "capturable") if key in ours})
        self.optimizer.load_state_dict(state["optimizer"])
        for group, rate in zip(self.optimizer.param_groups, self.rates or ()):
            group["lr"] = rate
        self.fabric.strategy.precision.load_state_dict(state["precision"])
        self.epoch, self.step = state["epoch"], state["step"]
        self.history = [Epoch.model_validate(epoch) for epoch in state["history"]]
        self.meter = Meter(self.epoch, state["meter"])
        self.patience.best = {name: value.to(self.device) for name, value in state.get("best", {}).items()}
        restore_rng(state["rng"], self.device)

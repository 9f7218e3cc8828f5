"""Session: heads that train at once, from first weights to the best ones."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oodscope.base.errors import OodscopeError
from oodscope.data.addressed import Draws
from oodscope.execution.progress import Advance
from oodscope.training.heads.deck import Deck, keep_share, kept, seeded
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.stack import Stack
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.trained import TrainedHead


def class_weights(labels: Tensor, valid: Tensor, num_classes: int, *, balanced: bool) -> Tensor:
    """``[T, C]``: one over the number of a task's training rows of each class; ones if not balanced.

    Only ratios count, because the loss divides by the sum of the weights.
    """
    if not balanced:
        return torch.ones(len(labels), num_classes, device=labels.device)
    counts = torch.zeros(len(labels), num_classes, device=labels.device)
    counts.scatter_add_(1, labels, valid.to(counts.dtype))
    return torch.where(counts > 0, 1 / counts, 0.0)


def weighted_cross_entropy(logits: Tensor, labels: Tensor, valid: Tensor, weights: Tensor) -> Tensor:
    """``[T]``: the mean of the rows' cross-entropies weighted by their classes, as ``nn.CrossEntropyLoss`` takes it."""
    of_row = weights.gather(1, labels) * valid
    wrong = -logits.log_softmax(dim=2).gather(2, labels[..., None])[..., 0]
    return (of_row * wrong).sum(dim=1) / of_row.sum(dim=1)


def from_uniform(logits: Tensor, valid: Tensor) -> Tensor:
    r"""``[T]``: the mean of :math:`\mathrm{KL}(\mathrm{uniform} \Vert p)` over the rows; 0 where there are none."""
    apart = -logits.log_softmax(dim=2).mean(dim=2) - math.log(logits.shape[2])
    return (apart * valid).sum(dim=1) / valid.sum(dim=1).clamp(min=1)


@dataclass(frozen=True, eq=False)
class Best:
    """Weights, how many validation rows they got right, and after which epoch (from 1) they were kept; ``[T]`` each.

    All of it stays on the device: which heads improved is a mask there, not a question asked from here.
    """

    stack: Stack
    correct: Tensor
    epoch: Tensor

    @classmethod
    def none(cls, stack: Stack) -> "Best":
        """Before the first epoch."""
        count, device = len(stack.hidden), stack.hidden.device
        return cls(stack, torch.full((count,), -1.0, device=device), torch.zeros(count, device=device))

    def after(self, epoch: int, stack: Stack, correct: Tensor, *, always: bool) -> "Best":
        """The better of the two for every head; the newer for all if ``always``."""
        better = correct >= 0 if always else correct > self.correct
        return Best(
            stack.where(better, self.stack),
            torch.where(better, correct, self.correct),
            torch.where(better, float(epoch), self.epoch),
        )

    def take(self, tasks: Tensor) -> "Best":
        """Of these heads."""
        return Best(self.stack.take(tasks), self.correct[tasks], self.epoch[tasks])


_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Kingma & Ba, ICLR 2015, with the authors' constants and no weight decay."""

    def __init__(self, weights: tuple[Tensor, ...], rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.means = [torch.zeros_like(each) for each in weights]
        self.squares = [torch.zeros_like(each) for each in weights]

    @torch.no_grad()
    def step(self, weights: tuple[Tensor, ...], slopes: tuple[Tensor, ...]) -> None:
        """Move the weights in place."""
        self.steps += 1
        rate = self.rate / (1 - _FIRST**self.steps)
        spread = (1 - _SECOND**self.steps) ** 0.5
        for weight, slope, mean, square in zip(weights, slopes, self.means, self.squares):
            mean.lerp_(slope, 1 - _FIRST)
            square.mul_(_SECOND).addcmul_(slope, slope, value=1 - _SECOND)
            weight.addcdiv_(mean, square.sqrt().div_(spread).add_(_EPSILON), value=-rate)

    def keep(self, tasks: Tensor) -> None:
        """Forget all heads but these."""
        self.means = [each[tasks] for each in self.means]
        self.squares = [each[tasks] for each in self.squares]


@dataclass(frozen=True, eq=False)
class Table:
    """What all tasks share, on the device: embeddings ``[N, D]``, labels ``[N]``, outliers' embeddings."""

    embeddings: Tensor
    labels: Tensor
    outliers: Tensor | None
    classes: int


class Session:
    """One group of tasks: all with as many steps per epoch, all fresh or all fine-tuned with outliers.

    Nothing asks the device within an epoch. After each, one look shows which heads have stopped: they are handed out
    and the others go on without them, which changes nothing for these.
    """

    def __init__(self, recipe: HeadRecipe, table: Table, tasks: Sequence[HeadTask]) -> None:
        self.recipe, self.table, self.tasks = recipe, table, list(tasks)
        self.device = table.embeddings.device
        self.numbers = list(range(len(tasks)))
        starts = [task.start for task in tasks if task.start is not None]
        self.exposed = bool(starts)
        self.epochs = recipe.oe_epochs if self.exposed else recipe.epochs
        self.patience = 0 if self.exposed else recipe.patience
        self.steps = math.ceil(len(tasks[0].train) / recipe.batch_size)
        self.draws = self._seeded()
        self.train = Deck.of([task.train for task in tasks], self.device)
        self.val = Deck.of([task.val for task in tasks], self.device)
        self.width = math.ceil(self.train.longest / self.steps)
        self.ood = self._outliers() if self.exposed else None
        labels = table.labels[self.train.rows]
        self.weights = class_weights(labels, self.train.valid(), table.classes, balanced=recipe.balanced)
        self.scale = _scale(table.embeddings, self.train)
        shape = (table.embeddings.shape[1], recipe.hidden, table.classes)
        first = Stack.of(starts, self.scale) if self.exposed else Stack.drawn(self.draws, *shape)
        self.stack = first.trainable()
        self.adam = Adam(self.stack.tensors, recipe.learning_rate)
        self.best = Best.none(first)

    def run(self, advance: Advance) -> list[TrainedHead]:
        """Train all heads; ``advance`` is called for every epoch of every head, those it did not need included."""
        trained: dict[int, TrainedHead] = {}
        for epoch in range(1, self.epochs + 1):
            losses = self._epoch(epoch)
            if self.patience or epoch == self.epochs:
                self.best = self.best.after(epoch, self.stack, self._correct(), always=not self.patience)
            looked = torch.stack([losses, self.best.correct, self.best.epoch]).tolist()  # the one look at the device
            self._check(looked[0], epoch)
            stale = [epoch - kept for kept in looked[2]]
            stop = [epoch == self.epochs or 0 < self.patience <= each for each in stale]
            advance(len(stop) + sum(stop) * (self.epochs - epoch))
            if any(stop):
                trained |= self._hand_out(stop, looked[1], looked[2])
            if not self.numbers:
                break
        return [trained[number] for number in range(len(self.tasks))]

    def _epoch(self, epoch: int) -> Tensor:
        """One pass over the training rows; the mean loss of each head."""
        order = self.train.shuffled(self.draws, f"order {epoch}")
        ood = None if self.ood is None else self.ood.shuffled(self.draws, f"outliers {epoch}")
        total = torch.zeros(len(self.numbers), device=self.device)
        for step in range(self.steps):
            losses = self._known(order, epoch, step)
            if ood is not None:
                losses = losses + self.recipe.oe_weight * self._unknown(ood, epoch, step)
            slopes = torch.autograd.grad(losses.sum(), self.stack.tensors)
            self.adam.step(self.stack.tensors, slopes)
            total += losses.detach()
        return total / self.steps

    def _known(self, order: Deck, epoch: int, step: int) -> Tensor:
        rows, valid = order.dealt(step, self.steps)
        logits = self._logits(self.table.embeddings, rows, f"{epoch} {step}")
        return weighted_cross_entropy(logits, self.table.labels[rows], valid, self.weights)

    def _unknown(self, order: Deck, epoch: int, step: int) -> Tensor:
        assert self.table.outliers is not None
        rows, valid = order.dealt(step, self.steps)
        return from_uniform(self._logits(self.table.outliers, rows, f"outliers {epoch} {step}"), valid)

    def _logits(self, table: Tensor, rows: Tensor, place: str) -> Tensor:
        """Logits of these rows, with dropout before both layers."""
        dropout, share = self.recipe.dropout, keep_share(self.recipe.dropout)
        embeddings = _gathered(table, rows)
        if dropout:
            embeddings.mul_(kept(self.draws, f"embeddings {place}", embeddings.shape, dropout))
        features = self.stack.features(embeddings, 1 / (share * self.scale))
        if dropout:
            features = features * (kept(self.draws, f"features {place}", features.shape, dropout) / share)
        return self.stack.logits(features, table.dtype)

    @torch.no_grad()
    def _correct(self) -> Tensor:
        """How many of its validation rows each head gets right."""
        correct, steps = torch.zeros(len(self.numbers), device=self.device), math.ceil(self.val.longest / self.width)
        for step in range(steps):
            rows, valid = self.val.dealt(step, steps)
            features = self.stack.features(_gathered(self.table.embeddings, rows), 1 / self.scale)
            said = self.stack.logits(features, self.table.embeddings.dtype).argmax(dim=2)
            correct += ((said == self.table.labels[rows]) & valid).sum(dim=1)
        return correct

    def _check(self, losses: list[float], epoch: int) -> None:
        for number, loss in zip(self.numbers, losses):
            if not math.isfinite(loss):
                raise OodscopeError(
                    f"training diverged: the loss of the head with seed {self.tasks[number].seed} is {loss} in epoch "
                    f"{epoch}, at learning rate {self.recipe.learning_rate:.3g}. Lower it, or look at the embeddings"
                )

    def _hand_out(self, stop: list[bool], correct: list[float], epochs: list[float]) -> dict[int, TrainedHead]:
        """The heads that have stopped; the session goes on with the others."""
        done = [place for place, each in enumerate(stop) if each]
        numbers = [self.numbers[place] for place in done]
        judged = [len(self.tasks[number].val) for number in numbers]
        accuracies = [correct[place] / count if count else None for place, count in zip(done, judged)]
        chosen = torch.tensor(done, device=self.device)
        stack = self.best.stack.take(chosen)
        heads = stack.trained(self.scale[chosen], [int(epochs[place]) for place in done], accuracies)
        self._go_on([place for place, each in enumerate(stop) if not each])
        return dict(zip(numbers, heads))

    def _go_on(self, places: list[int]) -> None:
        self.numbers = [self.numbers[place] for place in places]
        if not places:
            return
        going = torch.tensor(places, device=self.device)
        self.draws = self._seeded()
        self.train, self.val = self.train.take(going), self.val.take(going)
        self.weights, self.scale = self.weights[going], self.scale[going]
        self.stack, self.best = self.stack.take(going).trainable(), self.best.take(going)
        self.adam.keep(going)

    def _seeded(self) -> Draws:
        seeds = [self.tasks[number].seed for number in self.numbers]
        return seeded(seeds, "exposure" if self.exposed else "training", self.device)

    def _outliers(self) -> Deck:
        """Each task's own choice of outliers."""
        rows = [task.outliers for task in self.tasks if task.outliers is not None]
        wanted = [max(1, round(self.recipe.oe_share * len(task.train))) for task in self.tasks]
        counts = [min(len(each), count) for each, count in zip(rows, wanted)]
        return Deck.of(rows, self.device).shuffled(self.draws, "choice").first(counts)


def _gathered(table: Tensor, rows: Tensor) -> Tensor:
    """``[T, B, D]``, a copy."""
    return table.index_select(0, rows.flatten()).view(*rows.shape, -1)


def _scale(embeddings: Tensor, train: Deck) -> Tensor:
    """``[T]``: the root mean square of the embeddings of each task's training rows; 1 where all are zero."""
    squares = torch.linalg.vector_norm(embeddings, dim=1, dtype=torch.float32).square() / embeddings.shape[1]
    mean = (squares[train.rows] * train.valid()).sum(dim=1) / train.counts
    return torch.where(mean > 0, mean, 1.0).sqrt()

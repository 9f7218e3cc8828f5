"""Recipe: what distinguishes one training method from another."""

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from oodscope.base.config import StrictModel
from oodscope.training.augment.crop import Augment

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams


class Batch(NamedTuple):
    """Images on the device, ready for the network, and what is known about them.

    ``images`` is what the recipe's ``view`` made, normalised: a recipe with two views gets twice as many
    images as labels. ``rows`` are the places of the images in their set, for methods that remember
    something about each image. ``ood`` is the outliers' batch of the same step, for recipes that ask for it;
    ``weights`` is what each label counts, for recipes that are ``balanced``.
    """

    images: Tensor
    labels: Tensor
    rows: Tensor
    epoch: int = 0
    ood: "Batch | None" = None
    weights: Tensor | None = None


Precision = Literal["32-true", "bf16-mixed", "16-mixed"]

_LAST_RATE = 1e-6
_OFF = {"algorithm": "sgd", "patience": 0, "balanced": False}


class Step(NamedTuple):
    """The loss to descend and, for the training accuracy, logits with a row for every label, if there are any."""

    loss: Tensor
    logits: Tensor | None = None


class Recipe(StrictModel, ABC):
    """A training method: its hyper-parameters as fields, its loss as a method.

    A new method is a subclass with a ``loss``, and whatever else it does differently: ``prepare`` adds heads,
    ``view`` augments, ``optimizer`` groups parameters, ``start_epoch`` looks at all the data. A recipe is
    frozen and remembers nothing: what a method learns or accumulates (prototypes, queues, adapted weights)
    lives in parameters and buffers of the prepared network, where checkpoints find it. Random draws come
    from torch's generators, which checkpoints save too.

    Parameters
    ----------
    epochs : passes over the training images.
    batch_size : the most images of one step.
    learning_rate : at its highest, after the warm-up.
    weight_decay, momentum : of SGD with Nesterov's momentum; Adam knows the first only.
    algorithm : ``sgd`` or ``adam``.
    warmup_epochs : the learning rate rises linearly over so many epochs, then falls along a cosine.
    seed : decides initial weights (where ``train`` builds the network), order, augmentation and dropout.
    precision : of the forward and backward pass; weights are always 32-bit. ``16-mixed`` needs a GPU.
    augment : how training images are varied.
    ood_batch_size : outliers beside each batch, for methods that learn from them; 0 for all others.
    patience : stop after so many epochs without a better validation accuracy, and keep the weights of the best epoch;
        0 makes all epochs and keeps the last.
    balanced : weight images by the inverse frequency of their class, for methods that look at ``batch.weights``.

    Examples
    --------
    >>> from oodscope.training.recipe import Step
    >>> class Squared(oods.Recipe):
    ...     def loss(self, model, batch):
    ...         logits = model(batch.images)
    ...         wanted = torch.nn.functional.one_hot(batch.labels, logits.shape[1])
    ...         return Step(((logits - wanted) ** 2).mean(), logits)
    >>> trained = oods.train(model, Squared(epochs=1), bench.id_train, oods.Preprocess(size=8), device="cpu")
    """

    epochs: int = Field(default=100, gt=0)
    batch_size: int = Field(default=128, gt=0)
    learning_rate: float = Field(default=0.1, gt=0)
    weight_decay: float = Field(default=5e-4, ge=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    warmup_epochs: float = Field(default=0.0, ge=0)
    seed: int = Field(default=0, ge=0)
    precision: Precision = "32-true"
    augment: Augment = Augment()
    ood_batch_size: int = Field(default=0, ge=0)
    algorithm: Literal["sgd", "adam"] = "sgd"
    patience: int = Field(default=0, ge=0)
    balanced: bool = False

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Step:
        """The loss of one batch under the prepared network; any part of the network may be called."""

    def prepare(self, model: nn.Module, num_classes: int) -> nn.Module:
        """The network to train, perhaps with more heads or buffers than the one given.

        Called on images it must give logits, or a dictionary that holds ``logits``.
        """
        return model

    def view(self, pixels: Tensor, generator: torch.Generator) -> Tensor:
        """What the network sees of uint8 images ``[B, C, H, W]``; several views are stacked along B."""
        return self.augment(pixels, generator)

    def optimizer(self, model: nn.Module) -> Optimizer:
        """Over all parameters. Groups may have learning rates of their own; the schedule scales them."""
        if self.algorithm == "adam":
            return Adam(model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)
        return SGD(
            model.parameters(),
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.momentum > 0,
        )

    def schedule(self, step: int, steps_per_epoch: int) -> float:
        """The factor of the learning rate at a step counted from the start of the training."""
        warmup = round(self.warmup_epochs * steps_per_epoch)
        if step < warmup:
            return (step + 1) / warmup
        last = min(1.0, _LAST_RATE / self.learning_rate)
        done = (step - warmup) / max(1, self.epochs * steps_per_epoch - warmup)
        return last + (1.0 - last) * 0.5 * (1.0 + math.cos(math.pi * done))

    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        """Work over whole sets before an epoch, such as prototypes or clusters; results go to buffers.

        The network is in evaluation mode; ``streams.train.walk`` shows every image once, unchanged.
        """

    def describe(self) -> dict[str, Any]:
        """The method and all its hyper-parameters, as JSON."""
        settings = self.model_dump(mode="json")
        # a training finished before these settings existed is the training without them
        for name, off in _OFF.items():
            if settings[name] == off == type(self).model_fields[name].default:
                del settings[name]
        return {"method": type(self).__name__, **settings}

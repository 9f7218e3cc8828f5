"""Recipe: what distinguishes one training method from another."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from oodscope.base.config import StrictModel
from oodscope.base.paper import Paper
from oodscope.training.augment.crop import Augment
from oodscope.training.augment.reading import AnyAugment

if TYPE_CHECKING:
    from oodscope.training.loop.streams import Streams


class Scale(NamedTuple):
    """Mean and standard deviation of the normalisation, ``[1, C, 1, 1]``: balls and boxes live in pixels of [0, 1]."""

    mean: Tensor
    std: Tensor

    def to_pixels(self, images: Tensor) -> Tensor:
        """Normalised images as pixels of [0, 1]."""
        return images * self.std + self.mean

    def from_pixels(self, pixels: Tensor) -> Tensor:
        """Pixels of [0, 1] as the network expects them."""
        return (pixels - self.mean) / self.std


class Batch(NamedTuple):
    """Images on the device, ready for the network, and what is known about them.

    ``images`` is what the recipe's ``view`` made, normalised: a recipe with two views gets twice as many
    images as labels. ``rows`` are the places of the images in their set, for methods that remember
    something about each image. ``ood`` is the outliers' batch of the same step, for recipes that ask for it;
    ``weights`` is what each label counts, for recipes that are ``balanced``. ``draws`` is where the loss takes its
    random numbers from (coins, partners, mixtures): they are a function of seed, epoch and step, and live on
    ``draws.device``. ``scale`` is how pixels were normalised, for methods that move within a ball of pixels.
    """

    images: Tensor
    labels: Tensor
    rows: Tensor
    epoch: int = 0
    ood: "Batch | None" = None
    weights: Tensor | None = None
    draws: torch.Generator | None = None
    scale: Scale | None = None


Precision = Literal["32-true", "tf32", "bf16-mixed", "16-mixed"]

Role = Literal["train", "ood"]
"""What a batch is of: training images, or outliers beside them."""

_LAST_RATE = 1e-6
_OFF: dict[str, Any] = {
    "algorithm": "sgd",
    "patience": 0,
    "balanced": False,
    "keep": "last",
    "steps": None,
    "renderings": 1,
    "clip_norm": 0.0,
    "decay": "cosine",
    "milestones": None,
    "sync_batchnorm": True,
}


@dataclass(frozen=True)
class TrainingFacts:
    """What a recipe may know of a training before its first step.

    Parameters
    ----------
    class_names : of the training images.
    n_train, n_ood : how many images there are to learn from, and how many outliers.
    size : height and width of what the network gets.
    channels : of what the network gets: 3 for colour, 1 for grey.
    hierarchy : for every level, such as ``superclass``, the group of each class; empty where a class has no image or
        lies in several.
    """

    class_names: tuple[str, ...]
    n_train: int
    size: int
    n_ood: int = 0
    hierarchy: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    channels: int = 3

    @property
    def num_classes(self) -> int:
        return len(self.class_names)


class Step(NamedTuple):
    """The loss to descend and, for the training accuracy, logits with a row for every label, if there are any."""

    loss: Tensor
    logits: Tensor | None = None


class Recipe(StrictModel, ABC):
    """A training method: its hyper-parameters as fields, its loss as a method.

    A new method is a subclass with a ``loss``, and whatever else it does differently: ``prepare`` adds heads,
    ``view`` augments, ``optimizer`` groups parameters, ``start_epoch`` and ``finish`` look at all the data,
    ``outliers`` chooses which of them an epoch sees. A recipe is
    frozen and remembers nothing: what a method learns or accumulates (prototypes, queues, adapted weights)
    lives in parameters and buffers of the prepared network, where checkpoints find it. Random draws come
    from torch's generators, which checkpoints save too.

    Class attributes
    ----------------
    name : the registry name; ``create_recipe(name)`` makes one.
    paper : where the method comes from.
    cost : images through the network, forward and backward, for each training image; ``None`` where it depends.
    detectors : registry names of the scores that belong to the training, the paper's first.
    recordable : whether the class's own ``loss`` and ``view`` ask the host for nothing: everything that changes from
        step to step is in the batch's tensors and ``draws``, or in tensors of the network that are changed in place. A
        GPU then records the step once and replays it. Python's own state is not seen by a replay, and of
        ``batch.epoch`` only what ``phase`` makes of it.
    per_row : whether the class's own ``loss`` is a mean over training images that stand for themselves (weights of a
        balanced recipe aside), without random numbers and without state of its own: ranks may then share a batch.
    views : how often each training image is shown in a step, every time varied anew; ``batch.images`` then holds one
        view of all images after the other, and ``batch.labels`` one label per image. Outliers are shown once.
    labelled : whether it learns a classifier from labels. One that does not (``ImageRecipe``) takes images without
        labels, may prepare a network without logits, and is judged by its loss on validation images.
    own_network : whether ``prepare`` builds a network of its own, whatever it is given; it is then no classifier but
        the network of a detector.

    Parameters
    ----------
    epochs : passes over the training images.
    steps : end after so many steps, where they come before the end of the last epoch; schedules reach their end there.
    renderings : how many renderings of each picture the training images hold, one list after the other; an epoch counts
        pictures, so there are ``epochs / renderings`` passes over the list.
    batch_size : the most images of one step.
    learning_rate : at its highest, after the warm-up.
    weight_decay, momentum : of SGD with Nesterov's momentum; Adam knows the first only.
    algorithm : ``sgd`` or ``adam``.
    warmup_epochs : the learning rate rises linearly over so many epochs, then follows ``decay``.
    decay : ``cosine`` falls to 1e-6, ``steps`` falls to a tenth at each of ``milestones``, ``constant`` stays.
    milestones : shares of the training, such as ``[0.6, 0.75, 0.9]``.
    clip_norm : gradients longer than this are cut to it; 0 leaves them as they are.
    seed : decides initial weights (where ``train`` builds the network), order, augmentation and dropout.
    precision : of the forward and backward pass; weights are always 32-bit. ``tf32`` lets a GPU round the factors of
        products to 10 bits, ``32-true`` forbids it; ``bf16-mixed`` and ``16-mixed`` are autocast, the latter for GPUs.
    augment : how training images are varied: crop and mirror, or any list such as ``["crop", {"kind": "cutout"}]``.
    ood_batch_size : outliers beside each batch, for methods that learn from them; 0 for all others.
    patience : stop after so many epochs without a better validation accuracy, and keep the weights of the best epoch;
        0 makes all epochs and keeps the last.
    keep : ``last`` keeps the weights of the last epoch, ``best`` those of the highest validation accuracy, the latest
        of equals as in OpenOOD. With patience the best is kept in any case, the first of equals.
    balanced : weight images by the inverse frequency of their class, for methods that look at ``batch.weights``.
    sync_batchnorm : where ranks share the training, normalise over the images of all of them, as one process would;
        without it each over its own, which depends on their number.

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

    name: ClassVar[str] = ""
    paper: ClassVar[Paper | None] = None
    cost: ClassVar[float | None] = 1.0
    detectors: ClassVar[tuple[str, ...]] = ()
    recordable: ClassVar[bool] = False
    per_row: ClassVar[bool] = False
    views: ClassVar[int] = 1
    labelled: ClassVar[bool] = True
    own_network: ClassVar[bool] = False

    epochs: int = Field(default=100, gt=0)
    batch_size: int = Field(default=128, gt=0)
    learning_rate: float = Field(default=0.1, gt=0)
    weight_decay: float = Field(default=5e-4, ge=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    warmup_epochs: float = Field(default=0.0, ge=0)
    seed: int = Field(default=0, ge=0)
    precision: Precision = "32-true"
    augment: AnyAugment = Augment()
    ood_batch_size: int = Field(default=0, ge=0)
    algorithm: Literal["sgd", "adam"] = "sgd"
    patience: int = Field(default=0, ge=0)
    balanced: bool = False
    keep: Literal["last", "best"] = "last"
    steps: int | None = Field(default=None, gt=0)
    renderings: int = Field(default=1, gt=0)
    clip_norm: float = Field(default=0.0, ge=0)
    decay: Literal["cosine", "steps", "constant"] = "cosine"
    milestones: tuple[float, ...] | None = None
    sync_batchnorm: bool = True

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Step:
        """The loss of one batch under the prepared network; any part of the network may be called."""

    def check(self, facts: TrainingFacts) -> None:
        """Refuse data that it cannot learn from, in one line, before any stage of a chain is trained."""

    def prepare(self, model: nn.Module, facts: TrainingFacts) -> nn.Module:
        """The network to train, perhaps with more heads or buffers than the one given.

        Called on images it must give logits, or a dictionary that holds ``logits``.
        """
        return model

    def view(self, pixels: Tensor, generator: torch.Generator, role: Role) -> Tensor:
        """What the network sees of uint8 images ``[B, C, H, W]``; several views are stacked along B."""
        return self.augment(pixels, generator)

    def after_scaling(self, images: Tensor, generator: torch.Generator, role: Role) -> Tensor:
        """What the network sees of the normalised images that ``view`` made."""
        return self.augment.after_scaling(images, generator)

    def optimizer(self, model: nn.Module) -> Optimizer:
        """Over all parameters. Groups may have learning rates of their own; the schedule scales them."""
        return self.descent(model)

    def descent(self, model: nn.Module, apart: Iterable[nn.Parameter] = (), **settings: float) -> Optimizer:
        """The recipe's algorithm over all parameters; those ``apart`` are a group with settings of their own."""
        own = list(apart)
        held = {id(each) for each in own}
        groups: list[dict[str, Any]] = [{"params": [each for each in model.parameters() if id(each) not in held]}]
        if own:
            groups.append({"params": own, **settings})
        if self.algorithm == "adam":
            return Adam(groups, lr=self.learning_rate, weight_decay=self.weight_decay)
        return SGD(
            groups,
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.momentum > 0,
        )

    def total_steps(self, steps_per_epoch: int) -> int:
        """The steps of the whole training."""
        every = -(-self.epochs * steps_per_epoch // self.renderings)
        return every if self.steps is None else min(every, self.steps)

    def schedule(self, step: int, steps_per_epoch: int) -> float:
        """The factor of the learning rate at a step counted from the start of the training."""
        warmup, total = round(self.warmup_epochs * steps_per_epoch), self.total_steps(steps_per_epoch)
        if step < warmup:
            return (step + 1) / warmup
        if self.decay == "constant":
            return 1.0
        if self.decay == "steps":
            return float(0.1 ** sum(step >= share * total for share in self.milestones or ()))
        last = min(1.0, _LAST_RATE / self.learning_rate)
        done = (step - warmup) / max(1, total - warmup)
        return last + (1.0 - last) * 0.5 * (1.0 + math.cos(math.pi * done))

    def start_epoch(self, model: nn.Module, epoch: int, streams: "Streams") -> None:
        """Work over whole sets before an epoch, such as prototypes or clusters; results go to buffers.

        The network is in evaluation mode; ``streams.train.walk`` shows every image once, unchanged.
        """

    def phase(self, epoch: int) -> int:
        """A number for what the loss does in an epoch: a GPU records the step of each phase anew.

        A loss that looks at ``batch.epoch``, such as one that begins to draw outliers at some epoch, says so here.
        """
        return 0

    def outliers(self, model: nn.Module) -> Tensor | None:
        """The rows of the outliers that the epoch is dealt, or ``None`` for all of them.

        ``start_epoch`` chooses them and keeps them in an integer buffer of the network, which this hands out: an epoch
        that is resumed in the middle is then dealt the same ones.
        """
        return None

    def finish(self, model: nn.Module, streams: "Streams") -> None:
        """One pass over whole sets with the final weights, such as statistics of features; results go to buffers.

        The network is in evaluation mode and holds the weights that are kept.
        """

    @classmethod
    def can_be_recorded(cls) -> bool:
        """Whether the classes that define the loss and the views say so of themselves; heirs that override must too."""
        owners = [
            next(each for each in cls.__mro__ if hook in vars(each)) for hook in ("loss", "view", "after_scaling")
        ]
        return all(owner is Recipe or vars(owner).get("recordable", False) for owner in owners)

    @classmethod
    def by_rows(cls) -> bool:
        """Whether the class that defines the loss says that ranks may share a batch; heirs that override must too."""
        owner = next(each for each in cls.__mro__ if "loss" in vars(each))
        return bool(vars(owner).get("per_row", False))

    def describe(self) -> dict[str, Any]:
        """The method and all its hyper-parameters, as JSON."""
        settings = self.model_dump(mode="json")
        # a training finished before these settings existed is the training without them
        for name, off in _OFF.items():
            if settings[name] == off == type(self).model_fields[name].default:
                del settings[name]
        return {"method": type(self).__name__, **settings}


class ImageRecipe(Recipe):
    """A training method that needs no labels: its network may return features, a score or an image.

    Validation images are judged by the loss, which ``patience`` and ``keep`` then go by.
    """

    labelled: ClassVar[bool] = False

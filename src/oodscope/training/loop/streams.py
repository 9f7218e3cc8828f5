"""The order of images in every epoch, and the batches that follow from it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.training.loop.pixels import Rows, open_pixels
from oodscope.training.loop.randomness import generator, seed_of
from oodscope.training.loop.sets import Sets
from oodscope.training.recipe import Batch, Recipe, Role


class Raw(NamedTuple):
    """Images on the device as they are stored, before the recipe looks at them: uint8 pixels, labels, rows."""

    pixels: Tensor
    labels: Tensor
    rows: Tensor


class Stream:
    """One image set, served to the device in batches."""

    def __init__(self, images: ImageSet, preprocess: Preprocess, device: torch.device) -> None:
        self.name = images.name
        self.device = device
        self.labels = torch.from_numpy(images.labels).to(device)
        self.pixels = open_pixels(images, preprocess, device)
        shape = (1, -1, 1, 1)
        self.mean = torch.tensor(preprocess.mean, device=device).view(shape)
        self.std = torch.tensor(preprocess.std, device=device).view(shape)

    def __len__(self) -> int:
        return len(self.labels)

    def walk(self, batch_size: int) -> Iterator[Batch]:
        """Every image once, in stored order, as it is."""
        orders = np.array_split(np.arange(len(self)), -(-len(self) // batch_size))
        for raw in self.serve(orders):
            yield Batch(self.normalise(raw.pixels), raw.labels, raw.rows)

    def serve(self, orders: list[Rows]) -> Iterator[Raw]:
        """The images of each list of rows."""
        for rows, pixels in zip(orders, self.pixels.batches(orders)):
            # bytes on their way to a GPU need not be waited for
            places = torch.from_numpy(rows).to(self.device, non_blocking=True)
            yield Raw(pixels.to(self.device, non_blocking=True), self.labels[places], places)

    def view(self, recipe: Recipe, raw: Raw, draws: torch.Generator, epoch: int, role: Role) -> Batch:
        """A batch seen through the recipe's random view."""
        images = self.normalise(recipe.view(raw.pixels, draws, role))
        return Batch(recipe.after_scaling(images, draws, role), raw.labels, raw.rows, epoch)

    def normalise(self, pixels: Tensor) -> Tensor:
        """From bytes to what the network expects."""
        scaled = pixels.to(torch.float32, memory_format=torch.channels_last).div_(255.0)
        return scaled.sub_(self.mean).div_(self.std)


class Streams:
    """The sets of one training; above all the training images, with outliers where the recipe wants them.

    A batch depends on (recipe, set, epoch, step) alone, never on the batches before it: a training resumed
    in the middle of an epoch sees exactly what it would have seen.
    """

    def __init__(self, recipe: Recipe, sets: Sets, preprocess: Preprocess, device: torch.device) -> None:
        self.recipe = recipe
        self.train = Stream(sets.train, preprocess, device)
        self.ood = Stream(sets.ood, preprocess, device) if sets.ood else None
        self.val = Stream(sets.val, preprocess, device) if sets.val else None
        self.steps = -(-len(self.train) // recipe.batch_size)
        self.weights = _balanced(self.train.labels) if recipe.balanced else None

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from step ``first`` on, drawn on the host."""
        for step, raws in enumerate(self.serve(epoch, first), start=first):
            draws = [torch.Generator().manual_seed(seed) for seed in self.seeds(epoch, step)]
            yield self.batch(raws, draws, epoch)

    def serve(self, epoch: int, first: int = 0) -> Iterator[list[Raw]]:
        """What the batches of an epoch are made of: training images, and outliers where the recipe wants them.

        The training images are dealt into batches of nearly equal size, so that no epoch ends with a batch
        of one, which batch normalisation could not use. The outliers are shuffled anew each epoch, and
        repeated or cut to its length.
        """
        orders = np.array_split(self._shuffled(self.train, "train", epoch), self.steps)
        known = self.train.serve(orders[first:])
        if self.ood is None:
            yield from ([raw] for raw in known)
            return
        size = self.recipe.ood_batch_size
        repeated = np.resize(self._shuffled(self.ood, "ood", epoch), self.steps * size)
        for raw, ood in zip(known, self.ood.serve(list(repeated.reshape(-1, size))[first:])):
            yield [raw, ood]

    def seeds(self, epoch: int, step: int) -> tuple[int, int, int]:
        """Of the random numbers of a step: the view of training images, that of outliers, the loss."""
        place = (self.recipe.seed, epoch, step)
        return seed_of("view", "train", *place), seed_of("view", "ood", *place), seed_of("loss", *place)

    def batch(self, raws: list[Raw], draws: list[torch.Generator], epoch: int) -> Batch:
        """The batch that the recipe's loss gets."""
        batch = self.train.view(self.recipe, raws[0], draws[0], epoch, "train")
        if self.ood is not None:
            batch = batch._replace(ood=self.ood.view(self.recipe, raws[1], draws[1], epoch, "ood"))
        if self.weights is not None:
            batch = batch._replace(weights=self.weights[batch.labels])
        return batch._replace(draws=draws[2])

    def _shuffled(self, stream: Stream, role: Role, epoch: int) -> Rows:
        order: Rows = torch.randperm(len(stream), generator=generator("order", role, self.recipe.seed, epoch)).numpy()
        return order


def _balanced(labels: Tensor) -> Tensor:
    r"""What an image of each class counts: :math:`n / (K n_c)` over the K classes that are shown."""
    counts = labels.bincount()
    return torch.where(counts > 0, len(labels) / ((counts > 0).sum() * counts), 0.0)

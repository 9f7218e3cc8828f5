"""The order of images in every epoch, and the batches that follow from it."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.training.loop.pixels import Rows, open_pixels
from oodscope.training.loop.randomness import generator
from oodscope.training.loop.sets import Sets
from oodscope.training.recipe import Batch, Recipe


class Stream:
    """One image set, served to the device in batches."""

    def __init__(self, images: ImageSet, preprocess: Preprocess, device: torch.device) -> None:
        self.name = images.name
        self.device = device
        self.labels = torch.from_numpy(images.labels)
        self.pixels = open_pixels(images, preprocess)
        shape = (1, -1, 1, 1)
        self.mean = torch.tensor(preprocess.mean, device=device).view(shape)
        self.std = torch.tensor(preprocess.std, device=device).view(shape)

    def __len__(self) -> int:
        return len(self.labels)

    def walk(self, batch_size: int) -> Iterator[Batch]:
        """Every image once, in stored order, as it is."""
        orders = np.array_split(np.arange(len(self)), -(-len(self) // batch_size))
        for rows, pixels in zip(orders, self.pixels.batches(orders)):
            yield self._batch(rows, self.normalise(pixels.to(self.device)), epoch=0)

    def views(self, recipe: Recipe, epoch: int, orders: list[Rows], first: int, role: str) -> Iterator[Batch]:
        """The batches ``orders[first:]`` of one epoch, seen through the recipe's random views."""
        for step, pixels in enumerate(self.pixels.batches(orders[first:]), start=first):
            draws = generator("view", role, recipe.seed, epoch, step)
            yield self._batch(orders[step], self.normalise(recipe.view(pixels.to(self.device), draws)), epoch)

    def normalise(self, pixels: Tensor) -> Tensor:
        """From bytes to what the network expects."""
        scaled = pixels.to(torch.float32, memory_format=torch.channels_last).div_(255.0)
        return scaled.sub_(self.mean).div_(self.std)

    def _batch(self, rows: Rows, images: Tensor, epoch: int) -> Batch:
        chosen = torch.from_numpy(rows)
        return Batch(images, self.labels[chosen].to(self.device), chosen.to(self.device), epoch)


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
        self.weights = _balanced(self.train.labels).to(device) if recipe.balanced else None

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from step ``first`` on.

        The training images are dealt into batches of nearly equal size, so that no epoch ends with a batch
        of one, which batch normalisation could not use. The outliers are shuffled anew each epoch, and
        repeated or cut to its length.
        """
        orders = np.array_split(self._shuffled(self.train, "train", epoch), self.steps)
        batches = self._weighted(self.train.views(self.recipe, epoch, orders, first, "train"))
        if self.ood is None:
            yield from batches
            return
        size = self.recipe.ood_batch_size
        repeated = np.resize(self._shuffled(self.ood, "ood", epoch), self.steps * size)
        outliers = self.ood.views(self.recipe, epoch, list(repeated.reshape(-1, size)), first, "ood")
        for batch, ood in zip(batches, outliers):
            yield batch._replace(ood=ood)

    def _weighted(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            yield batch if self.weights is None else batch._replace(weights=self.weights[batch.labels])

    def _shuffled(self, stream: Stream, role: str, epoch: int) -> Rows:
        order: Rows = torch.randperm(len(stream), generator=generator("order", role, self.recipe.seed, epoch)).numpy()
        return order


def _balanced(labels: Tensor) -> Tensor:
    r"""What an image of each class counts: :math:`n / (K n_c)` over the K classes that are shown."""
    counts = labels.bincount()
    return torch.where(counts > 0, len(labels) / ((counts > 0).sum() * counts), 0.0)

"""The order of images in every epoch, and the batches that follow from it."""

import copy
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.execution.ranks import Ranks
from oodscope.training.augment.base import Placement
from oodscope.training.augment.pixmix import MARGIN
from oodscope.training.augment.resized_crop import ResizedCrop
from oodscope.training.loop.fabric import ALONE
from oodscope.training.loop.pixels import Cut, Pixels, Resident, Rows, open_pixels
from oodscope.training.loop.randomness import generator, seed_of
from oodscope.training.loop.sets import Sets
from oodscope.training.loop.shared import SharedPixels
from oodscope.training.recipe import Batch, Recipe, Role, Scale

GENERATORS = 3
"""Of a step: for the view of training images, that of outliers, and the loss."""


class Raw(NamedTuple):
    """Images on the device as they are stored, before the recipe looks at them: uint8 pixels, labels, rows.

    Where whole pictures are cut while they are decoded, ``pixels`` holds a cut for each view, one view after the other.
    """

    pixels: Tensor
    labels: Tensor
    rows: Tensor


class Stream:
    """One image set, served to the device in batches."""

    def __init__(
        self,
        images: ImageSet,
        preprocess: Preprocess,
        device: torch.device,
        crop: ResizedCrop | None = None,
        views: int = 1,
        ranks: Ranks = ALONE,
    ) -> None:
        self.name = images.name
        self.device, self.views = device, views
        self.size = preprocess.size
        self.labels = torch.from_numpy(images.labels).to(device)
        pixels = open_pixels(images, preprocess, device, whole=crop is not None)
        shared = not (ranks.alone or isinstance(pixels, Resident))
        self.pixels: Pixels = SharedPixels(pixels, ranks, device) if shared else pixels
        self.crop = crop if self.pixels.whole else None
        shape = (1, -1, 1, 1)
        mean, std = (torch.tensor(each, device=device).view(shape) for each in (preprocess.mean, preprocess.std))
        self.scale = Scale(mean, std)

    def __len__(self) -> int:
        return len(self.labels)

    def walk(self, batch_size: int, share: slice | None = None) -> Iterator[Batch]:
        """Every image once, in stored order, as it is; or those of a share of the rows."""
        rows = np.arange(len(self))[share or slice(None)]
        if not len(rows):
            return
        orders = np.array_split(rows, -(-len(rows) // batch_size))
        for raw in self.serve(orders):
            yield Batch(self.normalise(raw.pixels), raw.labels, raw.rows, scale=self.scale)

    def cut(self, role: Role, seed: int, epoch: int) -> Cut | None:
        """How whole pictures are cut in an epoch, where they are: by random numbers of seed, epoch and row."""
        crop = self.crop
        if crop is None:
            return None

        def cut(picture: Image.Image, row: int) -> NDArray[np.uint8]:
            # one view is drawn as if there were no others, so that what was trained before is trained the same
            places = [(row,), *((row, view) for view in range(1, self.views))]
            parts = [crop.cut(picture, self.size, generator("crop", role, seed, epoch, *place)) for place in places]
            return np.concatenate(parts, axis=2)

        return cut

    def serve(self, orders: list[Rows], cut: Cut | None = None) -> Iterator[Raw]:
        """The images of each list of rows."""
        for rows, pixels in zip(orders, self.pixels.batches(orders, cut)):
            if cut is not None and self.views > 1:
                pixels = torch.cat(pixels.chunk(self.views, dim=1))
            # bytes on their way to a GPU need not be waited for
            places = torch.from_numpy(rows).to(self.device, non_blocking=True)
            yield Raw(pixels.to(self.device, non_blocking=True), self.labels[places], places)

    def view(self, recipe: Recipe, raw: Raw, draws: torch.Generator, epoch: int, role: Role) -> Batch:
        """A batch seen through the recipe's random view."""
        pixels = raw.pixels if self.crop is not None else raw.pixels.repeat(self.views, 1, 1, 1)
        images = self.normalise(recipe.view(pixels, draws, role))
        return Batch(recipe.after_scaling(images, draws, role), raw.labels, raw.rows, epoch, scale=self.scale)

    def normalise(self, pixels: Tensor) -> Tensor:
        """From bytes to what the network expects."""
        scaled = pixels.to(torch.float32, memory_format=torch.channels_last).div_(255.0)
        return scaled.sub_(self.scale.mean).div_(self.scale.std)


class Streams:
    """The sets of one training; above all the training images, with outliers where the recipe wants them.

    A batch depends on (recipe, set, epoch, step) alone, never on the batches before it: a training resumed
    in the middle of an epoch sees exactly what it would have seen, and ranks that share a training all see whole
    batches, however many they are.
    """

    def __init__(
        self, recipe: Recipe, sets: Sets, preprocess: Preprocess, device: torch.device, ranks: Ranks = ALONE
    ) -> None:
        self.ranks = ranks
        crop = next((part for part in recipe.augment.parts() if isinstance(part, ResizedCrop)), None)
        self.train = Stream(sets.train, preprocess, device, crop, recipe.views, ranks)
        self.ood = Stream(sets.ood, preprocess, device, crop) if sets.ood else None
        self.val = Stream(sets.val, preprocess, device) if sets.val else None
        pictures = _pictures(sets.pictures, preprocess, device) if sets.pictures else None
        places = {
            "train": Placement(self.train.crop is not None, pictures),
            "ood": Placement(self.ood is not None and self.ood.crop is not None, pictures),
        }
        self._augments = {role: recipe.augment.placed(place) for role, place in places.items()}
        self.steps = -(-len(self.train) // recipe.batch_size)
        self.outlier_rows: Tensor | None = None
        self.weights = _balanced(self.train.labels) if recipe.balanced else None
        self._follow(recipe)

    def of(self, recipe: Recipe) -> Self:
        """The same data for a recipe that differs in its seed alone."""
        made = copy.copy(self)
        made._follow(recipe)
        return made

    def _follow(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._views = {role: recipe.model_copy(update={"augment": made}) for role, made in self._augments.items()}

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from step ``first`` on, drawn on the host."""
        for step, raws in enumerate(self.serve(epoch, first), start=first):
            draws = [torch.Generator().manual_seed(seed) for seed in self.seeds(epoch, step)]
            yield self.batch(raws, draws, epoch)

    def serve(self, epoch: int, first: int = 0) -> Iterator[list[Raw]]:
        """What the batches of an epoch are made of: training images, and outliers where the recipe wants them.

        The training images are dealt into batches of nearly equal size, so that no epoch ends with a batch
        of one, which batch normalisation could not use. The outliers are shuffled anew each epoch, and
        repeated or cut to its length; where the recipe chose some of them, these alone.
        """
        seed = self.recipe.seed
        orders = np.array_split(self._shuffled(np.arange(len(self.train)), "train", epoch), self.steps)
        known = self.train.serve(orders[first:], self.train.cut("train", seed, epoch))
        if self.ood is None:
            yield from ([raw] for raw in known)
            return
        size = self.recipe.ood_batch_size
        every = np.arange(len(self.ood)) if self.outlier_rows is None else self.outlier_rows.cpu().numpy()
        repeated = np.resize(self._shuffled(every, "ood", epoch), self.steps * size)
        outliers = self.ood.serve(list(repeated.reshape(-1, size))[first:], self.ood.cut("ood", seed, epoch))
        for raw, ood in zip(known, outliers):
            yield [raw, ood]

    def seeds(self, epoch: int, step: int) -> tuple[int, int, int]:
        """Of the random numbers of a step: the view of training images, that of outliers, the loss."""
        place = (self.recipe.seed, epoch, step)
        return seed_of("view", "train", *place), seed_of("view", "ood", *place), seed_of("loss", *place)

    def batch(self, raws: list[Raw], draws: list[torch.Generator], epoch: int) -> Batch:
        """The batch that the recipe's loss gets."""
        batch = self.train.view(self._views["train"], raws[0], draws[0], epoch, "train")
        if self.ood is not None:
            batch = batch._replace(ood=self.ood.view(self._views["ood"], raws[1], draws[1], epoch, "ood"))
        if self.weights is not None:
            batch = batch._replace(weights=self.weights[batch.labels])
        return batch._replace(draws=draws[2])

    def _shuffled(self, rows: Rows, role: Role, epoch: int) -> Rows:
        order = torch.randperm(len(rows), generator=generator("order", role, self.recipe.seed, epoch)).numpy()
        shuffled: Rows = rows[order]
        return shuffled


def _balanced(labels: Tensor) -> Tensor:
    r"""What an image of each class counts: :math:`n / (K n_c)` over the K classes that are shown."""
    counts = labels.bincount()
    return torch.where(counts > 0, len(labels) / ((counts > 0).sum() * counts), 0.0)


def _pictures(images: ImageSet, preprocess: Preprocess, device: torch.device) -> Tensor:
    """Pictures to mix with, a little larger than the network's input, so that windows can be cut from them."""
    larger = preprocess.model_copy(update={"size": preprocess.size + MARGIN, "resize": None})
    return Resident(images, larger, device).pixels

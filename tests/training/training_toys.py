"""A network, images and progress sinks small enough to train many times in a minute."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.training.augment.crop import Augment
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.train import train

PREPROCESS = Preprocess(size=12, mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))
RECIPE = CrossEntropy(epochs=3, batch_size=16, learning_rate=0.05, augment=Augment(pad=2, flip=True))


class TinyNet(nn.Module):
    """Everything that has state of its own: batch norm (buffers), dropout (random numbers)."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(8 * 4, classes)

    def features(self, images: Tensor) -> Tensor:
        maps = torch.relu(self.norm(self.conv(images)))
        return self.drop(nn.functional.adaptive_avg_pool2d(maps, 2).flatten(1))

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.features(images))


class Bare(TinyNet):
    """Without dropout, whose random numbers all networks of a process share."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__(classes)
        self.drop = nn.Identity()


class Bounded(nn.Sequential):
    """A chain of layers through which bounds can be proven; the part that others drop out by is there by name only."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.relu, self.pool, self.flatten, self.drop = nn.ReLU(), nn.AvgPool2d(6), nn.Flatten(), nn.Identity()
        self.fc = nn.Linear(8 * 4, classes)


def colours(count: int = 96, classes: int = 3, seed: int = 0, name: str = "colours") -> ImageSet:
    """Noise whose class is the brightest channel: easy, but not for an untrained network."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    images = rng.integers(0, 160, (count, 12, 12, 3), dtype=np.uint8)
    images[np.arange(count), :, :, labels % 3] += 60
    return ImageSet.from_arrays(name, images, labels, [str(c) for c in range(classes)])


def grouped(count: int = 96, seed: int = 0, name: str = "grouped") -> ImageSet:
    """The same, with two groups of classes."""
    images = colours(count, seed=seed, name=name)
    kinds = np.array(["warm", "cold", "cold"])[images.labels]
    return ImageSet(name, images.source, images.labels, images.class_names, hierarchy={"kind": kinds})


def negatives(count: int) -> ImageSet:
    """Outliers: two bright channels instead of one."""
    return ImageSet.from_arrays("negatives", 255 - np.stack(colours(count, seed=9).images(range(count))))


class Listener:
    """Remembers what a progress bar would show; ``after`` is called with the number of steps done."""

    def __init__(self, after: Callable[[int], None] = lambda done: None) -> None:
        self.after = after
        self.calls: list[int] = []

    @contextmanager
    def stage(self, description: str, total: int) -> Iterator[Callable[[int], None]]:
        self.description, self.total = description, total

        def advance(finished: int) -> None:
            self.calls.append(finished)
            self.after(sum(self.calls))

        yield advance


class StoppedError(Exception):
    """The plug was pulled."""


def stop_at(step: int) -> Listener:
    """A listener that ends the training after ``step`` steps."""

    def after(done: int) -> None:
        if done >= step:
            raise StoppedError

    return Listener(after)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def train_slowly(folder: Path, diary: Path) -> None:
    """The victim of the kills: runs in a process of its own and notes every step it makes."""
    import oodscope.training.loop.lockstep as lockstep

    lockstep.CHECKPOINT_SECONDS, lockstep.SAVING_SHARE = 0.05, float("inf")
    torch.set_num_threads(1)

    def note(done: int) -> None:
        with diary.open("a") as stream:
            stream.write(f"{done}\n")
        time.sleep(0.01)

    train(TinyNet, RECIPE.model_copy(update={"epochs": 6}), colours(320), PREPROCESS, folder=folder, device="cpu",
          val=colours(32, seed=1), progress=Listener(note))  # fmt: skip

"""A tiny benchmark and network, made in a blink, that behave like real ones."""

import numpy as np
import torch
from torch import nn

from oodscope.data.benchmark import Benchmark
from oodscope.data.imageset import ImageSet
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.classifier import Classifier

TRANSFORM = Preprocess(size=8)


def images(count, seed, classes=4, shift=0):
    """8x8 pictures whose brightest quarter tells the class, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    pixels = rng.integers(0, 120, size=(count, 8, 8, 3))
    for row, label in enumerate(labels):
        top, left = divmod((label + shift) % 4, 2)
        pixels[row, 4 * top : 4 * top + 4, 4 * left : 4 * left + 4] += 100
    return pixels.astype(np.uint8), labels


def imageset(name, count, seed, **kwargs):
    pixels, labels = images(count, seed, **kwargs)
    return ImageSet.from_arrays(name, pixels, labels, [f"class {c}" for c in range(4)])


def noise(name, count, seed):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, size=(count, 8, 8, 3)).astype(np.uint8)
    return ImageSet.from_arrays(name, pixels, np.arange(count) % 3, ["a", "b", "c"])


def benchmark(scale=1, **changes):
    """All roles filled; ``changes`` replace roles."""
    roles = {
        "id_train": imageset("id_train", 200 * scale, 1),
        "id_val": imageset("id_val", 60 * scale, 2),
        "id_test": imageset("id_test", 80 * scale, 3),
        "near": (noise("static", 50 * scale, 4), noise("snow", 40 * scale, 5)),
        "far": (noise("rain", 30 * scale, 6),),
        "csid": (imageset("dim", 40 * scale, 7),),
        "ood_val": noise("ood_val", 40 * scale, 8),
    }
    return Benchmark(name="tiny", version="1", transform=TRANSFORM, **{**roles, **changes})


class TinyNet(nn.Module):
    """One convolution, ReLU, pooling to quarters, a linear head."""

    def __init__(self, classes=4):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.pool(torch.relu(self.conv(x))).flatten(1))


def network(seed=0, classes=4):
    torch.manual_seed(seed)
    return TinyNet(classes)


def classifier(seed=0, device="cpu", **kwargs):
    return Classifier(network(seed), TRANSFORM, device=device, **kwargs)


class ForwardCounter:
    """Counts the images that really pass through a network, and the backward passes."""

    def __init__(self, model):
        self.images = self.backwards = 0
        self.handles = [model.register_forward_hook(self._forward)]

    def _forward(self, module, args, output):
        self.images += len(args[0])
        if output.requires_grad:
            output.register_hook(self._backward)

    def _backward(self, gradient):
        self.backwards += len(gradient)

"""A small convolutional network: seconds to train on a laptop, good enough to rank detectors on."""

from collections import OrderedDict

import torch
from torch import Tensor, nn


def _block(inputs: int, outputs: int) -> nn.Sequential:
    """Convolution, batch norm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class SmallCNN(nn.Module):
    """Four convolutions, global average pooling, one linear head.

    The last ReLU comes before the pooling, so the 128 penultimate features are non-negative, as the
    activation-shaping detectors (ASH, SCALE, ReAct) expect.
    """

    def __init__(self, num_classes: int = 10, channels: int = 3) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _block(channels, 16),
            nn.MaxPool2d(2),
            _block(16, 32),
            nn.MaxPool2d(2),
            _block(32, 64),
            nn.MaxPool2d(2),
            _block(64, 128),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(128, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        # Convolutions keep the layout of their input, and this one halves the time of a CPU step. The weights
        # stay as they are: formats for files want them contiguous.
        images = images.contiguous(memory_format=torch.channels_last)
        logits: Tensor = self.fc(self.pool(self.body(images)).flatten(1))
        return logits


def plain_cnn_32(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """Five convolutions and two linear layers with ReLU between them, and nothing else: bounds can be proven for it.

    The network "L" of Bitterwolf et al., "Certifiably Adversarially Robust Detection of Out-of-Distribution Data",
    NeurIPS 2020: no normalisation; the third convolution halves the map. The pooling leaves the maps of 32 px images as
    they are. 17 million parameters.
    """
    layers: dict[str, nn.Module] = {}
    inputs = channels
    for place, (width, stride) in enumerate(((64, 1), (64, 1), (128, 2), (128, 1), (128, 1))):
        layers |= {f"conv{place}": nn.Conv2d(inputs, width, 3, stride=stride, padding=1), f"relu{place}": nn.ReLU()}
        inputs = width
    layers |= {"pool": nn.AdaptiveAvgPool2d(16), "flatten": nn.Flatten()}
    layers |= {"hidden": nn.Linear(inputs * 16 * 16, 512), "relu": nn.ReLU(), "fc": nn.Linear(512, num_classes)}
    return nn.Sequential(OrderedDict(layers))


def lenet(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """LeNet-5 with ReLU and max-pooling for 28 or 32 px images; 62 thousand parameters, 84 non-negative features.

    LeCun et al., "Gradient-based learning applied to document recognition", Proceedings of the IEEE 1998; the first
    network of the MNIST ensembles of "Raising the Bar". 28 px images are padded to 32 px.
    """
    layers: dict[str, nn.Module] = {
        "fit": _PadTo(32),
        "conv1": nn.Conv2d(channels, 6, 5),
        "relu1": nn.ReLU(),
        "pool1": nn.MaxPool2d(2),
        "conv2": nn.Conv2d(6, 16, 5),
        "relu2": nn.ReLU(),
        "pool2": nn.MaxPool2d(2),
        "flatten": nn.Flatten(),
        "hidden1": nn.Linear(16 * 5 * 5, 120),
        "relu3": nn.ReLU(),
        "hidden2": nn.Linear(120, 84),
        "relu4": nn.ReLU(),
        "fc": nn.Linear(84, num_classes),
    }
    return nn.Sequential(OrderedDict(layers))


class _PadTo(nn.Module):
    """Zeros around an image that is smaller than ``side``."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, images: Tensor) -> Tensor:
        missing = max(0, self.side - images.shape[-1])
        half = missing // 2
        return nn.functional.pad(images, (half, missing - half, half, missing - half))


def small_cnn(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """SmallCNN for 28 or 32 px images; about 0.1 million parameters."""
    return SmallCNN(num_classes, channels)

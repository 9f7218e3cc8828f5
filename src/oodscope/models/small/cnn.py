"""A small convolutional network: seconds to train on a laptop, good enough to rank detectors on."""

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


def small_cnn(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """SmallCNN for 28 or 32 px images; about 0.1 million parameters."""
    return SmallCNN(num_classes, channels)

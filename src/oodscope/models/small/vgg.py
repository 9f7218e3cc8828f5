"""VGG with batch norm (Simonyan and Zisserman, ICLR 2015) for small images: plain convolutions, nothing skipped."""

import torch
from torch import Tensor, nn

_WIDTHS = {
    11: (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512),
    16: (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512),
}
"""Channels of each convolution, by the depth that the paper counts; 0 is a pooling that halves the map."""


class PlainNet(nn.Module):
    """3x3 convolutions with four poolings between them, global average pooling, one linear head.

    The three wide linear layers and the last pooling of the original are left out: a 32 px image reaches the end with
    2x2 positions. The last ReLU comes before the pooling, so the 512 features are non-negative.
    """

    def __init__(self, depth: int, num_classes: int = 10, channels: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = channels
        for width in _WIDTHS[depth]:
            if width:
                convolution = nn.Conv2d(inputs, width, 3, padding=1, bias=False)
                nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
                layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                inputs = width
            else:
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
        self.body = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.fc(torch.flatten(self.pool(self.body(images)), 1))
        return logits


def vgg11_32(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """VGG-11 with batch norm for 28 or 32 px images; 9.2 million parameters, 512 non-negative features."""
    return PlainNet(11, num_classes, channels)


def vgg16_32(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """VGG-16 with batch norm for 28 or 32 px images; 14.7 million parameters, 512 non-negative features."""
    return PlainNet(16, num_classes, channels)

"""DenseNet-BC (Huang et al., CVPR 2017): every layer reads the maps of all layers before it."""

import torch
from torch import Tensor, nn

from oodscope.base.errors import ModelError


class _Layer(nn.Module):
    """A 1x1 convolution to four times the growth, a 3x3 one to the growth; its maps are added to those it read."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        grown = self.conv2(self.relu(self.bn2(self.conv1(self.relu(self.bn1(maps))))))
        return torch.cat([maps, grown], dim=1)


class DenseNet(nn.Module):
    """Three blocks of ``(depth - 4) / 6`` layers; between them the channels and both sides are halved."""

    def __init__(self, depth: int, growth: int, num_classes: int = 10, channels: int = 3) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ModelError(f"densenet: depth is {depth}; it must be 6n + 4 (10, 16, 22, 40, 100...)")
        width = 2 * growth
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
        for block in range(3):
            for _ in range((depth - 4) // 6):
                layers.append(_Layer(width, growth))
                width += growth
            layers += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            if block < 2:
                layers += [nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
                width //= 2
        self.body = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.fc(torch.flatten(self.pool(self.body(images)), 1))
        return logits


def densenet_40_24(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """DenseNet-BC-40 of growth 24 for 28 or 32 px images; 0.7 million parameters, 264 non-negative features."""
    return DenseNet(40, 24, num_classes, channels)


def densenet_100_12(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """DenseNet-BC-100 with growth 12; 0.77 million parameters, 342 non-negative features."""
    return DenseNet(100, 12, num_classes, channels)

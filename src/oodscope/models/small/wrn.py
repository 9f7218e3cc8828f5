"""Wide ResNet (Zagoruyko and Komodakis, BMVC 2016): few layers, many channels."""

from torch import Tensor, nn

from oodscope.base.errors import ModelError


class _Block(nn.Module):
    """Two pre-activated convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module | None = None
        if inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        active = self.relu(self.bn1(maps))
        # Where the shape changes the paper's shortcut starts after the activation, elsewhere before it.
        skipped = maps if self.shortcut is None else self.shortcut(active)
        added: Tensor = self.conv2(self.relu(self.bn2(self.conv1(active)))) + skipped
        return added


class WideResNet(nn.Module):
    """Three stages of ``(depth - 4) / 6`` blocks, ``width`` times as wide as the thin original."""

    def __init__(self, depth: int, width: int, num_classes: int = 10, channels: int = 3) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ModelError(f"wide resnet: depth is {depth}; it must be 6n + 4 (10, 16, 22, 28, 40...)")
        blocks, widths = (depth - 4) // 6, [16, 16 * width, 32 * width, 64 * width]
        layers: list[nn.Module] = [nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)]
        for stage in range(3):
            for block in range(blocks):
                inputs = widths[stage] if block == 0 else widths[stage + 1]
                layers.append(_Block(inputs, widths[stage + 1], 2 if stage > 0 and block == 0 else 1))
        layers += [nn.BatchNorm2d(widths[-1]), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(widths[-1], num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.pool(self.body(images)).flatten(1))
        return logits


def wrn_10_1(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """WRN-10-1, three thin residual blocks for grey digits; 78 thousand parameters, 64 non-negative features."""
    return WideResNet(10, 1, num_classes, channels)


def wrn_16_4(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """WRN-16-4 for 28 or 32 px images; 2.7 million parameters, 256 non-negative features."""
    return WideResNet(16, 4, num_classes, channels)


def wrn_28_10(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """WRN-28-10 for 28 or 32 px images; 36.5 million parameters, 640 non-negative features."""
    return WideResNet(28, 10, num_classes, channels)


def wrn_40_2(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """WRN-40-2, the network of Outlier Exposure; 2.2 million parameters, 128 non-negative features."""
    return WideResNet(40, 2, num_classes, channels)

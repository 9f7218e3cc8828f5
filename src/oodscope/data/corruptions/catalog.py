"""The corruptions by name: which family, whether comparable with the published sets, where the code is."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from oodscope.base.errors import UnknownNameError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Corruption:
    """What is known of a corruption before torch is imported.

    Parameters
    ----------
    family : ``noise``, ``blur``, ``weather`` or ``digital``.
    group : ``c`` for the fifteen of CIFAR-10-C and ImageNet-C, ``c_extra`` for the four beside them.
    comparable : whether it is the published algorithm; otherwise figures do not compare with published ones.
    differentiable : whether gradients reach a float image through it.
    continuous : whether a severity between two published ones interpolates every constant; otherwise some
        constants (iterations, liquids, layers) jump half way.
    target : module and function.
    """

    family: str
    group: str
    summary: str
    target: str
    comparable: bool = True
    differentiable: bool = True
    continuous: bool = True

    def load(self) -> "Callable[..., Tensor]":
        """The function itself: of images, draws and constants."""
        module, _, function = self.target.partition(":")
        loaded: Callable[..., Tensor] = getattr(import_module(f"oodscope.data.corruptions.{module}"), function)
        return loaded


CORRUPTIONS = {
    "gaussian_noise": Corruption("noise", "c", "normal noise on every pixel", "noise:gaussian_noise"),
    "shot_noise": Corruption("noise", "c", "photon counts: Poisson", "noise:shot_noise", differentiable=False),
    "impulse_noise": Corruption("noise", "c", "salt and pepper, each channel by itself", "noise:impulse_noise"),
    "defocus_blur": Corruption("blur", "c", "a lens out of focus: a disk", "blur:defocus_blur"),
    "glass_blur": Corruption(
        "blur", "c", "frosted glass: pixels take a neighbour's place", "blur:glass_blur",
        differentiable=False, continuous=False,
    ),
    "motion_blur": Corruption("blur", "c", "a moving camera, at a random angle", "blur:motion_blur"),
    "zoom_blur": Corruption("blur", "c", "a camera that moves towards the scene", "blur:zoom_blur"),
    "snow": Corruption("weather", "c", "flakes blown by wind, a whiter scene", "weather:snow", differentiable=False),
    "frost": Corruption("weather", "c", "ice on the window; own texture, not the photographs", "weather:frost",
                        comparable=False),
    "fog": Corruption("weather", "c", "a cloud: plasma fractal", "weather:fog"),
    "brightness": Corruption("weather", "c", "daylight: value of HSV raised", "colour:brightness"),
    "contrast": Corruption("digital", "c", "levels pulled to each channel's mean", "colour:contrast"),
    "elastic_transform": Corruption("digital", "c", "stretched and rippled", "elastic:elastic_transform"),
    "pixelate": Corruption("digital", "c", "fewer, larger pixels", "pixelate:pixelate",
                           differentiable=False),
    "jpeg_compression": Corruption("digital", "c", "baseline JPEG, 4:2:0", "jpeg:jpeg_compression",
                                   differentiable=False),
    "speckle_noise": Corruption("noise", "c_extra", "noise in proportion to the pixel", "noise:speckle_noise"),
    "gaussian_blur": Corruption("blur", "c_extra", "a Gaussian lens", "blur:gaussian_blur"),
    "spatter": Corruption("weather", "c_extra", "drops of water, then mud, on the lens", "spatter:spatter",
                          continuous=False),
    "saturate": Corruption("digital", "c_extra", "colours drained, then exaggerated", "colour:saturate"),
}  # fmt: skip

GROUPS = ("c", "c_extra")


def find_corruption(name: str) -> Corruption:
    """The corruption called ``name``; an unknown name suggests the nearest."""
    if name not in CORRUPTIONS:
        raise UnknownNameError("corruption", name, CORRUPTIONS, "See: oodscope list corruptions")
    return CORRUPTIONS[name]


def members(kind: str) -> tuple[str, ...]:
    """The corruptions that ``kind`` stands for: a group's, or the one of that name."""
    if kind in GROUPS:
        return tuple(name for name, info in CORRUPTIONS.items() if info.group == kind)
    if kind not in CORRUPTIONS:
        raise UnknownNameError("corruption", kind, (*GROUPS, *CORRUPTIONS), "See: oodscope list corruptions")
    return (kind,)

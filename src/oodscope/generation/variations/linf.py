"""LInf: every pixel by itself, by very little."""

from torch import Tensor

from oodscope.base.errors import UsageError
from oodscope.generation.variations.base import Variation, computed_in
from oodscope.generation.variations.domain import Box
from oodscope.models.classifier.clip import clip


class LInf(Variation):
    r"""The ball that adversarial examples are sought in: every value moves by at most :math:`\varepsilon`.

    .. math:: g(u; x) = \min(1, \max(0,\; x + \varepsilon (2u - 1)))

    One coordinate per value, so thousands where the other variations have five: a walk finds little here, and a search
    by gradients much.

    Parameters
    ----------
    image_shape : ``(C, H, W)`` of the images.
    epsilon : the radius; 0.01, two and a half levels of 255, in Yoon et al. (NeurIPS 2022).
    """

    name = "linf"

    def __init__(self, image_shape: tuple[int, int, int] = (3, 32, 32), epsilon: float = 0.01) -> None:
        if not 0 < epsilon <= 1:
            raise UsageError(f"linf: epsilon is a distance of pixels in [0, 1], above 0 and up to 1, not {epsilon:g}")
        self.image_shape = image_shape
        self.epsilon = epsilon

    @property
    def domain(self) -> Box:
        channels, height, width = self.image_shape
        return Box(channels * height * width)

    @property
    def identity(self) -> tuple[float, ...]:
        return (0.5,) * self.domain.dimension

    @property
    def parameters(self) -> tuple[str, ...]:
        return ()

    def __call__(self, points: Tensor, images: Tensor | None = None) -> Tensor:
        assert images is not None, "it varies source images"
        pixels = computed_in(images)
        moved = pixels + self.epsilon * (2 * points.to(pixels.dtype) - 1).view(pixels.shape)
        return clip(moved, 0, 1).to(images.dtype)

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "image_shape": list(self.image_shape), "epsilon": self.epsilon}

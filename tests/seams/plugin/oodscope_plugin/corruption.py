"""A corruption: dark stripes."""

from oodscope.data.corruptions.catalog import Corruption
from oodscope.data.corruptions.severities import Ladder

_DEPTHS = tuple((depth,) for depth in (0.1, 0.2, 0.4, 0.6, 0.8))


def stripes(images, draws, *, depth):
    """Every other column darker by ``depth``."""
    darker = images.clone()
    darker[..., ::2] *= 1 - depth.view(-1, 1, 1, 1)
    return darker


STRIPES = Corruption(
    "digital",
    "",
    "every other column darker",
    "oodscope_plugin.corruption:stripes",
    Ladder(("depth",), (0.0,), _DEPTHS, _DEPTHS, _DEPTHS),
    comparable=False,
)

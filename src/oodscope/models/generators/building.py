"""From the shape of a generator to the generator."""

from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape
from oodscope.models.generators.dcgan import DcganGenerator, DcganShape
from oodscope.models.generators.pix2pix import UnetGenerator, UnetShape
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator

AnyShape = GeneratorShape | DcganShape | BigGanShape | UnetShape
"""Each but the first says its kind, so a file without one is of the first."""

AnyGenerator = StyleGenerator | DcganGenerator | BigGanGenerator | UnetGenerator

LatentGenerator = DcganGenerator | BigGanGenerator
"""Those that draw from Gaussian latents and, if they know any (``classes``), a class."""


def build_generator(shape: AnyShape) -> AnyGenerator:
    """A generator with first weights from torch's global random numbers."""
    if isinstance(shape, BigGanShape):
        return BigGanGenerator(shape)
    if isinstance(shape, DcganShape):
        return DcganGenerator(shape)
    return UnetGenerator(shape) if isinstance(shape, UnetShape) else StyleGenerator(shape)

"""Generators: networks that draw images, the discriminators that train them, and their file."""

from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape
from oodscope.models.generators.building import AnyGenerator, AnyShape, LatentGenerator, build_generator
from oodscope.models.generators.dcgan import DcganDiscriminator, DcganGenerator, DcganShape
from oodscope.models.generators.discriminator import Discriminator
from oodscope.models.generators.pix2pix import PatchDiscriminator, UnetGenerator, UnetShape
from oodscope.models.generators.projection import ProjectionDiscriminator
from oodscope.models.generators.saved import GeneratorRecord, load_generator, read_record, save_generator
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator

__all__ = [
    "AnyGenerator",
    "AnyShape",
    "BigGanGenerator",
    "BigGanShape",
    "DcganDiscriminator",
    "DcganGenerator",
    "DcganShape",
    "Discriminator",
    "GeneratorRecord",
    "GeneratorShape",
    "LatentGenerator",
    "PatchDiscriminator",
    "ProjectionDiscriminator",
    "StyleGenerator",
    "UnetGenerator",
    "UnetShape",
    "build_generator",
    "load_generator",
    "read_record",
    "save_generator",
]

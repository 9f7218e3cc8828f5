"""Generators: networks that draw images from latents, the discriminator that trains them, and their file."""

from oodscope.models.generators.discriminator import Discriminator
from oodscope.models.generators.saved import GeneratorRecord, load_generator, read_record, save_generator
from oodscope.models.generators.stylegan import GeneratorShape, StyleGenerator

__all__ = [
    "Discriminator",
    "GeneratorRecord",
    "GeneratorShape",
    "StyleGenerator",
    "load_generator",
    "read_record",
    "save_generator",
]

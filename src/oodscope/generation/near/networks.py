"""The two networks of a recipe."""

from torch import nn

from oodscope.base.config import parse
from oodscope.data.imageset import ImageSet
from oodscope.generation.gan.frame import frame_of
from oodscope.generation.near.recipe import NearRecipe
from oodscope.models.generators.biggan import BigGanGenerator, BigGanShape, ProjectionDiscriminator
from oodscope.models.generators.dcgan import DcganDiscriminator, DcganGenerator, DcganShape
from oodscope.models.generators.saved import LatentGenerator


def near_shape(recipe: NearRecipe, images: ImageSet, size: int | None) -> BigGanShape | DcganShape:
    """The generator's shape for these images."""
    side, channels = frame_of(images, size)
    if recipe.network == "dcgan":
        return DcganShape(size=side, channels=channels, latent=recipe.latent, width=recipe.width)
    declared = {
        "size": side,
        "channels": channels,
        "classes": len(images.class_names),
        "latent": recipe.latent,
        "width": recipe.width,
    }
    return parse(BigGanShape, declared, "near recipe")


def build_networks(recipe: NearRecipe, shape: BigGanShape | DcganShape) -> tuple[LatentGenerator, nn.Module]:
    """Generator and discriminator with first weights from torch's global random numbers."""
    width = recipe.discriminator_width
    if isinstance(shape, DcganShape):
        return DcganGenerator(shape), DcganDiscriminator(shape.size, shape.channels, width)
    return BigGanGenerator(shape), ProjectionDiscriminator(shape.size, shape.channels, shape.classes, width)

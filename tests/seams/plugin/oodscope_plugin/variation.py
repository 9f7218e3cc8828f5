"""A variation: an image fades to grey."""

from oodscope.generation.variations.base import Range, Ranged


class Fade(Ranged):
    """The image mixed with plain grey."""

    name = "fade"

    @property
    def ranges(self):
        return (Range("share of grey", 0, 1),)

    @property
    def identity(self):
        return (0.0,)

    def __call__(self, points, images=None):
        share = self.natural(points.to(images.dtype))[:, :, None, None]
        return images * (1 - share) + 0.5 * share

    def describe(self):
        return {"name": self.name}

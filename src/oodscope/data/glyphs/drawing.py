"""From a glyph to a picture: pose it, colour it, add noise."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from oodscope.base.errors import DataError
from oodscope.data.glyphs.source import Streams

# The fonts: files that matplotlib ships, found without importing matplotlib.
#
# Training uses four upright DejaVu fonts. The fonts held back for the covariate shift are slanted, and for the
# scripts that STIX covers also of another design.


TRAIN_FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif")
UNSEEN_FONTS = ("DejaVuSerif-Italic", "DejaVuSerif-BoldItalic", "DejaVuSansMono-BoldOblique")
UNSEEN_STIX = ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic")

EM = 32
"""Font size, in pixels, at which a glyph is rasterised once before every image resamples it."""

CANVAS = 64
"""Side of the square around that glyph: space for the widest letter at any rotation."""

_IN_STIX = ("latin", "greek", "cyrillic")


def unseen_fonts(script: str) -> tuple[str, ...]:
    """Fonts that hold the characters of ``script`` and of which training sees none."""
    return UNSEEN_FONTS + UNSEEN_STIX if script in _IN_STIX else UNSEEN_FONTS


def font_path(font: str) -> Path:
    """Where the font file lies inside the installed matplotlib."""
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise DataError("glyphs: matplotlib, whose fonts are drawn, is not installed. Try: pip install matplotlib")
    path = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / f"{font}.ttf"
    if not path.is_file():
        raise DataError(
            f"glyphs: the installed matplotlib has no font {font}.ttf. Try: pip install --force-reinstall matplotlib"
        )
    return path


@cache
def glyph_mask(character: str, font: str) -> Image.Image:
    """The character in white on black, its ink centred on a square of ``CANVAS`` pixels."""
    # The basic layout engine draws the same pixels whether or not Pillow was built with Raqm.
    face = ImageFont.truetype(font_path(font), EM, layout_engine=ImageFont.Layout.BASIC)
    sheet = Image.new("L", (3 * CANVAS, 3 * CANVAS))
    ImageDraw.Draw(sheet).text((CANVAS, CANVAS), character, fill=255, font=face)
    # The ink itself, not the advance width of the font, decides where the middle is.
    left, top, right, bottom = sheet.getbbox() or (0, 0, 0, 0)
    x, y = (left + right - CANVAS) // 2, (top + bottom - CANVAS) // 2
    return sheet.crop((x, y, x + CANVAS, y + CANVAS))


SIDE = 32
"""Side of every image, in pixels."""

# The pose and the palette set the difficulty: docs/results/glyphs-difficulty.md shows what they lead to.
ROTATION = 20.0
"""Largest rotation, degrees either way."""
SCALE = (0.42, 0.72)
"""Smallest and largest size, as a share of the rasterised glyph."""
SHEAR = 0.15
"""Largest slant, as the tangent of its angle, either way."""
SHIFT = 4.0
"""Largest shift, pixels either way."""
FAINTEST_INK = 0.4
"""Contrast of the faintest ink, as a share of what the paper allows."""
TINT = 0.5
"""How far one colour channel of the ink may lag behind the others."""
SHADE = 0.35
"""Largest change of the paper from the centre of the image to the middle of an edge."""
NOISE = (0.02, 0.15)
"""Smallest and largest standard deviation of the pixel noise; 1 is the distance from black to white."""

Images = NDArray[np.uint8]
Masks = NDArray[np.float32]

_X, _Y = (axis[..., None] for axis in np.meshgrid(*[np.linspace(-1, 1, SIDE, dtype=np.float32)] * 2))


def pose(glyphs: Sequence[Image.Image], rng: np.random.Generator) -> Masks:
    """Rotate, shear, scale and shift each glyph into a mask [N, 32, 32] between 0 (paper) and 1 (ink)."""
    draws = rng.random((len(glyphs), 5))
    angle = np.radians(ROTATION) * (2 * draws[:, 0] - 1)
    zoom = 1 / (SCALE[0] + (SCALE[1] - SCALE[0]) * draws[:, 1])
    shear = SHEAR * (2 * draws[:, 2] - 1)
    shift = SHIFT * (2 * draws[:, 3:5] - 1)
    # Pillow wants the inverse map, from a pixel of the image to a point of the glyph.
    a, b = zoom * np.cos(angle), -zoom * np.sin(angle)
    d, e = -b + shear * a, a + shear * b
    centre = SIDE / 2 + shift
    c = CANVAS / 2 - a * centre[:, 0] - b * centre[:, 1]
    f = CANVAS / 2 - d * centre[:, 0] - e * centre[:, 1]
    masks = np.empty((len(glyphs), SIDE, SIDE), np.uint8)
    for row, (glyph, inverse) in enumerate(zip(glyphs, np.stack([a, b, c, d, e, f], axis=1).tolist())):
        posed = glyph.transform((SIDE, SIDE), Image.Transform.AFFINE, inverse, Image.Resampling.BICUBIC)
        masks[row] = np.asarray(posed)
    return as_floats(masks)


def paint(masks: Masks, streams: Streams) -> Images:
    """Ink of one random colour on shaded paper of another, under pixel noise."""
    paper, ink = palette(len(masks), streams.colour)
    draws = streams.light.random((len(masks), 1, 1, 6), dtype=np.float32)
    across, down = 2 * draws[..., 0:1] - 1, 2 * draws[..., 1:2] - 1
    shade = SHADE * (across * _X + down * _Y) * draws[..., 2:5]
    sigma = NOISE[0] + (NOISE[1] - NOISE[0]) * draws[..., 5:6]
    noise = sigma * streams.noise.standard_normal((*masks.shape, 3), dtype=np.float32)
    return as_bytes(paper + shade + (ink - paper) * masks[..., None] + noise)


def palette(count: int, rng: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Two colours [N, 1, 1, 3] per image, one clearly lighter than the other."""
    draws = rng.random((count, 1, 1, 7), dtype=np.float32)
    paper = draws[..., 0:3]
    # Light ink on dark paper or dark on light: two random colours of equal brightness would not be legible.
    headroom = np.where(paper.mean(axis=-1, keepdims=True) < 0.5, 1 - paper, -paper)
    contrast = FAINTEST_INK + (1 - FAINTEST_INK) * draws[..., 3:4]
    return paper, paper + headroom * contrast * (1 - TINT * draws[..., 4:7])


def as_bytes(scene: NDArray[np.float32]) -> Images:
    """Round a picture in [0, 1] to bytes; what lies outside is clipped."""
    return np.rint(np.clip(scene, 0, 1) * 255).astype(np.uint8)


def as_floats(images: Images) -> NDArray[np.float32]:
    """Bytes to numbers in [0, 1]."""
    return np.divide(images, 255, dtype=np.float32)

"""The fonts: files that matplotlib ships, found without importing matplotlib.

Training uses four upright DejaVu fonts. The fonts held back for the covariate shift are slanted, and for the
scripts that STIX covers also of another design.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from oodscope.base.errors import DataError

TRAIN_FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif")
UNSEEN_FONTS = ("DejaVuSerif-Italic", "DejaVuSerif-BoldItalic", "DejaVuSansMono-BoldOblique")
UNSEEN_STIX = ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic")

EM = 32
"""Font size, in pixels, at which a glyph is rasterised once before every image resamples it."""

CANVAS = 64
"""Side of the square around that glyph: room for the widest letter at any rotation."""

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

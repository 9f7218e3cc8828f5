"""Pictures inside a page: pixels as data that a browser shows."""

from base64 import b64encode
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from oodscope.data.images.decoding import as_rgb

SIDE = 96
"""The largest side of a picture in pixels."""


def data_uri(pixels: NDArray[np.uint8]) -> str:
    """An image as a PNG in a data URI: pixels kept if it is small, shrunk if it is not."""
    picture = Image.fromarray(as_rgb(pixels))
    picture.thumbnail((SIDE, SIDE))
    stream = BytesIO()
    picture.save(stream, "PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(stream.getvalue()).decode()}"

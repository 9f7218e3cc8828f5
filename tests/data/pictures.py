"""Image files of all kinds, written for a test."""

import io
import tarfile

import numpy as np
from PIL import Image


def pixels(count=6, seed=0, height=7, width=9):
    return np.random.default_rng(seed).integers(0, 256, size=(count, height, width, 3)).astype(np.uint8)


def save(path, image):
    """One array, losslessly; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path)
    return path


def png(image):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


def tar(path, members):
    """A tar file of ``(name, bytes)`` pairs, in order."""
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def torn(content):
    return content[: len(content) // 2]

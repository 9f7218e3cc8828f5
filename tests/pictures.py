"""Pictures that look like photographs to a hash (power falling with frequency), and what happens to copies of them."""

import io

import numpy as np
from PIL import Image


def clouds(count, seed, side=32):
    """Colour pictures with power falling as in soft photographs, no two alike: uint8 ``[N, side, side, 3]``."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side))) + 1 / side
    noise = np.fft.fft2(rng.normal(size=(count, 3, side, side))) / frequency**1.4
    # the channels of a photograph agree for the most part
    mixed = np.einsum("dc,ncij->ndij", 0.85 * np.full((3, 3), 1 / 3) + 0.15 * np.eye(3), np.fft.ifft2(noise).real)
    mixed -= mixed.mean(axis=(1, 2, 3), keepdims=True)
    mixed *= 50 / mixed.std(axis=(1, 2, 3), keepdims=True)
    return np.clip(mixed + 128, 0, 255).astype(np.uint8).transpose(0, 2, 3, 1)


def jpeg(image, quality=50):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.asarray(Image.open(stream))


def resized(image, factor=1.5):
    height, width = image.shape[:2]
    return np.asarray(Image.fromarray(image).resize((round(width * factor), round(height * factor)), Image.BICUBIC))


def cropped(image, share=0.05):
    height, width = image.shape[:2]
    cut = max(1, round(share * height))
    inner = Image.fromarray(image[cut : height - cut, cut : width - cut])
    return np.asarray(inner.resize((width, height), Image.BICUBIC))


def brightened(image):
    return np.clip(image * 1.2 + 10.0, 0, 255).astype(np.uint8)


COPIES = {
    "jpeg": jpeg,
    "larger": resized,
    "smaller": lambda image: resized(image, 0.75),
    "cropped": cropped,
    "cut at two sides": lambda image: resized(image[2:, 2:], 32 / 30),
    "brightened": brightened,
    "all at once": lambda image: jpeg(brightened(cropped(resized(image, 1.2))), 60),
}

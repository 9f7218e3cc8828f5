"""Every augmented image is one of the crops that a loop over images would allow, and all of them occur."""

from collections import Counter

import numpy as np
import torch

from oodscope.training.augment.crop import Augment


def crop(image: np.ndarray, pad: int, top: int, left: int, mirrored: bool) -> bytes:
    """One image by hand: a black frame, a window, a mirror."""
    channels, height, width = image.shape
    framed = np.zeros((channels, height + 2 * pad, width + 2 * pad), image.dtype)
    framed[:, pad : pad + height, pad : pad + width] = image
    window = framed[:, top : top + height, left : left + width]
    return (window[:, :, ::-1] if mirrored else window).tobytes()


def places(images: torch.Tensor, augmented: torch.Tensor, pad: int) -> list[tuple[int, int, bool]]:
    """Where each augmented image was cut; an image that was not cut from its original is an error."""
    found = []
    for before, after in zip(images.numpy(), augmented.numpy()):
        options = {
            crop(before, pad, top, left, mirrored): (top, left, mirrored)
            for top in range(2 * pad + 1)
            for left in range(2 * pad + 1)
            for mirrored in (False, True)
        }
        found.append(options[after.tobytes()])
    return found


def noise(count: int) -> torch.Tensor:
    return torch.randint(256, (count, 3, 7, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_every_crop_and_mirror_occurs_equally_often():
    images = noise(3600)
    found = places(images, Augment(pad=1)(images, torch.Generator().manual_seed(1)), pad=1)
    counts = Counter(found)
    assert len(counts) == 18
    assert all(140 <= count <= 260 for count in counts.values()), counts  # 200 expected, deviation 14


def test_without_flip_letters_stay_letters():
    images = noise(300)
    found = places(images, Augment(pad=2, flip=False)(images, torch.Generator().manual_seed(1)), pad=2)
    assert not any(mirrored for _, _, mirrored in found)
    assert len({(top, left) for top, left, _ in found}) == 25


def test_without_pad_images_stay_in_place():
    images = noise(50)
    found = places(images, Augment(pad=0)(images, torch.Generator().manual_seed(1)), pad=0)
    assert {mirrored for _, _, mirrored in found} == {False, True}
    assert torch.equal(Augment(pad=0, flip=False)(images, torch.Generator()), images)


def test_the_generator_decides():
    images = noise(40)
    one, again, other = (Augment()(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)

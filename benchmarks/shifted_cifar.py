"""CIFAR under both kinds of shift: other labels (four foreign sets) and other inputs (corrupted test images)."""

import io
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

import oodscope as oods
from openood_cifar import TRANSFORM, open_benchmark, pack

NOISE = (0.04, 0.06, 0.08, 0.09, 0.10)
BLUR = (0.4, 0.6, 0.7, 0.8, 1.0)
CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)
JPEG = (80, 65, 58, 50, 40)


def open_shifted(folder: Path, name: str) -> oods.Benchmark:
    """OpenOOD's ID splits; the other CIFAR, digits, textures and scenes as labels; 4,000 corrupted images as inputs."""
    plain = open_benchmark(folder, name)
    return oods.Benchmark(
        name=f"{name} shifted",
        version="1",
        transform=TRANSFORM[name],
        id_train=_at_most(plain.id_train, 25_000),
        id_val=plain.id_val,
        id_test=plain.id_test,
        near=plain.near[:1],
        far=tuple(pack(folder, each) for each in ("svhn_test_10k", "dtd10_32", "sun_scenes_32")),
        csid=(corrupted(plain.id_test, count=4000, seed=0),),
    )


def _at_most(images: oods.ImageSet, count: int) -> oods.ImageSet:
    """As many training images for either network."""
    rows = np.random.default_rng(0).permutation(len(images))[:count]
    return images.take(np.sort(rows))


def corrupted(images: oods.ImageSet, count: int, seed: int) -> oods.ImageSet:
    """``count`` images, each corrupted once: kind ``i mod 4`` at severity ``i // 4 mod 5``, CIFAR-10-C's constants."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(images), size=count, replace=False)
    damaged = [_damage(image, i % 4, i // 4 % 5, rng) for i, image in enumerate(images.images(rows))]
    return oods.ImageSet.from_arrays("id_corrupted", np.stack(damaged), images.labels[rows], images.class_names)


def _damage(image: np.ndarray, kind: int, severity: int, rng: np.random.Generator) -> np.ndarray:
    scene = image.astype(np.float64) / 255
    if kind == 0:
        scene = scene + NOISE[severity] * rng.standard_normal(scene.shape)
    elif kind == 1:
        scene = gaussian_filter(scene, (BLUR[severity], BLUR[severity], 0))
    elif kind == 2:
        mean = scene.mean(axis=(0, 1))
        scene = mean + CONTRAST[severity] * (scene - mean)
    else:
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "JPEG", quality=JPEG[severity])
        return np.asarray(Image.open(stream))
    return np.round(np.clip(scene, 0, 1) * 255).astype(np.uint8)

"""CIFAR under both kinds of shift: other labels (four OOD sets) and other inputs (corrupted test images)."""

from pathlib import Path

import oodscope as oods
from oodscope.data.corruptions.sets import corrupt
from openood_cifar import TRANSFORM, open_benchmark, pack


def open_shifted(folder: Path, name: str) -> oods.Benchmark:
    """OpenOOD's ID splits; the other CIFAR, digits, textures and scenes as labels; corrupted images as inputs."""
    plain = open_benchmark(folder, name)
    return oods.Benchmark(
        name=f"{name} shifted",
        version="2",
        transform=TRANSFORM[name],
        id_train=plain.id_train,
        id_val=plain.id_val,
        id_test=plain.id_test,
        near=plain.near[:1],
        far=tuple(pack(folder, each) for each in ("svhn_test_10k", "dtd10_32", "sun_scenes_32")),
        csid=(corrupt(plain.id_test, "c", count=10_000, name="id_corrupted"),),
    )

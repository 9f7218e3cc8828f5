"""The image sets that trained methods are judged on: OpenOOD's near sets, far sets of ours, corrupted ID images."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import oodscope as oods
from oodscope.data.corruptions.batch import corrupt_batch
from oodscope.data.corruptions.catalog import CORRUPTIONS
from oodscope.data.imageset import ImageSet
from openood_cifar import open_benchmark, pack

FAR = {"svhn_test_10k": "svhn_10k", "mnist_test": "mnist", "dtd10_32": "dtd_10_classes", "sun_scenes_32": "sun_scenes"}
HELD, LEARNT, HELD_REMAINDER = "tin_held_100", "tin_learnt_100", 1
"""Tiny ImageNet by classes: every second, from class 1 on, tests exposed networks; they learn from the other half."""
VEHICLES = (0, 1, 8, 9)
"""Airplane, automobile, ship and truck."""


def corrupted(images: ImageSet, device: str) -> ImageSet:
    """Each image under one corruption of CIFAR-C at one severity; all 75 pairs equally often, by rows."""
    names = [name for name, each in CORRUPTIONS.items() if each.group == "c"]
    pixels = torch.from_numpy(np.stack(images.images(range(len(images))))).permute(0, 3, 1, 2).to(device)
    rows, found = np.arange(len(images)), torch.empty_like(pixels)
    for number, name in enumerate(names):
        chosen = rows[rows % len(names) == number]
        severity = 1 + (chosen // len(names)) % 5
        if len(chosen):
            found[chosen] = corrupt_batch(pixels[chosen], name, severity, keys=chosen)
    made = found.permute(0, 2, 3, 1).cpu().numpy()
    return ImageSet.from_arrays("corrupted", made, images.labels, images.class_names)


def groups(images: ImageSet, known: str) -> dict[str, np.ndarray]:
    """The two groups of CIFAR-10's classes that OpenOOD trains MOS with; of CIFAR-100 there is no such line."""
    kinds = np.where(np.isin(images.labels, VEHICLES), "vehicle", "animal")
    return {"kind": kinds} if known == "cifar10" else {}


def open_sets(folder: Path, known: str, images: int | None, device: str) -> oods.Benchmark:
    """Near-OOD benchmark, far sets and corrupted images; ``images`` keeps so many of each set, for a try.

    Packs of far sets that are not there are left out.
    """
    bench = open_benchmark(folder, known)

    def few(found: ImageSet, name: str | None = None) -> ImageSet:
        return found.take(range(min(images or len(found), len(found))), name)

    far = tuple(few(pack(folder, file), name) for file, name in FAR.items() if (folder / f"{file}.npz").exists())
    single = {role: few(getattr(bench, role)) for role in ("id_train", "id_val", "id_test", "ood_val")}
    single["id_train"].hierarchy.update(groups(single["id_train"], known))
    csid = (corrupted(single["id_test"], device),)
    return replace(bench, near=tuple(map(few, bench.near)), far=far, csid=csid, **single)


def exposed_sets(bench: oods.Benchmark) -> oods.Benchmark:
    """The same with outliers to learn from: every second class of Tiny ImageNet, which no set is then tested on.

    The rows were chosen by OpenOOD to show no class of the ID set. What is left of the test set has another name,
    because its numbers are not those of the whole set.
    """
    (tin,) = [each for each in bench.near if each.name == "tin"]
    others = tuple(each for each in bench.near if each.name != "tin")

    def half(images: ImageSet, remainder: int, name: str) -> ImageSet:
        return images.take(np.flatnonzero(images.labels % 2 == remainder), name)

    return replace(
        bench,
        near=(*others, half(tin, HELD_REMAINDER, HELD)),
        ood_val=half(bench.ood_val, HELD_REMAINDER, "tin_val_held_100"),
        ood_train=half(tin, 1 - HELD_REMAINDER, LEARNT),
    )

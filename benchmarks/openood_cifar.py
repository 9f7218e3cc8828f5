"""OpenOOD v1.5's CIFAR benchmarks (near-OOD part) from the real image packs.

``cifar10_train.npz`` (50,000 images, in the packs' own format) is looked for beside the packs and in
``artifacts/``, whole or as its halves ``cifar10_train_1.npz`` and ``_2``; CIFAR-100's training images lie in two packs
of 25,000. Halves are joined.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, CIFAR100, load_pack, pack, resnet18

ARTIFACTS = Path(__file__).parent.parent / "artifacts"
TRAIN = {
    "cifar10": [("cifar10_train",), ("cifar10_train_1", "cifar10_train_2")],
    "cifar100": [("cifar100_train_25k", "cifar100_train_rest_25k")],
}
"""Packs that together are the training images; of several ways the first that is there."""
TRANSFORM = {"cifar10": CIFAR10, "cifar100": CIFAR100}


def open_training(folder: Path, name: str) -> oods.ImageSet:
    """The 50,000 training images, all packs of them joined."""
    ways = [(names, home) for names in TRAIN[name] for home in (folder, ARTIFACTS)]
    found = [each for each in ways if all((each[1] / f"{part}.npz").exists() for part in each[0])]
    if not found:
        raise SystemExit(f"no training images of {name}: put {TRAIN[name][0][0]}.npz into {folder} or {ARTIFACTS}")
    names_of_packs, home = found[0]
    parts = [load_pack(folder, part, home) for part in names_of_packs]
    labels = np.concatenate([extras["labels"] for _, extras in parts]).astype(np.int64)
    names = [str(number) for number in range(int(labels.max()) + 1)]
    return oods.ImageSet.from_arrays("id_train", np.concatenate([images for images, _ in parts]), labels, names)


def drawn(images: oods.ImageSet, count: int | None, seed: int = 0) -> oods.ImageSet:
    """A seeded part of a set, the same number of every class where it has labels; the whole if ``count`` is None."""
    if count is None or count >= len(images):
        return images
    draw = np.random.default_rng(seed).permutation(len(images))
    labels = images.labels[draw]
    place = np.empty(len(images), np.int64)
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        place[mine] = np.arange(len(mine))
    return images.take(np.sort(draw[np.argsort(place, kind="stable")[:count]]), images.name)


def open_part(folder: Path, name: str, train: int | None, test: int | None) -> oods.Benchmark:
    """The near-OOD benchmark with SVHN as a far set; seeded parts of it where numbers are given."""
    whole = open_benchmark(folder, name)
    return dataclasses.replace(
        whole,
        id_train=drawn(whole.id_train, train),
        id_val=drawn(whole.id_val, test),
        id_test=drawn(whole.id_test, test),
        ood_val=drawn(whole.ood_val, test),
        near=tuple(drawn(each, test) for each in whole.near),
        far=(drawn(pack(folder, "svhn_test_10k").take(np.arange(10_000), "svhn"), test),),
    )


def open_benchmark(folder: Path, name: str) -> oods.Benchmark:
    """All roles of the near-OOD half, by the published split lists."""
    splits = np.load(folder / "openood_v15_splits.npz")
    train = open_training(folder, name)
    whole, tin = pack(folder, f"{name}_test"), pack(folder, "tinyimagenet_val")
    if name == "cifar10":
        near = pack(folder, "cifar100_test").take(splits["cifar100_test_id"], "cifar100")
    else:
        near = pack(folder, "cifar10_test").take(np.arange(10_000), "cifar10")
    return oods.Benchmark(
        name=f"{name} near-OOD",
        version="openood-1.5",
        transform=TRANSFORM[name],
        id_train=train,
        id_val=whole.take(splits[f"{name}_val_id"], "id_val"),
        id_test=whole.take(splits[f"{name}_test_id"], "id_test"),
        near=(near, tin.take(splits[f"{name}_test_tin"], "tin")),
        ood_val=tin.take(splits[f"{name}_val_tin"], "tin_val"),
    )


def open_classifier(folder: Path, name: str, device: str = "auto") -> oods.Classifier:
    """The ResNet-18 trained for it."""
    return resnet18(folder, name, TRANSFORM[name], device)

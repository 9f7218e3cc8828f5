"""The real images of the studies of generated sets: CIFAR-10, CIFAR-100 and MNIST, from packs."""

import argparse
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import load_pack

from openood_cifar import drawn

NAMES = {
    "cifar10": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    "mnist": tuple("0123456789"),
    "cifar100": tuple(f"class {number}" for number in range(100)),
}


@dataclass
class Sets:
    """The real images of one study."""

    train: oods.ImageSet
    val: oods.ImageSet
    test: oods.ImageSet
    near: tuple[oods.ImageSet, ...]
    far: tuple[oods.ImageSet, ...]


def open_sets(options: argparse.Namespace) -> Sets:
    """The real images, from packs; a seeded part of the training images where a number is given."""
    sets = _whole(options)
    return replace(sets, train=drawn(sets.train, options.train_images))


def _whole(options: argparse.Namespace) -> Sets:
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    most = 300 if options.small else None

    def opened(path: str | Path, name: str, rows: Any = None, known: bool = False) -> oods.ImageSet:
        home = Path(path).resolve().parent if Path(path).suffix else folder
        if not (home / f"{Path(path).stem}.npz").exists():
            sys.exit(f"{Path(path).stem}.npz is not in {home}: give the file by --train, or put it into $OODSCOPE_DATA")
        pixels, extras = load_pack(folder, Path(path).stem, home)
        chosen = np.arange(len(pixels)) if rows is None else np.asarray(rows)
        chosen = chosen[:: max(1, len(chosen) // most)] if most else chosen
        names = NAMES[options.dataset] if known else ()
        return oods.ImageSet.from_arrays(name, pixels[chosen], extras["labels"][chosen].astype(np.int64), names)

    splits = np.load(folder / "openood_v15_splits.npz")
    if options.dataset == "cifar10":
        return Sets(
            train=opened(options.train or "cifar10_train", "id_train", known=True),
            val=opened("cifar10_test", "id_val", splits["cifar10_val_id"], known=True),
            test=opened("cifar10_test", "id_test", splits["cifar10_test_id"], known=True),
            near=(opened("cifar100_test", "cifar100", splits["cifar100_test_id"]),),
            far=(opened("svhn_test_10k", "svhn"), opened("dtd10_32", "textures"), opened("sun_scenes_32", "scenes")),
        )
    if options.dataset == "cifar100":
        parts = [opened(name, "id_train", known=True) for name in ("cifar100_train_25k", "cifar100_train_rest_25k")]
        pixels = np.concatenate([np.stack(part.images(range(len(part)))) for part in parts])
        labels = np.concatenate([part.labels for part in parts])
        return Sets(
            train=oods.ImageSet.from_arrays("id_train", pixels, labels, NAMES["cifar100"]),
            val=opened("cifar100_test", "id_val", splits["cifar100_val_id"], known=True),
            test=opened("cifar100_test", "id_test", splits["cifar100_test_id"], known=True),
            near=(opened("cifar10_test", "cifar10"),),
            far=(opened("svhn_test_10k", "svhn"), opened("dtd10_32", "textures"), opened("sun_scenes_32", "scenes")),
        )
    order = np.random.default_rng(0).permutation(10_000)
    return Sets(
        train=opened(options.train or "mnist_train", "id_train", known=True),
        val=opened("mnist_test", "id_val", np.sort(order[:1000]), known=True),
        test=opened("mnist_test", "id_test", np.sort(order[1000:]), known=True),
        near=(),
        far=(opened(options.fashion, "fashion"),) if options.fashion else (),
    )

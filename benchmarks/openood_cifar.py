"""OpenOOD v1.5's CIFAR benchmarks (near-OOD part) from the real image packs.

``cifar10_train.npz`` (50,000 images, in the packs' own format) is looked for beside the packs and in
``artifacts/``; CIFAR-100 has half of its training images in ``cifar100_train_25k.npz``.
"""

import sys
from pathlib import Path

import numpy as np

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, CIFAR100, pack, resnet18

ARTIFACTS = Path(__file__).parent.parent / "artifacts"
TRAIN = {"cifar10": "cifar10_train", "cifar100": "cifar100_train_25k"}
TRANSFORM = {"cifar10": CIFAR10, "cifar100": CIFAR100}


def open_benchmark(folder: Path, name: str) -> oods.Benchmark:
    """All roles of the near-OOD half, by the published split lists."""
    splits = np.load(folder / "openood_v15_splits.npz")
    home = folder if (folder / f"{TRAIN[name]}.npz").exists() else ARTIFACTS
    train = pack(folder, TRAIN[name], home)
    whole, tin = pack(folder, f"{name}_test"), pack(folder, "tinyimagenet_val")
    if name == "cifar10":
        near = pack(folder, "cifar100_test").take(splits["cifar100_test_id"], "cifar100")
    else:
        near = pack(folder, "cifar10_test")
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

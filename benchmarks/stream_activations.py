"""Activations of the shared CIFAR-10 ResNet-18 that the pages on guarantees and on streams are computed from.

    OODSCOPE_DATA=path/to/packs python benchmarks/stream_activations.py path/to/cifar10_train.npz FOLDER

Writes one ``SET.npz`` per set (features as float16, logits, labels); a set that is there is not computed again.
"""

import os
import sys
from pathlib import Path

import numpy as np
import torch

import oodscope as oods
from oodscope.base.files import atomic_path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, pack, resnet18

SETS = {"id_test": 6000, "id_train": 10000, "svhn": 1500, "cifar100": 1500, "tin": 1500, "csid": 1000}
"""Images of each set, drawn with seed 0; ``csid`` are other CIFAR-10 test images under Gaussian noise, severity 2."""

PACKS = {
    "id_test": "cifar10_test",
    "csid": "cifar10_test",
    "cifar100": "cifar100_test",
    "tin": "tinyimagenet_val",
    "svhn": "svhn_test_10k",
}


def images(folder: Path, train: Path, name: str) -> oods.ImageSet:
    """The chosen images of one set."""
    whole = pack(folder, train.stem, train.parent) if name == "id_train" else pack(folder, PACKS[name])
    order = np.random.default_rng(0).permutation(len(whole))
    start = SETS["id_test"] if name == "csid" else 0
    chosen = whole.take(np.sort(order[start : start + SETS[name]]))
    return oods.corrupt(chosen, "gaussian_noise", severity=2) if name == "csid" else chosen


def main() -> None:
    folder, train, place = Path(os.environ["OODSCOPE_DATA"]).resolve(), Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    place.mkdir(parents=True, exist_ok=True)
    clf = resnet18(folder, "cifar10", CIFAR10)
    for name in SETS:
        path = place / f"{name}.npz"
        if path.exists():
            continue
        found = oods.ActivationStore().extract(clf, images(folder, train, name))
        arrays = {
            "logits": found.logits.numpy().astype(np.float32),
            "features": found.features.numpy().astype(np.float16),
            "labels": torch.as_tensor(found.labels).numpy(),
        }
        with atomic_path(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **arrays)
        print(f"{name}: {len(found)} images", flush=True)


if __name__ == "__main__":
    main()

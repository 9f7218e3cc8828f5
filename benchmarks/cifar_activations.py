"""Logits and features of OpenOOD's CIFAR benchmarks, once, for every page that compares detectors on them.

    OODSCOPE_DATA=path/to/packs python benchmarks/cifar_activations.py FOLDER [--train 5000] [--test 2000]

Writes FOLDER/NAME/SET.npz with logits, features and labels, and ``about.json`` with the sizes of the sets, the
accuracy and the device. Without ``--train`` and ``--test`` the sets are taken whole. An interrupted run goes on where
it stopped: what was extracted lies in FOLDER/store.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np

import oodscope as oods
from oodscope.data.jigsaw import jigsaw
from openood_cifar import open_classifier, open_part


def write(folder: Path, name: str, output: Path, train: int | None, test: int | None, device: str) -> None:
    """Every set of one benchmark as arrays."""
    bench, clf = open_part(folder, name, train, test), open_classifier(folder, name, device)
    store = oods.ActivationStore(output / "store")
    (output / name).mkdir(parents=True, exist_ok=True)
    head = clf.head
    assert head is not None, "a ResNet-18 has a head"
    sizes, accuracy = {}, 0.0
    assert bench.id_val is not None, "OpenOOD has validation images"
    shuffled = ("ood_val", jigsaw(bench.id_val).take(np.arange(len(bench.id_val)), "id_jigsaw"))
    for role, images in (*bench.members(), shuffled):
        found = store.extract(clf, images, batch_size=100)
        label = {"tin_val": "ood_val"}.get(images.name, images.name)
        columns = {key: np.asarray(found[key]) for key in ("logits", "features")}
        np.savez(output / name / f"{label}.npz", **columns, labels=bench.id_labels(role, images), own=images.labels)
        sizes[label] = {"role": role, "n": len(images)}
        if role == "id_test":
            accuracy = float((found.prediction.numpy() == images.labels).mean())
        print(f"{name} {label}: {len(images):,} images", flush=True)
    np.savez(output / name / "head.npz", weight=head.weight.numpy(), bias=head.bias.numpy())
    about = {"sizes": sizes, "accuracy": accuracy, "device": str(clf.device), "fingerprint": clf.fingerprint}
    (output / name / "about.json").write_text(json.dumps(about, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--train", type=int)
    parser.add_argument("--test", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--benchmarks", nargs="*", default=["cifar10", "cifar100"])
    options = parser.parse_args()
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    for name in options.benchmarks:
        write(folder, name, options.output, options.train, options.test, options.device)


if __name__ == "__main__":
    main()

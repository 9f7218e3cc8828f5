"""How much do training images as ID test set flatter a detector, and do the rows say so?

    OODSCOPE_DATA=path/to/packs python benchmarks/exposure_cifar.py [--activations FOLDER]

The CIFAR-10 ResNet-18 against CIFAR-100, MSP and energy: once with test images as ID, once with every fifth training
image. FOLDER may hold activations extracted before (``cifar10-SET-logits.npz``, ``cifar10-SET-features.npy``).
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

import oodscope as oods
from openood_cifar import ARTIFACTS, CIFAR10, pack, resnet18


class Recorded:
    """A store that reads activations extracted before; rows of a set are found by the source they came from."""

    forwarded = 0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def extract(self, classifier: oods.Classifier, images: oods.ImageSet, **_: Any) -> oods.Activations:
        whole = images.source.name(0).rpartition("/")[0] == "cifar10_train"
        stem = "cifar10_train" if whole else images.name
        with np.load(self.folder / f"cifar10-{stem}-logits.npz") as content:
            logits = content["logits"][images.rows if whole else slice(None)]
        return oods.Activations(logits=logits.astype(np.float32), labels=images.labels)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--activations", type=Path)
    given = parser.parse_args()
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    splits = np.load(folder / "openood_v15_splits.npz")
    train = pack(folder, "cifar10_train", folder if (folder / "cifar10_train.npz").exists() else ARTIFACTS)
    test = pack(folder, "cifar10_test").take(splits["cifar10_test_id"], "id_test")
    near = pack(folder, "cifar100_test").take(splits["cifar100_test_id"], "cifar100")
    classifier = resnet18(folder, "cifar10", CIFAR10)
    classifier.trained_on = (train,)
    store: Any = Recorded(given.activations) if given.activations else oods.ActivationStore()
    print("| ID images | detector | AUROC | 95 % interval | exposure in the row |\n|---|---|---|---|---|")
    for name, id_test in (("test", test), ("training", train.take(np.arange(0, len(train), 5), "id_test"))):
        bench = oods.Benchmark(name="cifar10", version="exposure", id_test=id_test, near=(near,))
        result = oods.evaluate(classifier, bench, ["msp", "ebo"], store=store)
        for row in result.measurements.filter(metric="auroc", set="cifar100"):
            interval = f"{100 * row.low:.2f} to {100 * row.high:.2f}"
            print(
                f"| {name} ({row.n_id}) | {row.detector} | {100 * row.value:.2f} | {interval} | {row.exposure or '–'} |"
            )
    print()
    print(result.table().render("markdown"))


if __name__ == "__main__":
    main()

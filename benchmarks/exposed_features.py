"""Why Mahalanobis distance falls below chance after outlier exposure: where the features of outliers go.

    OODSCOPE_DATA=path/to/packs python benchmarks/exposed_features.py

CIFAR-10 test images against SVHN, embedded by a ResNet-18 trained on CIFAR-100; one head of two layers, plain and
after outlier exposure to other SVHN images. Of both: AUROC of MDS and EBO, the length of the features and their
distance from the nearest class mean in the metric of MDS.
"""

import os
from pathlib import Path

import numpy as np
import torch
from tests.realdata.packs import CIFAR100, pack, resnet18

import oodscope as oods
from oodscope.activations.store.store import ActivationStore
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.training.heads.recipe import HeadRecipe
from oodscope.training.heads.task import HeadTask
from oodscope.training.heads.training import train_heads

TRAIN, TEST = 1500, 500


def main() -> None:
    """Train the two heads and print the table."""
    folder = Path(os.environ["OODSCOPE_DATA"])
    clf, store = resnet18(folder, "cifar100", CIFAR100), ActivationStore()
    sets = [pack(folder, name).take(np.arange(TRAIN + TEST)) for name in ("cifar10_test", "svhn_test_10k")]
    known, unknown = (store.extract(clf, images) for images in sets)
    embeddings, outliers = (torch.from_numpy(np.asarray(each["features"])).float() for each in (known, unknown))
    labels, rows = torch.as_tensor(sets[0].labels), np.arange(TRAIN)
    recipe = HeadRecipe(patience=0)
    plain = train_heads(recipe, embeddings, labels, [HeadTask(rows, rows[:0], 0)], 10)[0]
    told = HeadTask(rows, rows[:0], 0, outliers=rows, start=plain)
    exposed = train_heads(recipe, embeddings, labels, [told], 10, outliers=outliers)[0]
    print("| head | AUROC of MDS | AUROC of EBO | length, ID | length, OOD | MDS, ID | MDS, OOD |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, head in (("plain", plain), ("after outlier exposure", exposed)):
        fitted_on = head.activations(embeddings[:TRAIN], labels[:TRAIN])
        there, strange = head.activations(embeddings[TRAIN:]), head.activations(outliers[TRAIN:])
        cells = []
        for detector in ("mds", "ebo"):
            fitted = oods.create_detector(detector).fit(fitted_on)
            scores = [fitted.score(each).numpy() for each in (there, strange)]
            cells.append(f"{100 * Ranking(*scores).auroc:.2f}")
            if detector == "mds":
                distances = [f"{np.median(each):.4g}" for each in scores]
        lengths = [f"{float(torch.as_tensor(each['features']).norm(dim=1).median()):.3g}" for each in (there, strange)]
        print(f"| {name} | {' | '.join(cells)} | {' | '.join(lengths)} | {' | '.join(distances)} |")


if __name__ == "__main__":
    main()

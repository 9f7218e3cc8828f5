"""A generated set before a network that nobody had in mind when it was made.

    OODSCOPE_DATA=path/to/packs python benchmarks/generated_elsewhere.py --train cifar10_train.npz \\
        --near scratch/cifar10/near --shifted scratch/cifar10/shifted [--device cuda]

The networks of ``generated_study.py`` are trained alike, and the sets were shaped by such networks. Here it is the
ResNet-18 that lies beside the packs: 100 epochs by OpenOOD's recipe, trained by another program. The same 19 detectors,
as a table in markdown; what the network takes generated images for; its calibration error on shifted ones.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from scipy.special import softmax

import oodscope as oods
from generated_study import DETECTORS, NAMES, open_sets
from oodscope.data.generated import open_generated
from oodscope.metrics.calibration import reliability

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, resnet18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "near", "shifted"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--store", type=Path, help="of activations, so that a second run is short")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    options.dataset, options.small, options.fashion = "cifar10", False, None
    sets = open_sets(options)
    near, shifted = open_generated(options.near), open_generated(options.shifted)
    network = resnet18(Path(os.environ["OODSCOPE_DATA"]).resolve(), "cifar10", CIFAR10, options.device)
    bench = oods.Benchmark(
        name="cifar10",
        version="generated sets elsewhere",
        transform=CIFAR10,
        id_train=sets.train,
        id_val=sets.val,
        id_test=sets.test,
        near=(near, *sets.near),
        far=sets.far,
        csid=(shifted,),
    )
    store = oods.ActivationStore(options.store)
    result = oods.evaluate(network, bench, DETECTORS, store=store, progress=oods.ConsoleProgress())
    found = {(row.detector, row.set): row for row in result.measurements if row.metric == "auroc"}
    columns = [images.name for images in (*bench.near, *bench.far)]
    print(f"\n| AUROC | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for detector in DETECTORS:
        cells = [f"{100 * found[detector, name].value:.1f}" for name in columns]
        print(f"| {detector} | {' | '.join(cells)} |")
    for other in columns[1:]:
        lower = sum(found[detector, near.name].value < found[detector, other].value for detector in DETECTORS)
        print(f"{near.name} is harder than {other} for {lower} of {len(DETECTORS)} detectors")
    for images in (near, shifted, sets.test):
        probabilities = softmax(store.extract(network, images).logits.cpu().numpy().astype(np.float64), axis=1)
        taken, confidence = probabilities.argmax(axis=1), probabilities.max(axis=1)
        right = taken == images.labels
        shares = ", ".join(f"{name} {(taken == number).mean():.0%}" for number, name in enumerate(NAMES["cifar10"]))
        error = f", ECE {100 * reliability(confidence, right, 15).error:.1f} %" if images is not near else ""
        print(f"{images.name} ({len(images):,}): its class in {100 * right.mean():.1f} %{error}; {shares}")


if __name__ == "__main__":
    main()

"""How long do all detectors on cached activations take, with their whole search grids?

    OODSCOPE_DATA=path/to/packs python benchmarks/detector_grids.py [--device cuda]

CIFAR-10 and its near-OOD sets: each detector is searched on id_val and ood_val, fitted on 50,000 training rows and
scores id_test and both near sets. The activations lie on the device. Detectors that train something (opengan, gmm)
or fit tails class by class (openmax) and those that need more passes through the network are left out.
"""

import argparse
import os
import time
from pathlib import Path

import torch

import oodscope as oods
from oodscope.data.benchmark import Validation
from oodscope.detectors.registry import DETECTORS, create_detector
from oodscope.detectors.tuning import fit_detector
from openood_cifar import open_benchmark, open_classifier

LEFT_OUT = ("opengan", "gmm", "openmax")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    bench, clf = open_benchmark(folder, "cifar10"), open_classifier(folder, "cifar10", device)
    store = oods.ActivationStore()

    def on_device(images: oods.ImageSet) -> oods.Activations:
        rows = store.extract(clf, images, batch_size=500)
        columns = {name: rows[name].to(device) for name in ("logits", "features", "labels")}
        return oods.Activations(**columns, head=rows.head.to(device))

    train, val, ood_val = (on_device(images) for images in (bench.id_train, bench.id_val, bench.ood_val))
    tested = [on_device(images) for images in (bench.id_test, *bench.near)]
    names = [name for name in DETECTORS if not create_detector(name).probes and name not in LEFT_OUT]
    # libraries start up before the clock does
    create_detector("mds").to(device).fit(train).score(val)
    spent = {}
    whole = time.perf_counter()
    for name in names:
        started = time.perf_counter()
        search = Validation(val, ood_val)
        fitted = fit_detector(create_detector(name).to(device), train, val, search=search, track="ood_val")
        scores = [fitted.detector.score(rows).cpu() for rows in tested]
        assert all(torch.isfinite(part).all() for part in scores)
        spent[name] = (time.perf_counter() - started, fitted.choice.grid_size)
    total = time.perf_counter() - whole
    print("| detector | combinations | search, fit and score, ms |\n|---|---|---|")
    for name, (seconds, size) in sorted(spent.items(), key=lambda item: -item[1][0]):
        print(f"| {name} | {size} | {1000 * seconds:.0f} |")
    print(f"\n{len(names)} detectors: {total:.2f} s on {torch.cuda.get_device_name() if 'cuda' in device else device}")


if __name__ == "__main__":
    main()

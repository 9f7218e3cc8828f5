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

import oodscope as oods
from generated_sets import NAMES, open_sets
from generated_study import DETECTORS
from oodscope.data.generated.files import open_generated
from oodscope.execution.console import ConsoleProgress
from oodscope.runs.generated.calibrating import calibrate
from oodscope.runs.generated.opinion import ask

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, resnet18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "near", "shifted"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--store", type=Path, help="of activations, so that a second run is short")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    options.dataset, options.small, options.fashion, options.train_images = "cifar10", False, None, None
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
    result = oods.evaluate(network, bench, DETECTORS, store=store, progress=ConsoleProgress())
    print("# The near-OOD set of CIFAR-10 on a network of another recipe")
    print(f"\n{result.table(metric='auroc').render('markdown')}")
    found = {(row.detector, row.set): row.value for row in result.measurements if row.metric == "auroc"}
    for other in (*sets.near, *sets.far):
        lower = sum(found[each, near.name] < found[each, other.name] for each in DETECTORS)
        print(f"- {near.name} is harder than {other.name} for {lower} of {len(DETECTORS)} detectors")
    for images in (near, shifted, sets.test):
        taken = ask([network], images, store.extract_many).prediction
        shares = ", ".join(f"{name} {(taken == number).mean():.0%}" for number, name in enumerate(NAMES["cifar10"]))
        print(f"- {images.name} ({len(images):,}): its class in {(taken == images.labels).mean():.1%}; {shares}")
    for row in calibrate(result, network, bench, (near.name, shifted.name), store.extract_many).measurements:
        if row.metric == "ece15":
            print(f"- {row.set}: ECE {row.value:.1%}")


if __name__ == "__main__":
    main()

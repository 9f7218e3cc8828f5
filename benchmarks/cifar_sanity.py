"""Do the road's figures on real images agree with those measured when the networks were trained?

    OODSCOPE_DATA=path/to/packs python benchmarks/cifar_sanity.py

Two trained ResNet-18s (CIFAR-10, CIFAR-100), whole test sets, float32 on the CPU.
"""

import os
import sys
import time
from pathlib import Path

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, CIFAR100, pack, resnet18

REFERENCE = {
    ("cifar10", "cifar100_test", "msp"): 87.36,
    ("cifar10", "cifar100_test", "ebo"): 86.36,
    ("cifar10", "svhn_test_10k", "msp"): 92.45,
    ("cifar10", "svhn_test_10k", "ebo"): 92.64,
    ("cifar100", "cifar10_test", "msp"): 78.46,
    ("cifar100", "cifar10_test", "ebo"): 79.08,
}
ACCURACY = {"cifar10": 94.98, "cifar100": 78.04}


def judge(folder: Path, name: str, transform: oods.Preprocess, near: str, far: tuple[str, ...]) -> None:
    bench = oods.Benchmark(
        name=name,
        version="packs",
        id_test=pack(folder, f"{name}_test"),
        near=(pack(folder, near),),
        far=tuple(pack(folder, each) for each in far),
    )
    started = time.perf_counter()
    result = oods.evaluate(resnet18(folder, name, transform), bench, ["msp", "ebo"])
    seconds = time.perf_counter() - started
    (accuracy,) = result.measurements.filter(metric="accuracy")
    print(f"| {name} | accuracy | | {100 * accuracy.value:.2f} | | {ACCURACY[name]:.2f} |")
    for row in result.measurements.filter(metric="auroc"):
        if expected := REFERENCE.get((name, row.set, row.detector)):
            ours = f"{100 * row.value:.2f} | {100 * row.low:.2f} to {100 * row.high:.2f}"
            print(f"| {name} | {row.set} | {row.detector} | {ours} | {expected:.2f} |")
    print(f"{result.record.forward_images} images in {seconds:.0f} s; {result.record.notes}", file=sys.stderr)


def main() -> None:
    folder = Path(os.environ["OODSCOPE_DATA"]).resolve()
    print("| network | set | detector | ours | 95 % interval | reference |\n|---|---|---|---|---|---|")
    judge(folder, "cifar10", CIFAR10, "cifar100_test", ("svhn_test_10k",))
    judge(folder, "cifar100", CIFAR100, "cifar10_test", ())


if __name__ == "__main__":
    main()

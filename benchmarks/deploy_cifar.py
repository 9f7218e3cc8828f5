"""Does a calibrated threshold keep its rate of false alarms on real images, and what does one image cost?

    OODSCOPE_DATA=path/to/packs python benchmarks/deploy_cifar.py path/to/cifar10_train.npz [path/to/activations]

A ResNet-18 trained on CIFAR-10; detectors are fitted to its 50,000 training images. The 10,000 test images, which
neither network nor detectors have seen, are shuffled again and again: of the first half some calibrate, the second half
counts false alarms. A folder of activations extracted before (``cifar10-SET-logits.npz`` and ``-features.npy``) spares
the passes through the network; the latency is measured with the network either way.
"""

import os
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch
from scipy.stats import betabinom

import oodscope as oods
from oodscope.deploy.scorer import Scorer
from oodscope.metrics.rejection.conformal import calibrate, most_above

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.realdata.packs import CIFAR10, pack, resnet18

DETECTORS = ("msp", "ebo", "knn", "mds")
DRAWS = 500
CALIBRATION = (500, 5000)
FRESH = 5000


def alarms(scores: np.ndarray, target: float, kind: str, n: int) -> np.ndarray:
    """The share of 5,000 fresh images that is rejected, for each draw of n calibration images."""
    rates = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(scores))
        chosen = calibrate(scores[order[:n]], target, kind)  # type: ignore[arg-type]
        rates.append(1 - chosen.accepts(scores[order[-FRESH:]]).mean())
    return np.array(rates)


def predicted(target: float, kind: str, n: int) -> float:
    """The share of draws above target that exchangeable scores without ties have: alarms are beta-binomial."""
    above = most_above(n, target, kind)  # type: ignore[arg-type]
    assert above is not None, "n is large enough"
    return float(betabinom.sf(int(target * FRESH), FRESH, above + 1, n - above))


def stored(folder: Path, clf: oods.Classifier, *sets: str) -> oods.Activations:
    """The rows of some sets, one after the other."""
    logits = [np.load(folder / f"cifar10-{name}-logits.npz") for name in sets]
    return oods.Activations(
        logits=np.concatenate([part["logits"] for part in logits]),
        labels=np.concatenate([part["labels"] for part in logits]),
        features=np.concatenate([np.load(folder / f"cifar10-{name}-features.npy") for name in sets]),
        head=clf.head,
    )


def latency(scorer: Scorer, images: list[np.ndarray], repeats: int = 100) -> tuple[float, float]:
    """Milliseconds for one image, from pixels to verdict: the median and the fastest."""
    for image in images[:5]:
        scorer.predict(image)
    times = []
    for number in range(repeats):
        started = time.perf_counter()
        scorer.predict(images[number % len(images)])
        times.append(time.perf_counter() - started)
    return 1e3 * float(np.median(times)), 1e3 * min(times)


def main() -> None:
    folder, train_file = Path(os.environ["OODSCOPE_DATA"]).resolve(), Path(sys.argv[1]).resolve()
    clf = resnet18(folder, "cifar10", CIFAR10)
    if len(sys.argv) > 2:
        home = Path(sys.argv[2])
        train, test = stored(home, clf, "cifar10_train"), stored(home, clf, "id_val", "id_test")
    else:
        store = oods.ActivationStore()
        train = store.extract(clf, pack(folder, train_file.stem, train_file.parent))
        test = store.extract(clf, pack(folder, "cifar10_test"))
    print(f"{len(train)} training images, {len(test)} test images, {DRAWS} draws, {torch.get_num_threads()} threads\n")
    print("| detector | guarantee | target | calibration images | mean rate | 5 % to 95 % of draws | ", end="")
    print("draws above target | predicted |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    fitted = {}
    for name in DETECTORS:
        fitted[name] = oods.create_detector(name).fit(train)
        scores = fitted[name].score(test).numpy()
        for kind, target, n in product(("conformal", "pac"), (0.05, 0.01), CALIBRATION):
            found = alarms(scores, target, kind, n)
            low, high = np.quantile(found, [0.05, 0.95])
            above, law = 100 * (found > target).mean(), 100 * predicted(target, kind, n)
            shown = f"{100 * found.mean():.2f} | {100 * low:.2f} to {100 * high:.2f} | {above:.1f} | {law:.1f}"
            print(f"| {name} | {kind} | {100 * target:g} | {n:,} | {shown} |", flush=True)
    print(
        "\n| detector | one image, median ms | fastest ms | file without weights, MiB |\n|---|---|---|---|", flush=True
    )
    pictures = pack(folder, "cifar10_test").images(range(20))
    for name, detector in fitted.items():
        scorer = Scorer(clf, detector)
        median, fastest = latency(scorer, pictures)
        with tempfile.TemporaryDirectory() as home_of_file:
            scorer.save(Path(home_of_file) / "a.oodscope")
            size = (Path(home_of_file) / "a.oodscope").stat().st_size / 2**20
        print(f"| {name} | {median:.1f} | {fastest:.1f} | {size:.2f} |", flush=True)


if __name__ == "__main__":
    main()

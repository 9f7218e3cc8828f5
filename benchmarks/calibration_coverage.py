"""How often the 95 % interval of an ECE holds the truth, by simulation, beside three plainer bootstrap intervals.

python benchmarks/calibration_coverage.py [--cases 500] [--sizes 300,1000,5000]
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from oodscope.metrics.calibration.calibration import reliability
from oodscope.metrics.resampling.bootstrap import bca_interval, percentile_interval

BINS = 15
KINDS = {
    "calibrated": lambda c: c,
    "3 % too sure": lambda c: 0.97 * c,
    "10 points too sure": lambda c: np.maximum(c - 0.1, 0.0),
    "too sure above 0.9 only": lambda c: np.where(c > 0.9, c - 0.05, c),
    "much too sure": lambda c: c**2.5,
}
"""The chance of being right, given the confidence."""


def confidences(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Most near 1, as a network's on a test set."""
    return np.asarray(1.0 - 0.9 * rng.beta(0.6, 3.0, size=n))


def true_error(kind: str) -> float:
    """The calibration error over the bins of two million images, without the noise of right and wrong."""
    confidence = confidences(2_000_000, np.random.default_rng(0))
    bins = np.ceil(confidence * BINS).astype(int) - 1
    return float(np.abs(np.bincount(bins, KINDS[kind](confidence) - confidence)).sum() / confidence.size)


def cell(kind: str, n: int, cases: int, replicates: int) -> list[str]:
    """One line of the table: truth, mean of the estimates, and the share of cases that each interval holds."""
    rng, truth = np.random.default_rng([n, list(KINDS).index(kind)]), true_error(kind)
    held, widths, estimates = np.zeros((cases, 4)), np.zeros(cases), np.zeros(cases)
    for case in range(cases):
        confidence = confidences(n, rng)
        found = reliability(confidence, rng.random(n) < KINDS[kind](confidence), BINS)
        errors = np.abs(found.replicates(seed=case, count=replicates)).sum(axis=1)
        middle, bca = percentile_interval(errors), bca_interval(errors, found.error)
        own = found.interval(seed=case, replicates=replicates)
        mirrored = (max(0.0, 2.0 * found.error - middle.high), max(0.0, 2.0 * found.error - middle.low))
        ends = ((own.low, own.high), (middle.low, middle.high), (bca.low, bca.high), mirrored)
        held[case] = [low <= truth <= high for low, high in ends]
        widths[case], estimates[case] = own.high - own.low, found.error
    shares = [f"{100 * share:.1f}" for share in held.mean(axis=0)]
    return [f"{n:,}", kind, f"{truth:.4f}", f"{estimates.mean():.4f}", f"{widths.mean():.4f}", *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--sizes", default="300,1000,5000")
    options = parser.parse_args()
    print("| n | classifier | true ECE | mean estimate | mean width | inverted | percentile | BCa | mirrored |")
    print("|" + "---|" * 9)
    for n in map(int, options.sizes.split(",")):
        for kind in KINDS:
            print(f"| {' | '.join(cell(kind, n, options.cases, options.replicates))} |", flush=True)


if __name__ == "__main__":
    main()

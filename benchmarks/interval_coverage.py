"""How often the 95 % intervals hold the truth, by simulation: ID scores N(0, 1), OOD scores N(shift, 1).

python benchmarks/interval_coverage.py [--sizes 50,200] [--aurocs 0.9,0.99] [--metrics auroc,fpr95_id_positive]
"""

import argparse
from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from oodscope.metrics.ranking.delong import auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.bootstrap import Bootstrap, percentile_interval
from oodscope.metrics.resampling.resampling import bootstrap_each

AUROCS = (0.6, 0.8, 0.9, 0.95, 0.98, 0.99)
SIZES = (50, 200, 1000, 5000)
BATCH = 100
"""Cases that share bootstrap draws; the samples of all cases are independent."""


def truth(metric: str, auroc: float) -> float:
    """The metric of the two normal distributions themselves."""
    shift = norm.ppf(auroc) * np.sqrt(2.0)
    if metric == "auroc":
        return auroc
    if metric.startswith("fpr95"):
        return float(norm.cdf(norm.ppf(0.95) - shift))
    scores = np.linspace(-9.0, 9.0 + shift, 400_001)
    caught = norm.sf(scores - shift)
    precision = caught / np.maximum(caught + norm.sf(scores), 1e-300)
    return float(np.trapezoid(precision * norm.pdf(scores - shift), scores))


def batches(
    auroc: float, n: int, cases: int, replicates: int, metrics: list[str]
) -> Iterator[list[tuple[Ranking, Bootstrap]]]:
    """Simulated cases with all that intervals are made of."""
    rng = np.random.default_rng([n, round(1000 * auroc)])
    shift = norm.ppf(auroc) * np.sqrt(2.0)
    for start in range(0, cases, BATCH):
        count = min(BATCH, cases - start)
        samples = {str(k): (rng.normal(size=n), {"ood": rng.normal(shift, 1.0, size=n)}) for k in range(count)}
        draws = bootstrap_each(samples, seed=start, replicates=replicates, metrics=metrics)
        yield [(Ranking(i, ood["ood"]), draws[name]) for name, (i, ood) in samples.items()]


def coverage(auroc: float, n: int, cases: int, replicates: int, metrics: list[str]) -> dict[str, float]:
    """The share of cases whose interval holds the truth, for each metric and kind of interval."""
    true = {metric: truth(metric, auroc) for metric in metrics}
    held: dict[str, int] = {}
    for batch in batches(auroc, n, cases, replicates, metrics):
        for ranking, draws in batch:
            intervals = {"auroc delong-logit": auroc_interval(ranking)} if "auroc" in metrics else {}
            for metric in metrics:
                intervals[f"{metric} bca"] = draws.interval(metric, "ood")
                intervals[f"{metric} percentile"] = percentile_interval(draws.replicates(metric, ["ood"]))
            for name, interval in intervals.items():
                # a replicate may equal the truth but for rounding
                holds = interval.low - 1e-12 <= true[name.split()[0]] <= interval.high + 1e-12
                held[name] = held.get(name, 0) + holds
    return {name: count / cases for name, count in held.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--aurocs", default=",".join(map(str, AUROCS)))
    parser.add_argument("--metrics", default="auroc")
    options = parser.parse_args()
    metrics = options.metrics.split(",")
    kinds = [f"{metric} {kind}" for metric in metrics for kind in ("bca", "percentile")]
    header = ["n on each side", "AUROC", *(["auroc delong-logit"] if "auroc" in metrics else []), *kinds]
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for n in map(int, options.sizes.split(",")):
        for auroc in map(float, options.aurocs.split(",")):
            found = coverage(auroc, n, options.cases, options.replicates, metrics)
            print(f"| {n} | {auroc} | {' | '.join(f'{100 * found[name]:.1f}' for name in header[2:])} |", flush=True)


if __name__ == "__main__":
    main()

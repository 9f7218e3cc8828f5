"""What all intervals and all paired comparisons of a benchmark cost, beside scikit-learn and SciPy.

python benchmarks/statistics_speed.py [--classes-only]
"""

import argparse
from itertools import combinations
from os import getloadavg
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from oodscope.metrics.catalog import METRICS, RANKING
from oodscope.metrics.comparison.influence import join_sets, place_sets
from oodscope.metrics.comparison.multiplicity import holm
from oodscope.metrics.comparison.paired import paired_bootstrap, paired_delong
from oodscope.metrics.comparison.rates import rate_sets
from oodscope.metrics.comparison.simultaneous import compare_pairs, may_be_best, rank_intervals
from oodscope.metrics.metric import columns_of
from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.placements import place, together
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.resampling import bootstrap_each

DETECTORS, SETS, IMAGES, REPLICATES = 30, 6, 10_000, 1000
Scores = NDArray[np.float64]
Sample = tuple[Scores, dict[str, Scores]]


def made(detectors: int, sets: int, images: int) -> dict[str, Sample]:
    """Detectors that agree in part on which images look odd, as real ones do."""
    rng = np.random.default_rng(0)
    common = [rng.normal(1.5 * (k > 0), 1.0, size=images) for k in range(sets + 1)]
    samples = {}
    for number in range(detectors):
        own = [c + 0.5 * rng.normal(size=images) + 0.01 * number * (k > 0) for k, c in enumerate(common)]
        samples[f"detector {number}"] = (own[0], {f"set {k}": own[k + 1] for k in range(sets)})
    return samples


def ours(samples: dict[str, Sample]) -> int:
    """All intervals of all metrics per set and for the mean, and all pairs in AUROC and in every other metric."""
    draws = bootstrap_each(samples, seed=0, replicates=REPLICATES)
    names = list(next(iter(samples.values()))[1])
    columns = [*([name] for name in names), names]
    count = 0
    for detector, (id_scores, ood) in samples.items():
        rankings = {name: Ranking(id_scores, scores) for name, scores in ood.items()}
        for column in columns:
            mean_auroc_interval([rankings[name] for name in column])
            count += 1 + len(
                [
                    draws[detector].mean_interval(metric, column)
                    for metric in [each.name for each in RANKING]
                    if metric != "auroc"
                ]
            )
    placed = {d: {name: place(i, {name: s}) for name, s in ood.items()} for d, (i, ood) in samples.items()}
    for column in columns:
        mean = {detector: together([each[name] for name in column]) for detector, each in placed.items()}
        tests = [paired_delong(mean[a], mean[b]) for a, b in combinations(samples, 2)]
        holm([test.p for test in tests])
        count += len(tests)
        for metric in [each.name for each in RANKING]:
            if metric != "auroc":
                pairs = combinations(samples, 2)
                tests = [paired_bootstrap(draws[a], draws[b], metric, column) for a, b in pairs]
                holm([test.p for test in tests])
                count += len(tests)
    return count


def class_level(samples: dict[str, Sample], metric: str = "auroc", classes: int = 100) -> int:
    """Values, intervals, all pairs, ranks and candidates for other OOD classes, on every set and on their mean."""
    names = list(next(iter(samples.values()))[1])
    labels = {name: np.arange(IMAGES) % classes for name in names}
    drawn = dict.fromkeys(names, "sampled")
    if metric == "auroc":
        known = np.stack([each[0] for each in samples.values()])
        ood = {name: np.stack([each[1][name] for each in samples.values()]) for name in names}
        units = place_sets(known, ood, labels, drawn)
    else:
        columns = {
            name: [columns_of(own, ood[name], ood_class=labels[name]) for own, ood in samples.values()]
            for name in names
        }
        units = rate_sets(METRICS[metric], columns, drawn)
    count = 0
    for column in (*([name] for name in names), names):
        found = join_sets([units[name] for name in column])
        pairs = compare_pairs(found)
        rank_intervals(found, table=pairs)
        may_be_best(found)
        count += len(pairs.p)
    return count


def peers_replicate(id_scores: Scores, ood: Scores, rng: np.random.Generator) -> None:
    """One replicate of one detector on one set, drawn and measured by scikit-learn."""
    drawn = np.concatenate([rng.choice(id_scores, id_scores.size), rng.choice(ood, ood.size)])
    is_ood = np.repeat([0, 1], [id_scores.size, ood.size])
    roc_auc_score(is_ood, drawn)
    for labels, values in ((is_ood, drawn), (1 - is_ood, -drawn)):
        average_precision_score(labels, values)
        roc_curve(labels, values, drop_intermediate=False)


def peers_delong(one: Sample, two: Sample, name: str) -> float:
    """One pair on one set from all pairs of images, as the paper writes it."""
    by_id, by_ood = [], []
    for id_scores, ood in (one, two):
        wins = (ood[name] > id_scores[:, None]).astype(np.float32)
        by_id.append(wins.mean(axis=1))
        by_ood.append(wins.mean(axis=0))
    covariance = np.cov(by_id) / by_id[0].size + np.cov(by_ood) / by_ood[0].size
    difference = by_id[0].mean() - by_id[1].mean()
    return float(2 * norm.sf(abs(difference) / np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])))


def timed(label: str, repeats: int, work: object, *arguments: object) -> tuple[float, float]:
    """The least wall and processor seconds of some repetitions."""
    assert callable(work)
    seconds = []
    for _ in range(repeats):
        wall, processor = perf_counter(), process_time()
        work(*arguments)
        seconds.append((perf_counter() - wall, process_time() - processor))
    least = min(wall for wall, _ in seconds), min(processor for _, processor in seconds)
    print(f"| {label} | {least[0]:.2f} | {least[1]:.2f} | {getloadavg()[0]:.1f} |", flush=True)
    return least


def class_rows(samples: dict[str, Sample]) -> None:
    """The time of all statements about other OOD classes."""
    for metric in ("auroc", "fpr95_id_positive"):
        timed(f"{DETECTORS} detectors, {SETS} sets of 100 classes, {metric}", 2, class_level, samples, metric)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--classes-only", action="store_true", help="statements about other OOD classes alone")
    if parser.parse_args().classes_only:
        print("| what | wall, s | processor, s | load |\n|---|---|---|---|")
        class_rows(made(DETECTORS, SETS, IMAGES))
        return
    print("| what | wall, s | processor, s | load |\n|---|---|---|---|")
    large = made(6, 1, 50_000)
    one = dict(list(large.items())[:1])
    alone = timed("1,000 replicates of 50,000 + 50,000 scores, one detector, draws included", 2, draw, one)
    six = timed("the same, six detectors that share the draws", 1, draw, large)
    print(f"\nEach further detector: {(six[0] - alone[0]) / 5:.2f} s wall, {(six[1] - alone[1]) / 5:.2f} s processor\n")
    samples = made(DETECTORS, SETS, IMAGES)
    print("| what | wall, s | processor, s | load |\n|---|---|---|---|")
    whole = timed(f"ours: {DETECTORS} detectors, {SETS} sets, all intervals, all pairs", 1, ours, samples)
    class_rows(samples)
    first, second = list(samples.values())[:2]
    rng = np.random.default_rng(0)
    replicate = timed(
        "scikit-learn: one replicate, one detector, one set", 5, peers_replicate, first[0], first[1]["set 0"], rng
    )
    pair = timed("all image pairs: DeLong of one pair of detectors, one set", 3, peers_delong, first, second, "set 0")
    pairs = DETECTORS * (DETECTORS - 1) // 2
    for kind, index in (("wall", 0), ("processor", 1)):
        peer = replicate[index] * DETECTORS * SETS * REPLICATES + pair[index] * pairs * SETS
        print(f"\nExtrapolated, {kind}: {peer:,.0f} s; {peer / whole[index]:,.0f} times ours")


def draw(samples: dict[str, Sample]) -> None:
    bootstrap_each(samples, seed=0, replicates=REPLICATES)
    for id_scores, ood in samples.values():
        auroc_interval(Ranking(id_scores, ood["set 0"]))


if __name__ == "__main__":
    main()

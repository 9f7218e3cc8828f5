"""What all point metrics and the DeLong interval cost, in units of one stable argsort of the same scores.

python benchmarks/metrics_speed.py
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from oodscope.metrics.catalog import RANKING
from oodscope.metrics.ranking.delong import auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.resampling import bootstrap

SIDE = 500_000
Scores = NDArray[np.float64]


def best_of_5(*runs: Callable[[], object]) -> list[float]:
    """Seconds of each run at its fastest; they take turns, so that other programs disturb all of them alike."""
    seconds = np.empty((5, len(runs)))
    for turn in seconds:
        for k, run in enumerate(runs):
            start = perf_counter()
            run()
            turn[k] = perf_counter() - start
    return [float(fastest) for fastest in seconds.min(axis=0)]


def ours(id_scores: Scores, ood_scores: Scores) -> None:
    ranking = Ranking(id_scores, ood_scores)
    for metric in RANKING:
        if metric.of is not None and metric.positive is not None:
            metric.of(ranking.walk(metric.positive))
    auroc_interval(ranking)


def scikit_learn(id_scores: Scores, ood_scores: Scores) -> None:
    scores = np.concatenate([id_scores, ood_scores])
    is_ood = np.repeat([0, 1], [id_scores.size, ood_scores.size])
    roc_auc_score(is_ood, scores)
    for labels, values in ((is_ood, scores), (1 - is_ood, -scores)):
        average_precision_score(labels, values)
        roc_curve(labels, values, drop_intermediate=False)


def main() -> None:
    rng = np.random.default_rng(0)
    id_scores, ood_scores = rng.normal(size=SIDE), rng.normal(1.0, 1.0, size=SIDE)
    kinds: dict[str, Callable[[Scores], Scores]] = {
        "float64": np.copy,
        "through float32": lambda scores: scores.astype(np.float32).astype(np.float64),
        "3 decimals": lambda scores: scores.round(3),
    }
    print(f"best of 5, {2 * SIDE:,} scores, half ID and half OOD\n")
    print("| scores | distinct | argsort, ms | ours, ms | scikit-learn, ms | ours / argsort | scikit-learn / ours |")
    print("|---|---|---|---|---|---|---|")
    for name, kind in kinds.items():
        sides = kind(id_scores), kind(ood_scores)
        both = np.concatenate(sides)
        sort, own, peer = best_of_5(
            partial(np.argsort, both, kind="stable"), partial(ours, *sides), partial(scikit_learn, *sides)
        )
        times = f"{sort * 1e3:.0f} | {own * 1e3:.0f} | {peer * 1e3:.0f} | {own / sort:.2f} | {peer / own:.1f}"
        print(f"| {name} | {np.unique(both).size:,} | {times} |")
    sets = {f"set {k}": ood_scores[k * 10_000 :][:10_000] for k in range(6)}
    print("\nbest of 5, bootstrap of all metrics, 1,000 replicates, 10,000 ID against 10,000 OOD in each set\n")
    print("| OOD sets | seconds |")
    print("|---|---|")
    for chosen in ({"set 0": sets["set 0"]}, sets):
        [seconds] = best_of_5(partial(bootstrap, id_scores[:10_000], chosen, seed=0))
        print(f"| {len(chosen)} | {seconds:.2f} |")


if __name__ == "__main__":
    main()

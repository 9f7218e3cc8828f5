"""A small run as an evaluation would leave it: eight detectors, glyph-like sets, two protocols, real metrics."""

from functools import cache

import numpy as np
import pandas as pd

from oodscope.metrics.catalog import RANKING
from oodscope.metrics.ranking.delong import auroc_interval, mean_auroc_interval
from oodscope.metrics.ranking.ranking import Ranking
from oodscope.metrics.resampling.resampling import bootstrap
from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.record import RunRecord, SetRecord
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result
from tests.metrics.points import point_metrics

SETS = {  # name: (role, images)
    "id_test": ("id_test", 700),
    "held_out": ("near", 500),
    "photographs": ("far", 300),
    "digits": ("far", 400),
    "textures": ("far", 300),
    "unseen_fonts": ("csid", 350),
    "corrupted": ("csid", 350),
}
SHIFT = {  # how far each set lies from ID, in standard deviations of a detector of strength 1
    "id_test": 0.0,
    "held_out": 1.1,
    "photographs": 3.0,
    "digits": 1.8,
    "textures": 4.0,
    "unseen_fonts": 0.4,
    "corrupted": 0.9,
}
DETECTORS = {  # name: (strength, monotone map to the scale on which it scores, parameters, tuning)
    "msp": (1.0, lambda z: 1 / (1 + np.exp(2 - z)), {}, "default"),
    "mls": (1.02, lambda z: 3 * z - 12, {}, "default"),
    "ebo": (1.03, lambda z: 3 * z - 15, {"temperature": 1.0}, "default"),
    "gen": (1.08, lambda z: np.exp(z / 2), {"gamma": 0.1, "top": 10}, "default"),
    "knn": (1.3, lambda z: 0.2 + 0.1 * z, {"k": 50}, "default"),
    "vim": (1.32, lambda z: 5 * z, {"dim": 64}, "default"),
    "mds": (0.7, lambda z: np.exp(1.5 * z), {}, "default"),
    "react": (1.1, lambda z: 2 * z - 9, {"percentile": 90}, "ood_val"),
}
NEGATIVES = {"standard": ["id_test"], "full_spectrum": ["id_test", "unseen_fonts", "corrupted"]}
CLASSES = 10
COSTS = {"fit_seconds": 0.125, "microseconds_per_image": 12.5, "peak_mib": 3.5}


def make_scores(seed: int = 0) -> ScoreTable:
    rng = np.random.default_rng(seed)
    frames = []
    for name, (role, n) in SETS.items():
        own = rng.integers(CLASSES, size=n)
        labelled = role in ("id_test", "csid")
        right = rng.random(n) < 0.97 - 0.1 * SHIFT[name]
        frame = {
            "sample_id": [f"{name}/{row:05d}.png" for row in range(n)],
            "set": name,
            "role": role,
            "label": own if labelled else np.full(n, -1),
            "own_class": own,
            "prediction": np.where(right, own, (own + 1) % CLASSES),
            "unit": "",
        }
        common = rng.normal(size=n)  # detectors agree in part on which images look odd
        for detector, (strength, scale, _, _) in DETECTORS.items():
            z = SHIFT[name] * strength + 0.8 * common + 0.6 * rng.normal(size=n)
            frame[detector] = scale(z)
        frames.append(pd.DataFrame(frame))
    described = {
        detector: {"name": detector.upper(), "params": params, "tuning": tuning} | COSTS
        for detector, (_, _, params, tuning) in DETECTORS.items()
    }
    return ScoreTable(pd.concat(frames, ignore_index=True), {"detectors": described, "seed": seed})


def measure(scores: ScoreTable, run: str) -> Measurements:
    rows = []
    for protocol in NEGATIVES:
        rows += _accuracies(scores, protocol, run)
        for detector in scores.detectors:
            rows += _rankings(scores, protocol, detector, run)
    return Measurements.from_rows(rows)


def _rankings(scores: ScoreTable, protocol: str, detector: str, run: str) -> list[Measurement]:
    described = scores.context.detectors[detector]
    common = _common(run, protocol) | COSTS
    common |= {"detector": detector, "params": described.params, "tuning": described.tuning}
    negatives = np.concatenate([scores.scores(detector, set=name) for name in NEGATIVES[protocol]])
    rows = []
    for group in ("near", "far"):
        sets = {name: scores.scores(detector, set=name) for name in scores.sets(group)}
        rankings = {name: Ranking(negatives, positives) for name, positives in sets.items()}
        points = {name: point_metrics(ranking) for name, ranking in rankings.items()}
        draws = bootstrap(negatives, sets, seed=0, replicates=40)
        for metric in [each.name for each in RANKING]:
            for name in [*sets, "mean"]:
                whole = name == "mean"
                if metric == "auroc":
                    of = list(rankings.values())
                    interval = mean_auroc_interval(of) if whole else auroc_interval(rankings[name])
                else:
                    interval = draws.mean_interval(metric, list(sets)) if whole else draws.interval(metric, name)
                value = np.mean([p[metric] for p in points.values()]) if whole else points[name][metric]
                rows.append(
                    Measurement(
                        **common,
                        set=name,
                        group=group,
                        metric=metric,
                        value=value,
                        low=interval.low,
                        high=interval.high,
                        interval=interval.method,
                        level=interval.level,
                        n_id=len(negatives),
                        n_ood=sum(map(len, sets.values())) if whole else len(sets[name]),
                    )
                )
    return rows


def _accuracies(scores: ScoreTable, protocol: str, run: str) -> list[Measurement]:
    frame = scores.frame
    names = NEGATIVES[protocol]
    chosen = {name: frame[frame["set"] == name] for name in names}
    if len(names) > 1:
        chosen["pooled"] = frame[frame["set"].isin(names)]
    return [
        Measurement(
            **_common(run, protocol),
            set=name,
            group="id" if name == "id_test" else "csid",
            metric="accuracy",
            value=(rows["label"] == rows["prediction"]).mean(),
            n_id=len(rows),
        )
        for name, rows in chosen.items()
    ]


def _common(run: str, protocol: str) -> dict:
    return {
        "run": run,
        "benchmark": "glyphs",
        "benchmark_version": "1",
        "model": "small_cnn",
        "protocol": protocol,
        "seed": 0,
    }


def make_record(run: str = "glyphs-small_cnn-0", **changes: object) -> RunRecord:
    content = {
        "id": run,
        "created": "2026-01-31T12:00:00+00:00",
        "oodscope_version": "0.1.0",
        "benchmark": "glyphs",
        "benchmark_version": "1",
        "sets": {
            name: SetRecord(role=role, n=n, fingerprint=f"{i:02x}" * 32)
            for i, (name, (role, n)) in enumerate(SETS.items())
        },
        "model": "small_cnn",
        "model_fingerprint": "ab" * 32,
        "transform": "grey, 28 px, mean 0.5, std 0.5",
        "head": "Linear(128 -> 10) at 'fc', verified on a probe batch",
        "seed": 0,
        "precision": "float32",
        "device": "cpu",
        "environment": {"python": "3.11.7", "torch": "2.6.0", "numpy": "2.4.6", "platform": "Linux", "cpus": 2},
        "protocols": list(NEGATIVES),
        "skipped": {"ash": "needs features that are never negative", "odin": "needs gradients"},
        "notes": ["2 images of held_out are equal to each other", "1 image of digits could not be read"],
        "costs": {"extract_seconds": 12.5},
        "forward_images": 12_000,
    }
    return RunRecord.model_validate(content | changes)


@cache
def make_result(run: str = "glyphs-small_cnn-0") -> Result:
    scores = make_scores()
    return Result(make_record(run), measure(scores, run), scores)

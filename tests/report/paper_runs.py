"""Runs whose numbers are made up, in the shape that evaluations leave behind: small, and different everywhere."""

import numpy as np
import pandas as pd

from oodscope.results.measurement import Measurement, Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result
from tests.results.factory import make_record

DETECTORS = ("msp", "mls", "ebo", "react", "ash", "knn", "mds", "rmds", "vim", "odin", "gradnorm", "gen")
GROUPS = ("near", "far")
ALL_PROTOCOLS = ("standard", "full_spectrum", "human_centric")


def evaluation(model="resnet50", seed=0, detectors=DETECTORS, protocols=ALL_PROTOCOLS, recipe="", **record):
    """One run of a model: near and far means under both rankings, error rates and conventional metrics twice."""
    rng = np.random.default_rng(seed)
    run = f"run-{model}-{seed}"
    common = {"run": run, "benchmark": "toy", "benchmark_version": "1", "model": model, "recipe": recipe}
    rows = []
    for protocol in protocols:
        rows.append(row(common, protocol, "id", "id_test", "accuracy", 0.7 + 0.2 * rng.random(), detector=""))
        for detector in detectors:
            quality = rng.random()
            if protocol == "human_centric":
                rows += _human(common, detector, quality)
            else:
                drop = 0.1 + 0.1 * rng.random() if protocol == "full_spectrum" else 0.0
                near = 0.62 + 0.2 * quality + 0.03 * rng.normal() - drop
                far = 0.70 + 0.28 * quality - drop
                rows += [row(common, protocol, "near", "mean", "auroc", near, detector)]
                rows += [row(common, protocol, "far", "mean", "auroc", far, detector)]
    return Result(
        make_record(run, model=model, benchmark="toy", protocols=list(protocols), **record),
        Measurements(rows),
        scores(),
    )


def _human(common, detector, quality):
    protocol = "human_centric"
    yield row(common, protocol, "all", "mean", "der99_val_correct", 0.75 - 0.4 * quality, detector)
    yield row(common, protocol, "all", "mean", "der99_train_correct", 0.8 - 0.4 * quality, detector)
    yield row(common, protocol, "all", "mean", "der95_val_correct", 0.65 - 0.4 * quality, detector)
    for suffix, gain in (("", 0.0), ("_correct_id", 0.06)):
        yield row(common, protocol, "label_shift", "mean", f"auroc{suffix}", 0.7 + 0.2 * quality + gain, detector)
        yield row(
            common, protocol, "label_shift", "mean", f"fpr95_id_positive{suffix}", 0.6 - 0.3 * quality - gain, detector
        )


def row(common, protocol, group, name, metric, value, detector):
    ends = {"low": value - 0.011, "high": value + 0.017, "interval": "made up", "level": 0.95}
    return Measurement(
        **common, protocol=protocol, group=group, set=name, metric=metric, value=value, detector=detector, **ends
    )


def scores():
    columns = {"sample_id": ["a", "b"], "set": "id_test", "role": "id_test", "label": 0, "own_class": 0}
    return ScoreTable(
        pd.DataFrame({**columns, "prediction": 0, "unit": "", "msp": [0.1, 0.2]}), {"detectors": {"msp": {}}}
    )

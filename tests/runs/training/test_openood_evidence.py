"""Comparisons on one network: their differences are those of AUROCs, their errors those of images and classes."""

import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import openood_evidence
from openood_observations import OBSERVATIONS
from training_findings import placements

CLASSES = 12


def frame(seed=0, known="cifar10", near=1.0, far=2.0):
    """Scores of one network, with effects of classes: ID images at 0, corrupted ones at half, near and far as given."""
    rng = np.random.default_rng(seed)
    levels = [
        ("id_test", "id_test", 0.0),
        ("csid", "corrupted", 0.5),
        ("near", "cifar100", near),
        ("near", "tin", near),
    ]
    levels += [("far", name, far) for name in ("svhn_10k", "mnist")]
    parts = []
    for role, name, level in levels:
        classes = np.arange(120) % CLASSES
        effect = rng.normal(0, 0.3, CLASSES)[classes] if role in ("near", "far") else 0.0
        scores = {each: level + effect + rng.normal(size=120) for each in
                  (*openood_evidence.PLAIN, *openood_evidence.STAGED[known])}  # fmt: skip
        parts.append(pd.DataFrame({"role": role, "set": name, "own_class": classes, **scores}).assign(kept="best"))
    return pd.concat(parts, ignore_index=True)


def area(table, detector, sets, negatives=("id_test",)):
    known = table[table["set"].isin(negatives)][detector]
    parts = [table[table["set"] == name][detector] for name in sets]
    return 100 * np.mean([roc_auc_score(np.r_[np.zeros(len(known)), np.ones(len(each))], np.r_[known, each])
                          for each in parts])  # fmt: skip


def test_differences_are_those_of_the_mean_auroc():
    table = frame()
    found = openood_evidence.lines(table, "cifar10", Namespace(train=10, test=20)).set_index(
        ["observation", "comparison"]
    )
    near, far, names = ("cifar100", "tin"), ("svhn_10k", "mnist"), openood_evidence.PLAIN
    points = found["points"]
    assert points["rectifiers", "ash"] == pytest.approx(area(table, "ash", near) - area(table, "msp", near), abs=1e-3)
    apart = np.mean([area(table, each, far) - area(table, each, near) for each in names])
    assert points["far"].iloc[0] == pytest.approx(apart, abs=1e-3)
    fall = np.mean([area(table, each, near) - area(table, each, near, ("id_test", "corrupted")) for each in names])
    assert points["shift"].iloc[0] == pytest.approx(fall, abs=1e-3)
    early = area(table, "mds_ensemble", ["mnist"]) - area(table, "mds_ensemble", ["tin"])
    assert points["early", "mds_ensemble: MNIST above tin"] == pytest.approx(early, abs=1e-3)
    assert len(points["winners"]) == len(names) * (len(names) - 1)
    assert {each.evidence for each in OBSERVATIONS if each.evidence} == set(found.index.get_level_values(0))
    errors = found[["images_error", "classes_error"]].to_numpy()
    assert np.isfinite(errors).all() and (errors > 0).all() and (found[["train", "test"]] == [10, 20]).all().all()


def test_errors_for_classes_cover_redrawn_classes():
    """Far and near sets from one law: the difference is zero for other classes, and is called so."""
    wrong = 0
    for seed in range(100):
        table = frame(seed, near=1.0, far=1.0)
        _, classes = openood_evidence.versus(placements(table, "msp", role="far"), placements(table, "msp"))
        wrong += classes.verdict(1) != "cannot say"
    assert wrong <= 12

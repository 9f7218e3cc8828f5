"""The page of outlier exposure on generated sets: verdicts by seeds pooled over arms, and gaps by name."""

import argparse
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from generated_exposure import recipe_of
from generated_exposure_page import ARMS, CONTROL, page


def test_arms_differ_in_their_outliers_alone():
    """The defaults of outlier exposure are for fine-tuning: arms must not take them."""
    options = argparse.Namespace(dataset="mnist", epochs=5, device="cpu")
    recipes = [recipe_of(arm, 1, options).model_dump() for arm in (*ARMS, CONTROL)]
    plain, exposed = recipes[0], recipes[1]
    assert all(each == exposed for each in recipes[2:])
    assert {key: exposed[key] for key in plain if key != "ood_batch_size"} == {
        key: value for key, value in plain.items() if key != "ood_batch_size"
    }
    assert (plain["ood_batch_size"], exposed["ood_batch_size"]) == (0, plain["batch_size"])


def write(folder, values, seeds=3, unsure=0.2):
    """Cells of MNIST: one AUROC per arm, a hair apart by seed; shown ID images, a network is less sure of others."""
    for arm, value in zip((*ARMS, CONTROL), (*values, 0.8)):
        struck = arm == "real"
        sets = ("svhn",) if struck else ("clothes", "svhn")
        for seed in range(seeds):
            found = {
                "dataset": "mnist", "arm": arm, "seed": seed, "accuracy": 0.99, "outliers": 1000, "epochs": 5,
                "auroc": {f"{name} {each}": value + 0.002 * seed for name in ("ebo", "msp") for each in sets},
                "training images": 20_000, "msp of ID test": -5 + 0.01 * seed + unsure * (arm == CONTROL),
                "device": "processor", "date": "2026-01-01", "seconds": 1.0,
            }  # fmt: skip
            (folder / f"mnist-{arm}-{seed}.json").write_text(json.dumps(found))


@pytest.mark.parametrize(("near", "words"), [(0.97, "better in 5"), (0.60, "worse in 5"), (0.90, "cannot say in 5")])
def test_the_answer_follows_the_arms(tmp_path, near, words):
    write(tmp_path, (0.9, 0.9, near, 0.9))
    text = page(tmp_path)
    assert "**Answer.** mnist, generated near against each other arm, energy: " in text
    assert f"{words}" in text.split("\n")[4] and "of 5 pairs of arm and set" in text
    assert "**Not run yet** (15 trainings): cifar10: all." in text


def test_one_seed_decides_nothing(tmp_path):
    write(tmp_path, (0.5, 0.6, 0.99, 0.7), seeds=1)
    assert "cannot say in 5 of 5 pairs" in page(tmp_path)


def test_without_cells_nothing_is_claimed(tmp_path):
    text = page(tmp_path)
    assert "**Answer.** Cannot say yet: no arm was trained." in text
    assert "**Not run yet** (30 trainings): cifar10: all; mnist: all." in text


def test_a_source_is_never_its_own_test(tmp_path):
    write(tmp_path, (0.9, 0.9, 0.9, 0.9))
    text = page(tmp_path)
    (row,) = (line for line in text.split("\n") if line.startswith("| real |"))
    assert row == "| real | 3 | 99.0 | struck | 90.2 (90.0–90.4) | struck | 90.2 (90.0–90.4) |"
    assert "real on clothes: the data set whose images were shown" in text
    assert "generated near against real, ebo svhn" in text
    assert "generated near against real, ebo clothes" not in text


@pytest.mark.parametrize(("unsure", "words"), [(0.2, "as it must: what is shown reaches"), (0.0, "NOT as it must")])
def test_the_control_must_move(tmp_path, unsure, words):
    write(tmp_path, (0.9, 0.9, 0.9, 0.9), unsure=unsure)
    assert words in page(tmp_path)

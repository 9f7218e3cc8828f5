"""The page of outlier exposure on generated sets: verdicts by seeds pooled over arms, and gaps by name."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from generated_exposure import ARMS, page


def write(folder, values, seeds=3):
    """Cells of MNIST: one AUROC per arm, a hair apart by seed."""
    for arm, value in zip(ARMS, values):
        for seed in range(seeds):
            found = {
                "dataset": "mnist", "arm": arm, "seed": seed, "accuracy": 0.99, "outliers": 1000, "epochs": 5,
                "auroc": {"ebo clothes": value + 0.002 * seed, "msp clothes": value}, "training images": 20_000,
                "device": "processor", "date": "2026-01-01", "seconds": 1.0,
            }  # fmt: skip
            (folder / f"mnist-{arm}-{seed}.json").write_text(json.dumps(found))


@pytest.mark.parametrize(("near", "words"), [(0.97, "better in 3"), (0.60, "worse in 3"), (0.90, "cannot say in 3")])
def test_the_answer_follows_the_arms(tmp_path, near, words):
    write(tmp_path, (0.9, 0.9, near, 0.9))
    text = page(tmp_path)
    assert "**Answer.** mnist, generated near against each other arm, energy: " in text
    assert f"{words}" in text.split("\n")[4] and "of 3 pairs of arm and set" in text
    assert "**Not run yet** (12): cifar10: none 0" in text


def test_one_seed_decides_nothing(tmp_path):
    write(tmp_path, (0.5, 0.6, 0.99, 0.7), seeds=1)
    assert "cannot say in 3 of 3 pairs" in page(tmp_path)


def test_without_cells_nothing_is_claimed(tmp_path):
    text = page(tmp_path)
    assert "**Answer.** Cannot say yet: no arm was trained." in text
    assert "**Not run yet** (24)" in text

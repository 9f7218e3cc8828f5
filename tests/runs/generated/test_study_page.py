"""The page of generated sets that ``benchmarks/generated_page.py`` makes: sentences from numbers, gaps by name."""

import sys
from pathlib import Path

import pytest

from tests.runs.generated.generated_world import NEAR, SHIFTED, study

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from generated_page import answer, made_words, page

SETTINGS = {
    "dataset": "mnist",
    "training images": 20_000, "epochs": 5, "steps": 1500, "batch_size": 128, "fine_steps": 150, "lambdas": [0.5, 3.0],
    "lambda_perceptual": 8.0, "perceptual": "ensemble", "shifted_steps": 300, "shifted_perceptual": 9.0,
    "lambda_label": 1.0, "device": "processor", "date": "2026-01-01",
    "sets": {
        "near": {
            "window": [0.2, 0.6], "pool": {"images": 1000, "kept": 300, "chosen": 250}, "dropped by class": 100,
            "images of a class": {"0": 210, "1": 40},
        },
        "plain": {},
    },
}  # fmt: skip


@pytest.mark.slow
def test_the_page_names_what_was_run_and_what_was_not():
    text = page({"mnist": study()}, {"mnist": SETTINGS})
    assert "## mnist" in text and "**Not run yet**: cifar10, cifar100." in text
    assert f"| {NEAR} (generated) | near |" in text
    for heading in ("Class by class", "Controls", "Hardness at equal ID-ness", "Claims", "Orders", "Shifted sets"):
        assert f"### {heading}" in text
    assert "fewer than 7" in text, "an order over fewer than seven networks cannot be called the same"
    assert f"- **{SHIFTED}**: judges still see the class in" in text
    assert "**Machine.** processor. **Date.** 2026-01-01" in text
    assert "`python benchmarks/generated_study.py mnist --train-images 20000 --epochs 5 --steps 1500" in text
    (row,) = (line for line in text.splitlines() if line.startswith(f"| {NEAR} | static |"))
    assert "rows, detectors redrawn) |" in row, "three networks are too few to be redrawn"
    assert row.endswith(" (2) |"), "the ensemble's rows are all alike: two networks have an order"


def test_what_was_dropped_is_a_share_of_what_the_window_held():
    (first, _, line, _) = made_words(SETTINGS)
    assert "no shifted set came of 300 steps at λ_p = 9, λ_y = 1. Machine" in first
    assert "redrawn by 300 steps" in made_words({**SETTINGS, "sets": {"shifted": {}}})[0]
    assert "400 of 1,000 images within it, 25.0 % of them dropped" in line
    assert "fewest of a class 40, at least 200 in 1 of 2 classes" in line


def test_without_a_study_nothing_is_claimed():
    assert answer({}) == "Not run yet."
    assert "**Not run yet**: cifar10, cifar100, mnist." in page({})

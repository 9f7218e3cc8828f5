"""The study of checkpoints in miniature: it goes on where it stopped, and the page names what is not there."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from checkpoints_study import Training, flips, page, study

pytestmark = pytest.mark.slow
SIZE, CLASSES = 8, 3


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.fc = nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.fc(self.body(x))


def images(name, count, shift=0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES
    pixels = rng.integers(0, 60, size=(count, SIZE, SIZE, 3), dtype=np.uint8)
    for row, label in enumerate(labels):
        pixels[row, :, :, (label + shift) % 3] += np.uint8(120)
    return oods.ImageSet.from_arrays(name, pixels, labels, ["a", "b", "c"])


def made(folder):
    torch.manual_seed(0)
    train = images("id_train", 120)
    transform = oods.Preprocess(size=SIZE, mean=(0.5,) * 3, std=(0.5,) * 3)
    bench = oods.Benchmark(
        name="tiny",
        version="1",
        transform=transform,
        id_train=train,
        id_val=images("id_val", 60, seed=1),
        id_test=images("id_test", 60, seed=2),
        near=(images("noise", 40, seed=3),),
    )
    pixels = transform(train.images(np.arange(len(train))))
    return Training(Tiny(), pixels, torch.from_numpy(train.labels), folder, epochs=60), bench


def test_it_goes_on_where_it_stopped_and_names_what_is_missing(tmp_path):
    levels = (0.5, 0.9, 1.1)
    training, bench = made(tmp_path)
    done, missing = study(training, bench, levels, lambda: training.epoch >= 1, ["msp", "ebo"])
    assert training.epoch == 1 and "110" in missing
    again, bench = made(tmp_path)
    assert again.epoch == 1, "the state of the first call"
    done, missing = study(again, bench, levels, lambda: again.kept(0.9).exists(), ["msp", "ebo"])
    assert list(done) == ["50", "90"] and missing == ["110"]
    assert set(done["90"]["auroc"]) == {"msp", "ebo"} and done["90"]["frr95_train_correct"]["msp"][0] <= 1.0
    text = page(done, missing)
    assert "Not yet run: training accuracy 110." in text and "| detector | 50 | 90 |" in text
    assert "No checkpoint has been scored yet." in page({}, ["50"])


def test_an_order_flips_only_beyond_its_intervals():
    sure = {"70": {"auroc": {"a": [0.9, 0.88, 0.92], "b": [0.8, 0.78, 0.82]}}}
    turned = {"95": {"auroc": {"a": [0.8, 0.78, 0.82], "b": [0.9, 0.88, 0.92]}}}
    unsure = {"95": {"auroc": {"a": [0.8, 0.7, 0.9], "b": [0.85, 0.75, 0.95]}}}
    assert flips(sure | turned, "auroc") == ["a and b"] and flips(sure | unsure, "auroc") == []

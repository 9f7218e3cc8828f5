"""The study of checkpoints in miniature: it goes on where it stopped, and the page names what is not there."""

import sys
from pathlib import Path

import numpy as np
import pytest
from torch import nn

import oodscope as oods

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from checkpoints_study import Until, answer, figures, flips, keeping, page, study

pytestmark = pytest.mark.slow
SIZE, CLASSES = 8, 3
LEVELS = (0.5, 0.9, 1.1)


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


def bench():
    train = images("id_train", 120)
    return oods.Benchmark(
        name="tiny",
        version="1",
        transform=oods.Preprocess(size=SIZE, mean=(0.5,) * 3, std=(0.5,) * 3),
        id_train=train,
        id_val=images("id_val", 60, seed=1),
        id_test=images("id_test", 60, seed=2),
        near=(images("noise", 40, seed=3),),
        scored_train=train.take(np.arange(60), "id_train_scored"),
    )


class Steps(Until):
    """Ends after so many steps."""

    def __init__(self, steps):
        super().__init__(float("inf"))
        self.left = steps

    @property
    def over(self):
        self.left -= 1
        return self.left < 0


def run(folder, until):
    recipe = keeping(folder, LEVELS, epochs=12, batch_size=40, learning_rate=0.02, weight_decay=0.0)
    return study(Tiny, recipe, bench(), folder, until, ["msp", "ebo"], "cpu")


def test_it_goes_on_where_it_stopped_and_names_what_is_missing(tmp_path):
    assert not run(tmp_path, Steps(5)), "the time was over in the second epoch"
    assert figures(tmp_path, LEVELS) == {}
    assert run(tmp_path, Until(float("inf")))
    scored = {path.stem: path.stat().st_mtime_ns for path in (tmp_path / "scores").glob("*.parquet")}
    assert set(scored) == {"at-50", "at-90", "at-110"}, "the last epoch stands in for a level that is not reached"
    assert run(tmp_path, Until(float("inf")))
    assert scored == {path.stem: path.stat().st_mtime_ns for path in (tmp_path / "scores").glob("*.parquet")}
    done = figures(tmp_path, LEVELS)
    assert done["50"]["reached"] >= 0.5 and done["50"]["epoch"] < done["110"]["epoch"] == 12
    assert set(done["90"]["auroc"]) == {"msp", "ebo"} and done["90"]["frr95_train_correct"]["msp"][0] <= 1.0
    assert set(done["90"]["der95_val_correct"]) == {"msp", "ebo"}
    text = page({name: done[name] for name in ("50", "90")}, ["110"], "a machine")
    assert "Not yet run: training accuracy 110." in text and "| detector | 50 | 90 |" in text
    assert "No checkpoint has been scored yet." in page({}, ["50"], "a machine")


def test_an_order_flips_only_where_both_orders_are_sure():
    sure, turned = ({"apart": {"auroc": [pair]}} for pair in (["a", "b"], ["b", "a"]))
    unsure = {"apart": {"auroc": []}}
    assert flips({"70": sure, "95": turned}, "auroc") == ["a and b (a larger at 70, b larger at 95)"]
    assert flips({"70": sure, "95": unsure}, "auroc") == flips({"70": sure, "95": sure}, "auroc") == []


def test_the_answer_is_a_function_of_the_numbers():
    def made(train):
        rates = {"frr95_train_correct": {"a": [train]}, "frr95_val_correct": {"a": [0.05]}, "auroc": {"a": [0.9]}}
        return {**rates, "apart": {"auroc": [], "der95_train_correct": [], "der95_val_correct": []}}

    assert "grows: +1.0 points at 70 %, +35.0 at 99.97 %" in answer({"70": made(0.06), "99.97": made(0.4)})
    assert "changes, not always upwards" in answer({"70": made(0.4), "99.97": made(0.06)})
    assert answer({"70": made(0.4)}).startswith("Cannot say")

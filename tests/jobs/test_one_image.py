"""The way of one image: how often its file is opened, and how many modules its pixels pass."""

import json

import numpy as np
from PIL import Image

from tests.jobs.costs import script

RUN = """
import inspect, json, os, sys
from collections import Counter

opened = Counter()

def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".png"):
        opened.update([os.fspath(arguments[0])])

sys.addaudithook(note)

import torch
from torch import nn
import oodscope as oods

stacks = []

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        names = {frame.frame.f_globals.get("__name__", "") for frame in inspect.stack(0)}
        stacks.append(sorted(name for name in names if name.startswith("oodscope.")))
        return self.head(self.body(x))

bench = oods.own_benchmark(id_train="train", id_test="test", near=["near"], transform=oods.Preprocess(size=8))
result = oods.evaluate(oods.Classifier(Net(), device="cpu"), bench, ["msp", "mds"], batch_size=7)
counts = {os.path.relpath(path): count for path, count in opened.items()}
print(json.dumps({"opened": counts, "stacks": stacks, "gallery": [list(each) for each in result.gallery.keys]}))
"""


def test_files_are_opened_once_to_know_them_and_once_for_the_network(tmp_path):
    rng = np.random.default_rng(0)
    folders = {"train/a": 9, "train/b": 9, "test/a": 12, "test/b": 12, "near": 40}
    for folder, count in folders.items():
        (tmp_path / folder).mkdir(parents=True)
        for number in range(count):
            pixels = rng.integers(0, 256, size=(10, 12, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / folder / f"{number}.png")
    measured = json.loads(script(RUN, tmp_path).stdout.splitlines()[-1])
    names = {"train": "id_train", "test": "id_test", "near": "near"}
    shown = {tuple(each) for each in measured["gallery"]}
    assert len(measured["opened"]) == sum(folders.values())
    for path, count in measured["opened"].items():
        place, _, sample = path.partition("/")
        assert count == 2 + ((names[place], sample) in shown), path
    assert 0 < len(shown) < sum(folders.values())
    assert max(map(len, measured["stacks"])) <= 12, max(measured["stacks"], key=len)

"""Good files that bad ones are made from: tiny images, a network, a run, an artefact, an entry. Made once."""

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from PIL import Image

import oodscope as oods
from oodscope.leaderboard.verify.submitting import submit
from tests.tiny import benchmark, classifier, images

NETWORK = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 4))

def fails():
    raise RuntimeError("no such luck")

def leaves():
    raise SystemExit(3)

def wrong():
    return 5

text = "not callable"
"""


@cache
def good() -> Path:
    """The folder; removed with the process's temporary files."""
    folder = Path(mkdtemp(prefix="oodscope-good-"))
    for name, seed in {"train": 1, "val": 2, "test": 3, "near": 4, "far": 5}.items():
        pixels, labels = images(24, seed)
        np.savez(folder / f"{name}.npz", images=pixels, labels=labels, class_names=["a", "b", "c", "d"])
    (folder / "pictures" / "a").mkdir(parents=True)
    for number in range(4):
        Image.fromarray(images(4, 9)[0][number]).save(folder / "pictures" / "a" / f"{number}.png")
    (folder / "goodnet.py").write_text(NETWORK)
    store = oods.ActivationStore(folder / "store")
    result = oods.evaluate(classifier(), benchmark(), ["msp", "knn"], "standard", store=store)
    run = result.save(folder / "run")
    submit(run, folder / "board", id="knn-tiny", method="KNN", detector="knn")
    bench = benchmark()
    own = oods.Classifier(_network(), bench.transform, device="cpu")
    scorer = oods.fit_scorer(own, "msp", calibration=bench.id_val)
    scorer.save(folder / "good.oodscope", include_weights=True)
    return folder


def _network():
    space: dict = {}
    exec(NETWORK, space)
    return space["build"]()


def copy_run(change):
    """A maker of a run's folder that was spoiled by ``change``."""

    def make(path: Path) -> None:
        shutil.copytree(good() / "run", path)
        change(path)

    return make


def copy_entry(change, name="knn-tiny"):
    """A maker of an entry's folder that was spoiled by ``change``."""

    def make(path: Path) -> None:
        shutil.copytree(good() / "board" / name, path)
        change(path)

    return make


def edited(change, file="entry.json"):
    """A change of the JSON file of a folder."""

    def make(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))

    return make


def cut(file, keep):
    """A change that leaves the beginning of a file."""

    def make(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[:keep])

    return make


def flipped(file, place=100):
    """A change of one byte."""

    def make(folder: Path) -> None:
        content = bytearray((folder / file).read_bytes())
        content[place % len(content)] ^= 0xFF
        (folder / file).write_bytes(bytes(content))

    return make


def linked(file, target="/etc/passwd"):
    """A change that replaces a file by a link."""

    def make(folder: Path) -> None:
        (folder / file).unlink()
        (folder / file).symlink_to(target)

    return make

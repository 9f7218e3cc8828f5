"""What is wrong with a job ends it at once: before data are opened, before anything is trained."""

import json

import pytest
import yaml

from tests.jobs.costs import cheapest, python

TRAINED = {
    "benchmark": {"id_train": "train", "id_test": "test", "near": ["near"], "transform": {"size": 8}},
    "model": {"architecture": "small_cnn", "train": {"epochs": 50}},
    "detectors": ["msp"],
    "protocols": ["standard"],
}
MISTAKES = {
    "protocol": ({"protocols": ["standrad"]}, "unknown protocol 'standrad'. Did you mean 'standard'", 2),
    "detector": ({"detectors": ["msp", {"knnn": {"k": 3}}]}, "unknown detector 'knnn'. Did you mean 'knn'", 2),
    "pair": ({"detectors": ["raect+msp"]}, "unknown detector 'raect'. Did you mean 'react'", 2),
    "role": ({"benchmark": {"id_test": "test", "naer": ["near"]}}, "unknown key 'naer'. Did you mean 'near'", 2),
    "tuning": ({"tune": "ood_vall"}, "unknown tuning track 'ood_vall'. Did you mean 'ood_val'", 2),
    "folder": ({"output": "job.yaml"}, "cannot write to job.yaml: ", 1),
    "nowhere": ({"output": "/proc/none/runs"}, "cannot write to /proc/none/runs: ", 1),
    "fold detector": ({"plan": {"detectors": ["mspp"]}}, "unknown detector 'mspp'. Did you mean 'msp'", 2),
    "fitted detector": ({"fit": {"detector": "mspp"}}, "unknown detector 'mspp'. Did you mean 'msp'", 2),
    "recipe": (
        {"model": {"architecture": "small_cnn", "train": {"recipe": "logitnrom"}}},
        "unknown recipe 'logitnrom'",
        2,
    ),
    "recipe of a chain": (
        {"train": [{"epochs": 1}, {"recipe": "logitnrom"}]},
        "unknown recipe 'logitnrom'. Did you mean 'logitnorm'",
        2,
    ),
    "recipe of a study": (
        {"models": [{"name": "a", "architecture": "small_cnn", "train": "logitnrom"}]},
        "unknown recipe 'logitnrom'. Did you mean 'logitnorm'",
        2,
    ),
    "device": ({"device": "cuda:77"}, "device 'cuda:77' is not there", 1),
}
WATCH = """
import json, os, sys
opened, here = set(), os.getcwd()

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        path = os.path.abspath(arguments[0])
        # a nameless file in the output's place shows that one can be written
        if path.startswith(here + os.sep) and not arguments[2] & os.O_TMPFILE == os.O_TMPFILE:
            opened.add(os.path.relpath(path))

sys.addaudithook(note)
from oodscope.cli import main
sys.argv = ["oodscope", "run", "job.yaml"]
try:
    main()
except SystemExit as stop:
    print(json.dumps([stop.code, sorted(opened), "torch" in sys.modules]))
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("train", "test", "near"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_bytes(b"never opened")
    return tmp_path


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_costs_two_seconds_and_opens_nothing(folder, kind):
    change, message, expected = MISTAKES[kind]
    (folder / "job.yaml").write_text(yaml.safe_dump({**TRAINED, **change}))
    seconds, done = python("-c", WATCH, folder=folder)
    status, opened, torch = json.loads(done.stdout)
    assert status == expected
    assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert opened == ["job.yaml"]
    assert torch == (kind == "device")
    allowed = 2.0 + (cheapest("-c", "import torch", times=1) if torch else 0)
    assert seconds <= allowed
    assert {path.name for path in folder.iterdir()} == {"train", "test", "near", "job.yaml"}


def test_a_misspelt_metric_costs_two_seconds_and_opens_no_run(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("never opened")
    seconds, done = python("-m", "oodscope", "compare", "run", "--metric", "aurocc", folder=tmp_path)
    assert done.returncode == 2
    assert "unknown metric 'aurocc'. Did you mean 'auroc'" in done.stderr and "run.json" not in done.stderr
    assert seconds <= 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"architecture": "small_cn", "train": {}}}, "unknown model 'small_cn'. Did you mean 'small_cnn'"),
        ({"model": {"architecture": "small_cnn", "weights": "gone.pt"}}, "gone.pt: no such file of weights"),
        ({"model": "python:nowhere:build"}, "cannot import 'nowhere'"),
        ({"model": {**TRAINED["model"], "pretrained_on": ["imagenet1"]}}, "unknown pretraining corpus 'imagenet1'"),
        ({"detectors": [{"knn": {"kk": 3}}]}, "knn: no parameter 'kk'"),
        ({"benchmark": {"id_test": "tset", "near": ["near"]}}, "tset is not there; images come from"),
        ({"classes": "names.txt"}, "cannot read the class names in"),
        ({"weights": "net.pt"}, "unknown key 'weights'. It belongs under 'model'"),
        ({"attack": {"variations": ["afine"]}, "protocols": None}, "unknown key 'protocols'"),
        ({"attack": {}, "fit": {}}, "attack and fit are two jobs"),
    ],
)
def test_what_needs_more_than_names_is_found_before_data_too(folder, monkeypatch, change, message):
    import oodscope

    def never(*_args, **_kwargs):
        raise AssertionError("data were opened")

    monkeypatch.chdir(folder)
    monkeypatch.setattr("oodscope.data.own.own_benchmark", never)
    (folder / "job.yaml").write_text(yaml.safe_dump({**TRAINED, **change}))
    with pytest.raises(oodscope.OodscopeError) as caught:
        oodscope.run("job.yaml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tune": "ood_val"}, "has no id_val; without it parameters cannot be searched"),
        ({"tune": "ood_val", "benchmark": {"id_val": "test.npz"}}, "has no ood_val; search with outliers made from"),
        ({"tune": "id_only"}, "has no id_val; without it parameters cannot be searched"),
    ],
)
def test_images_that_are_missing_are_named_before_a_network_is_trained(tmp_path, monkeypatch, change, message):
    """The training took 96 s, and then the run ended for want of a set."""
    import numpy as np

    import oodscope
    from oodscope.jobs.task import Task

    rng = np.random.default_rng(0)
    for name in ("train", "test", "near"):
        pixels = rng.integers(0, 255, size=(12, 8, 8, 3), dtype=np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=np.arange(12) % 2)

    def never(*_args, **_kwargs):
        raise AssertionError("a network was trained")

    monkeypatch.setattr(Task, "build", never)
    sets = {"id_train": "train.npz", "id_test": "test.npz", "near": ["near.npz"], "transform": {"size": 8}}
    sets |= change.get("benchmark", {})
    job = {**TRAINED, "detectors": ["ash"], "output": "out", **change, "benchmark": sets}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(oodscope.OodscopeError, match=message):
        oodscope.run("job.yaml")

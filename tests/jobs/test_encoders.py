"""A scorecard of encoders from one file: with words, with a head, without one; and the packaged one."""

import json

import numpy as np
import pytest

import oodscope as oods
from oodscope.base.config import read_yaml
from oodscope.base.errors import DataError, OodscopeError, UsageError
from oodscope.jobs.encoders import DETECTORS, read_encoders
from oodscope.jobs.run import PACKAGED
from oodscope.runs.encoders.run import Scorecard
from tests.cli.test_run import project  # noqa: F401
from tests.tiny_libraries import clip_architecture, clip_weights

NET = """
from torch import nn
def build():
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 5))
"""

JOB = {"benchmark": "bench.yaml", "device": "cpu", "intervals": "fast"}


def test_an_encoder_without_classes_is_spared_protocols_of_classification():
    entries = [
        {"architecture": "small_cnn", "weights": "a.safetensors"},
        {"name": "bare", "architecture": "timm:test_vit", "weights": "a.safetensors", "embedding": True},
    ]
    with_head, without = read_encoders({"benchmark": "glyphs", "encoders": entries}, "job")
    assert with_head.job.protocols == ["standard", "full_spectrum", "human_centric"]
    assert without.job.protocols == ["standard", "full_spectrum"]
    assert with_head.job.detectors == list(DETECTORS) and without.job.skip_inapplicable
    own = {"benchmark": "glyphs", "protocols": ["standard", {"human_centric": {"threshold_split": True}}]}
    assert read_encoders({**own, "encoders": entries}, "job")[1].job.protocols == ["standard"]


def test_what_is_wrong_with_a_file_is_said_before_work(tmp_path):
    with pytest.raises(UsageError, match="encoders must be a list of models, each with an architecture"):
        read_encoders({"benchmark": "glyphs", "encoders": "small_cnn"}, "job")
    twice = [{"architecture": "small_cnn", "weights": "a"}] * 2
    with pytest.raises(DataError, match="two encoders of the scorecard are called 'small_cnn'"):
        read_encoders({"benchmark": "glyphs", "encoders": twice}, "job")
    job = {**JOB, "benchmark": "glyphs", "encoders": twice[:1], "output": str(tmp_path / "out")}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    with pytest.raises(OodscopeError, match="no such file of weights"):
        oods.run(tmp_path / "job.yaml")


def test_the_packaged_one_compares_networks_that_classify_by_the_same_words():
    jobs = read_encoders(read_yaml(PACKAGED / "encoders.yaml"), "encoders")
    heads = [each.job.model.text_head for each in jobs if each.job.model.architecture.startswith("open_clip:")]
    assert len(heads) == 3 and len({head.digest(["a", "b"]) for head in heads}) == 1
    assert {each.model.family for each in jobs} == {"CLIP", "SigLIP", "DINO"}
    for each in jobs:
        each.job.check()


@pytest.mark.slow
def test_words_a_head_and_neither_side_by_side(project, monkeypatch):  # noqa: F811
    """A miniature of each kind, without weights that mean anything: what is judged is that each gets what fits it."""
    pytest.importorskip("open_clip")
    monkeypatch.chdir(project)
    (project / "own_encoder.py").write_text(NET)
    (project / "words.txt").write_text("salt\nglass\nsea\n")
    for name in ("train", "val", "test", "dark"):
        known = dict(np.load(project / f"{name}.npz"))
        np.savez(project / f"{name}.npz", **known, class_names=["cat", "dog", "cow"])
    clip = {"architecture": f"open_clip:{clip_architecture(project)}", "weights": str(clip_weights(project))}
    encoders = [
        {**clip, "name": "clip", "text_head": {"negatives": "words.txt"}},
        {**clip, "name": "clip, other sentences", "text_head": {"templates": ["a {}."]}},
        {"name": "cnn", "architecture": "small_cnn", "weights": "net.safetensors"},
        {"name": "bare", "architecture": "python:own_encoder:build", "embedding": True},
    ]
    job = {**JOB, "detectors": ["mcm", "gl_mcm", "neglabel", "msp", {"knn": {"k": 3}}], "encoders": encoders}
    (project / "job.yaml").write_text(json.dumps(job))
    card = oods.run("job.yaml", output=project / "out")
    assert isinstance(card, Scorecard)
    heads = {each.name: each.about for each in card.encoders}
    assert [heads[each["name"]].head for each in encoders] == ["words", "words", "linear", "none"]
    assert heads["clip"].words != heads["clip, other sentences"].words
    assert set(heads["bare"].skipped) == {"mcm", "gl_mcm", "neglabel", "msp"}
    assert set(heads["cnn"].skipped) == {"gl_mcm", "neglabel"}
    assert set(heads["clip, other sentences"].skipped) == {"neglabel"}
    assert not heads["clip"].skipped
    ranked = {each.detector: set(each.places) for each in card.orders}
    assert ranked == {"knn(k=3)": set(heads)}, "every score of words has two kinds of them, and each stands alone"
    assert [note.split(":")[0] for note in card.notes] == ["mcm", "gl_mcm", "msp"]
    assert (project / "out" / "encoders.md").is_file()
    again = oods.run("job.yaml", output=project / "out")
    assert len(list((project / "out").glob("*/run.json"))) == 5, "four evaluations and their scorecard, made once"
    assert again.table("encoders").render("json") == card.table("encoders").render("json")

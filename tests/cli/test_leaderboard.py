"""``oodscope leaderboard``: from a run to a rank, by commands alone."""

import json

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import save_file

from oodscope.models.zoo.zoo import create_model
from tests.leaderboard.leaderboard_world import copied, edit, enter, few_replicates, run  # noqa: F401


@pytest.fixture
def job(tmp_path):
    """A network for two classes and a few pictures, as a YAML file."""
    rng = np.random.default_rng(0)
    for place, count in (("train/ant", 8), ("train/bee", 8), ("test/ant", 5), ("test/bee", 5), ("odd/x", 9)):
        (tmp_path / place).mkdir(parents=True)
        for number in range(count):
            pixels = rng.integers(0, 256, size=(32, 32, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / place / f"{number}.png")
    torch.manual_seed(0)
    model, _ = create_model("small_cnn", num_classes=2)
    save_file(model.state_dict(), tmp_path / "net.safetensors")
    declared = {
        "benchmark": {"id_train": "train", "id_test": "test", "near": {"odd": "odd"}, "transform": {"size": 32}},
        "model": {"architecture": "small_cnn", "weights": ["net.safetensors"], "trained_on": ["id_train"]},
        "detectors": ["msp", {"knn": {"k": 3}}],
        "output": "runs",
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(declared))
    return tmp_path


def done(outcome):
    assert outcome.status == 0, outcome
    return outcome.out


@pytest.mark.slow
def test_the_whole_road(oodscope, job):
    done(oodscope("run", "job.yaml"))
    (folder,) = (path.parent for path in job.glob("runs/*/run.json"))
    about = {"authors": ["A. Author"], "code": "https://example.org/code", "reported": []}
    (job / "about.yaml").write_text(yaml.safe_dump(about))
    submit = ("leaderboard", "submit", folder, "--board", "board", "--about", "about.yaml")
    told = done(oodscope(*submit, "--method", "KNN", "--detector", "knn(k=3)", "--id", "knn-3"))
    assert "board/knn-3" in told
    done(oodscope(*submit, "--method", "MSP", "--detector", "msp"))
    made = next(path for path in (job / "board").iterdir() if path.name.startswith("msp-"))

    done(oodscope("leaderboard", "publish", "job.yaml", "--output", "activations"))
    told = done(oodscope("leaderboard", "rerun", "board/knn-3", "--activations", "activations"))
    assert "knn-3: re-executed" in told and "10 one by one" not in told
    receipt = json.loads(done(oodscope("leaderboard", "rerun", made, "--activations", "activations", "--json")))
    assert (receipt["verdict"], receipt["one_by_one_rows"]) == ("re-executed", 19)

    done(oodscope("leaderboard", "pin", folder, "--board", "board"))
    told = json.loads(done(oodscope("leaderboard", "verify", "board", "--json")))
    assert {each["tier"] for each in told["standings"]} == {"re-executed"} and told["refused"] == {}
    # an untrained network may rank as badly as it likes; the record is complete and the images are the pinned ones
    flags = [flag for each in told["standings"] for flag in each["flags"]]
    assert not [flag for flag in flags if flag.startswith(("incomplete:", "unchecked:", "transductive"))]
    assert "knn-3: re-executed (KNN," in done(oodscope("leaderboard", "verify", "board/knn-3"))

    told = done(oodscope("leaderboard", "supersede", made.name, "knn-3", "--reason", "a test", "--board", "board"))
    assert "superseded by knn-3" in told
    assert "superseded by knn-3: a test" in done(oodscope("leaderboard", "verify", "board"))


@pytest.mark.slow
def test_a_refused_entry_is_told_and_ends_with_status_1(oodscope, tmp_path):
    good, bad = enter(tmp_path / "board", "good"), copied(tmp_path / "board")
    edit(bad, lambda content: content["claims"][1].update(value=0.1))
    outcome = oodscope("leaderboard", "verify", "board")
    assert outcome.status == 1
    assert "good: recomputed" in outcome.out and "knn-tiny: REFUSED:" in outcome.out and "claims auroc" in outcome.out
    outcome = oodscope("leaderboard", "verify", "board/knn-tiny", "--json")
    assert outcome.status == 1 and "claims auroc" in json.loads(outcome.out)["refused"]["knn-tiny"]
    assert oodscope("leaderboard", "verify", good).status == 0


def test_reported_numbers_are_shown_beside_measured_ones(oodscope, tmp_path):
    place = {"protocol": "standard", "metric": "auroc", "group": "near", "set": "mean", "source": "Table 1"}
    about = {"reported": [{**place, "printed": "42.00"}]}
    (tmp_path / "about.yaml").write_text(yaml.safe_dump(about))
    options = ("--method", "\x1b[2JKNN", "--detector", "knn", "--id", "x", "--board", "board", "--about", "about.yaml")
    done(oodscope("leaderboard", "submit", run(), *options))
    told = done(oodscope("leaderboard", "verify", "board"))
    assert "reported 42.00, measured" in told and "beyond noise" in told and "\x1b" not in told


@pytest.mark.parametrize(
    ("options", "words", "status"),
    [
        (("--track", "posthoc"), "Did you mean 'post-hoc'", 2),
        (("--id", "../up"), "id", 2),
        (("--about", "missing.yaml"), "no such file", 1),
        (("--detector", "knm"), "Did you mean 'knn'", 2),
    ],
)
def test_mistakes_are_one_line(oodscope, options, words, status):
    outcome = oodscope("leaderboard", "submit", run(), "--method", "KNN", "--detector", "knn", *options)
    assert outcome.status == status and words in outcome.err and outcome.err.count("\n") == 1


def test_an_empty_place_is_an_error(oodscope, tmp_path):
    outcome = oodscope("leaderboard", "verify", "nowhere")
    assert outcome.status == 1 and "no such folder" in outcome.err

"""``oodscope crossval`` and a plan in YAML."""

import json

import numpy as np
import pytest
import safetensors.torch

from oodscope.models.zoo.zoo import create_model
from oodscope.runs.crossval.run import CrossValidationTable
from tests.runs.crossval.crossval_world import known, strange

TRANSFORM = "{size: 8, mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}"


@pytest.fixture
def places(tmp_path):
    """Two sets as .npz files, and the weights of a small network."""
    for images in (known(count=48), strange(count=24, classes=3)):
        pixels = np.stack(images.images(np.arange(len(images))))
        np.savez(tmp_path / f"{images.name}.npz", images=pixels, labels=images.labels)
    model, _ = create_model("small_cnn", num_classes=4)
    safetensors.torch.save_file(model.state_dict(), tmp_path / "net.safetensors")
    return tmp_path


FROZEN = ("--model", "small_cnn", "--weights", "net.safetensors", "--transform", TRANSFORM, "--device", "cpu")
SMALL = ("--folds", "3", "--repetitions", "1", "--epochs", "2")


def test_own_sets_with_frozen_embeddings(oodscope, places):
    command = ("crossval", *FROZEN, *SMALL, "--detectors", "msp,ebo", "--id", "known.npz", "--ood", "far=strange.npz")
    done = oodscope(*command, "--truth", "1", "--output", "out")
    assert done.status == 0, done
    assert "AUROC ↑, mean over 1 pairs of sets" in done.out
    assert "leads on average" in done.out
    table = CrossValidationTable.load(places / "out")
    assert [str(cell) for cell in table.cells] == ["known/far, plain", "known/far, outlier exposure"]
    assert table.hold_outs("auroc").shape == (1, 2, 2)
    assert (places / "out" / "crossval.html").is_file()
    assert "extract" in done.err
    again = oodscope(*command, "--truth", "1", "--output", "out", "--json")
    assert json.loads(again.out)["run"]["protocols"] == ["crossval"]
    assert "extract" not in again.err


def test_a_plan_in_yaml_is_the_same_study(oodscope, places):
    (places / "plan.yaml").write_text(
        "id_set: known.npz\nood: {far: strange.npz}\nmodel: {architecture: small_cnn, weights: net.safetensors}\n"
        f"transform: {TRANSFORM}\nhead: {{epochs: 2}}\ndevice: cpu\n"
        "plan: {folds: 3, repetitions: 1, hold_outs: 0, detectors: [msp, {knn: {k: 3}}]}\noutput: yaml\n"
    )
    done = oodscope("run", "plan.yaml", "--output", "elsewhere")
    assert done.status == 0, done
    assert CrossValidationTable.load(places / "elsewhere").detectors == ["msp", "knn(k=3)"]


def test_a_leak_is_refused_or_printed_on_the_page(oodscope, places):
    command = ("crossval", *FROZEN, *SMALL, "--detectors", "msp", "--no-outlier-exposure")
    sets = ("--id", "known.npz", "--ood", "strange.npz", "--trained-on", "known", "--output", "out")
    refused = oodscope(*command, *sets)
    assert refused.status == 1
    assert "small_cnn was trained on known" in refused.err and "--allow-leak" in refused.err
    allowed = oodscope(*command, *sets, "--allow-leak")
    assert allowed.status == 0, allowed
    assert "note: LEAK: small_cnn was trained on known" in allowed.out
    page = (places / "out" / "crossval.html").read_text()
    assert "<strong>Leak.</strong> small_cnn was trained on known: these numbers are not evidence." in page


def test_glyphs_with_a_network_per_fold(oodscope, tmp_path):
    done = oodscope(
        "crossval", "--benchmark", "glyphs", "--images-per-class", "10", "--model", "small_cnn", "--backbone", "full",
        "--folds", "10", "--repetitions", "0", "--truth", "1", "--epochs", "1", "--detectors", "ebo,mds",
        "--level", "script", "--no-outlier-exposure", "--device", "cpu", "--drop-duplicates", "--output", "out",
    )  # fmt: skip
    assert done.status == 0, done
    table = CrossValidationTable.load(tmp_path / "out")
    # photographs have two classes, too few for ten folds
    assert [cell.pair for cell in table.cells] == ["glyphs/near_letters", "glyphs/digits", "glyphs/textures"]


@pytest.mark.parametrize(
    ("options", "words", "status"),
    [
        ((), "say what to fold", 2),
        (("--benchmark", "glyphs", "--id", "known.npz"), "say what to fold", 2),
        (("--id", "known.npz"), "no outliers to judge on", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--level", "kind"), "no pair has the level 'kind'", 2),
        (("--id", "known.npz", "--ood", "strange.npz", "--folds", "4"), "4 folds need 4 OOD classes", 1),
        (("--id", "known.npz", "--ood", "strange.npz", "--detectors", "mspp"), "Did you mean 'msp'", 2),
        (
            ("--id", "known.npz", "--ood", "strange.npz", "--backbone", "full"),
            "is trained from random weights; leave out weights",
            2,
        ),
        (("--id", "known.npz", "--ood", "strange.npz", "--backbone", "frosen"), "backbone", 2),
    ],
)
def test_mistakes_end_in_one_line(oodscope, places, options, words, status):
    done = oodscope("crossval", *FROZEN, "--repetitions", "1", *options)
    assert done.status == status
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1

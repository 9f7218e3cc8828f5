"""``oodscope generate near`` and ``shifted``: a folder that every other command takes for a set."""

import json

import numpy as np
import pytest

from oodscope.data.generated.files import open_generated
from tests import tiny

QUICK = ("--ensemble", "small_cnn,small_cnn", "--epochs", 2, "--device", "cpu")


@pytest.fixture
def glyphs(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\nversion: '1'\ntransform: {size: 32}\nsets:\n"
        "  id_train: {source: glyphs, split: id_train, per_class: 6}\n"
        "  id_val: {source: glyphs, split: id_val, per_class: 2}\n"
        "  id_test: {source: glyphs, split: id_test, per_class: 1}\n"
    )
    return path


@pytest.fixture
def place(tmp_path):
    pixels, labels = tiny.images(100, 0)
    np.savez(tmp_path / "blobs.npz", images=pixels, labels=labels, class_names=list("abcd"))
    return tmp_path / "blobs.npz"


def test_near_outliers_of_glyphs_from_patches(oodscope, glyphs, tmp_path):
    near = tmp_path / "near"
    command = ("generate", "near", "--id", glyphs, *QUICK, "--window", "0,1")
    outcome = oodscope(*command, "--output", near)
    assert outcome.status == 0, outcome
    assert "kept: 100 of 100 images, 20 in the set" in outcome.out
    share = json.loads((near / "recipe.json").read_text())["recipe"]["class seen by the ensemble"]
    assert f"the class that they were made from in {100 * share:.1f} % of them" in outcome.out
    assert ("raise --pool, or set a higher --window" in outcome.out) == (share > 0.5)
    images = open_generated(near)
    assert len(images) == 20 and len(images.class_names) == 20
    page = (near / "index.html").read_text()
    assert page.count("<img ") == 20 and "20 generated near images" in page
    assert "recombination" in page and json.loads((near / "recipe.json").read_text())["seal"] in page
    again = oodscope("generate", "again", "--recipe", near, "--id", glyphs, "--output", tmp_path / "again", *QUICK[4:])
    assert again.status == 0 and "the same: every image" in again.out, again
    assert (tmp_path / "again" / "recipe.json").read_bytes() == (near / "recipe.json").read_bytes()
    refused = oodscope(*command, "--output", near)
    assert refused.status == 1 and "holds a generated set already" in refused.err


def test_one_set_lends_a_fifth_of_its_images(oodscope, place, tmp_path):
    outcome = oodscope(
        "generate", "near", "--id", place, *QUICK, "--output", tmp_path / "near", "--count", 5, "--pieces", 2,
        "--window", "0,1", "--pool", 12,
    )  # fmt: skip
    assert outcome.status == 0, outcome
    recipe = json.loads((tmp_path / "near" / "recipe.json").read_text())["recipe"]
    assert recipe["id_train"]["images"] == 80 and recipe["id_val"]["images"] == 20
    assert recipe["pool"] == {"images": 12, "kept": 12, "chosen": 5}


def test_shifted_images(oodscope, place, tmp_path, monkeypatch):
    command = ("generate", "shifted", "--id", place, *QUICK, "--output", tmp_path / "shifted", "--count", 5)
    short = oodscope(*command, "--steps", 1)
    assert short.status == 1 and "oodscope: the generator of shifted images collapsed" in short.err, short
    monkeypatch.setattr("oodscope.generation.gan.health.COLLAPSED", 0.0)
    outcome = oodscope(*command, "--steps", 1)
    assert outcome.status == 0, outcome
    assert open_generated(tmp_path / "shifted").labels.min() >= 0


@pytest.mark.parametrize(
    ("changed", "said", "status"),
    [
        (("--id", "nowhere"), "nowhere is not there", 1),
        (("--ensemble", "small_cnn"), "generate near: architectures", 2),
        (("--ensemble", "small_cnn,smal_cnn"), "unknown model 'smal_cnn'. Did you mean 'small_cnn'", 2),
        (("--method", "latent"), "needs the generator", 2),
        (("--method", "magic"), "'magic' is not one of 'gan', 'latent', 'recombination'", 2),
        (("--window", "0.5"), "--window takes two numbers, such as 0.2,0.6, not '0.5'", 2),
        (("--pool", 1), "a pool of 1 images cannot give 3", 2),
    ],
)
def test_mistakes_are_one_line(oodscope, place, tmp_path, changed, said, status):
    given = {"--id": place, "--output": tmp_path / "made", "--count": 3, **dict(zip(QUICK[::2], QUICK[1::2]))}
    outcome = oodscope("generate", "near", *[word for pair in (given | dict([changed])).items() for word in pair])
    assert outcome.status == status, outcome
    assert outcome.err.splitlines()[-1].startswith("oodscope: ") and said in outcome.err
    assert not (tmp_path / "made" / "recipe.json").exists()

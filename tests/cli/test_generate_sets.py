"""``oodscope generate near`` and ``shifted``: a folder that every other command takes for a set."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import oodscope as oods
from oodscope.base.errors import UsageError
from oodscope.data.generated.files import open_generated
from oodscope.models.zoo.zoo import create_model
from oodscope.runs.generated.run import GeneratedStudy
from tests import tiny

QUICK = ("--ensemble", "small_cnn,small_cnn", "--epochs", 2, "--device", "cpu", "--perceptual", "ensemble")


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
    command = ("generate", "near", "--id", glyphs, *QUICK, "--window", "0,1", "--class-share", 1)
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
    again = oodscope("generate", "again", "--recipe", near, "--id", glyphs, "--output", tmp_path / "again", *QUICK[4:6])
    assert again.status == 0 and "the same: every image" in again.out, again
    assert (tmp_path / "again" / "recipe.json").read_bytes() == (near / "recipe.json").read_bytes()
    refused = oodscope(*command, "--output", near)
    assert refused.status == 1 and "holds a generated set already" in refused.err


def test_one_set_lends_a_fifth_of_its_images(oodscope, place, tmp_path):
    outcome = oodscope(
        "generate", "near", "--id", place, *QUICK, "--output", tmp_path / "near", "--count", 5, "--pieces", 2,
        "--window", "0,1", "--pool", 12, "--class-share", 1,
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


def test_an_estimate_comes_first_and_an_hour_needs_a_yes(oodscope, place, tmp_path):
    given = ("generate", "near", "--id", place, *QUICK, "--output", tmp_path / "near", "--count", 3)
    refused = oodscope(*given, "--method", "gan", "--steps", 10_000_000)
    assert refused.status == 2, refused
    assert "estimate: about" in refused.err and "more than an hour: use a GPU" in refused.err
    assert not (tmp_path / "near").exists()


def test_a_class_that_is_seen_too_often_is_thinned(oodscope, place, tmp_path):
    given = ("generate", "near", "--id", place, *QUICK, "--output", tmp_path / "near", "--count", 10, "--pool", 60)
    outcome = oodscope(*given, "--window", "0,1", "--class-share", 0.3)
    assert outcome.status == 0, outcome
    recipe = json.loads((tmp_path / "near" / "recipe.json").read_text())["recipe"]
    assert f"dropped because their class is seen too often: {recipe['dropped by class']}" in outcome.out
    assert recipe["pool"]["kept"] + recipe["dropped by class"] == 60


class TestPlans:
    def plan(self, kind="near", paper=False, **own):
        from oodscope.cli.generate.writing import Request, declared_plan
        from oodscope.jobs.opening import IdSets

        sets = IdSets(tiny.imageset("train", 20, 1), tiny.imageset("val", 8, 2), tiny.imageset("test", 8, 3))
        given = Request("x", None, "out", 4, None, None, 3, False, None, None, "cpu", 0)
        return declared_plan(given, kind, paper, own, sets)

    def test_weights_follow_the_distance(self):
        assert self.plan(perceptual="lpips").near.lambda_perceptual == 1.0
        assert self.plan(perceptual="ensemble").near.lambda_perceptual == 8.0
        assert self.plan("shifted", perceptual="lpips").shifted.lambda_perceptual == 2.0
        own = self.plan(perceptual="lpips", near={"lambda_perceptual": 3.0})
        assert own.near.lambda_perceptual == 3.0

    def test_the_papers_preset(self):
        near, shifted = self.plan(paper=True), self.plan("shifted", paper=True)
        assert (near.method, near.perceptual, near.near.lambda_perceptual) == ("gan", "lpips", 1.0)
        assert near.lambdas == tuple(0.5 + 0.25 * number for number in range(11))
        assert (shifted.shifted.lambda_perceptual, shifted.shifted.lambda_label) == (2.0, 0.0)
        assert self.plan(paper=True, near={"network": "dcgan"}).near.network == "dcgan", "what is given stands above it"

    @pytest.mark.parametrize("network", ["dcgan", "biggan"])
    def test_grey_images_of_28_px_are_estimated_and_can_be_trained(self, network):
        """Latents of 80 cannot be shared out to the three levels of 28 px: a biggan has 78 there."""
        from oodscope.cli.generate.writing import Request, declared_plan
        from oodscope.generation.near.trained import build_networks, near_shape
        from oodscope.generation.sets.estimate import estimate
        from oodscope.jobs.opening import IdSets

        rng = np.random.default_rng(0)
        pixels = rng.integers(0, 256, (20, 28, 28)).astype(np.uint8)
        digits = oods.ImageSet.from_arrays("digits", pixels, np.arange(20) % 4, list("0123"))
        given = Request("x", None, "out", 4, None, ["lenet", "lenet"], None, False, None, None, "cpu", 0)
        asked = {} if network == "dcgan" else {"near": {"network": network, "width": 8, "discriminator_width": 8}}
        plan = declared_plan(given, "near", False, {"method": "gan", **asked}, IdSets(digits, digits, digits))
        assert plan.near.network == network
        assert estimate(plan, digits, "cpu").generators > 0
        generator, _ = build_networks(plan.near, near_shape(plan.near, digits, 28))
        assert generator.latent_dimension == (80 if network == "dcgan" else 78)

    def test_grey_images_get_small_networks(self):
        from oodscope.generation.sets.plan import default_architectures, default_epochs
        from oodscope.models.small import SMALL_NETS

        digits = default_architectures(1)
        assert len(set(digits)) > 2, "networks of one kind fail in the same places"
        sizes = [sum(each.numel() for each in SMALL_NETS[name](channels=1).parameters()) for name in digits]
        assert max(sizes) < 200_000
        assert default_epochs(1) < default_epochs(3)
        assert len(set(default_architectures(3))) > 2


@pytest.mark.slow
def test_a_set_is_judged_from_files(oodscope, place, tmp_path):
    """Made by one command, judged by another, with networks that are files; a maker may not judge."""
    near, rng = tmp_path / "near", np.random.default_rng(0)
    made = oodscope("generate", "near", "--id", place, *QUICK, "--output", near, "--count", 40, "--pool", 60,
                    "--window", "0,1", "--class-share", 1)  # fmt: skip
    assert made.status == 0, made
    np.savez(tmp_path / "odd.npz", images=rng.integers(0, 256, (40, 8, 8, 3)).astype(np.uint8))
    nets = []
    for seed in range(3):
        torch.manual_seed(seed)
        file = tmp_path / f"net{seed}" / "model.safetensors"
        file.parent.mkdir()
        save_file(create_model("small_cnn", num_classes=4)[0].state_dict(), file)
        nets.append(f"small_cnn={file}")
    own = ("--id-test", place, "--near", f"odd={tmp_path / 'odd.npz'}", "--transform", "{size: 8}", "--device", "cpu")
    command = ("generate", "judge", near, *own, "--model", nets[0], "--detectors", "msp,ebo", "--features", "")
    outcome = oodscope(*command, "--judge", nets[1], "--judge", nets[2], "--output", tmp_path / "judged")
    assert outcome.status == 0, outcome
    assert "is harder than odd for most detectors" in outcome.out
    assert "estimate: about 1 s for " in outcome.err and "through one of 5 networks" in outcome.err
    study = GeneratedStudy.load(tmp_path / "judged")
    assert len(study.sanity.makers) == 2 and study.sanity.of("near").source
    assert study.networks == ["small_cnn net0"] and list(study.sanity.judges) == ["small_cnn net1", "small_cnn net2"]
    maker = sorted((near / "makers").iterdir())[0]
    refused = oodscope(*command, "--judge", nets[1], "--judge", f"small_cnn={maker}", "--output", tmp_path / "other")
    assert refused.status == 1 and "made the set" in refused.err
    alone = oodscope(*command, "--judge", nets[1], "--output", tmp_path / "alone")
    assert alone.status == 2 and "give --judge twice" in alone.err
    for pair, said in ((1, 1), "stands twice among the judges"), ((0, 1), "judges the set and is under test"):
        judges = [word for number in pair for word in ("--judge", nets[number])]
        refused = oodscope(*command, *judges, "--output", tmp_path / "alone")
        assert refused.status == 2 and said in refused.err, refused
    misspelt = (*command[:-4], "--detectors", "msq", "--features", "")
    refused = oodscope(*misspelt, "--judge", nets[1], "--judge", nets[2], "--output", tmp_path / "alone")
    assert refused.status == 2 and "unknown detector 'msq'. Did you mean 'msp'" in refused.err
    assert "estimate" not in refused.err


@pytest.mark.parametrize(
    ("changed", "said", "status"),
    [
        (("--id", "nowhere"), "nowhere is not there", 1),
        (("--ensemble", "small_cnn"), "generate near: architectures", 2),
        (("--ensemble", "small_cnn,smal_cnn"), "unknown model 'smal_cnn'. Did you mean 'small_cnn'", 2),
        (("--method", "latent"), "--method latent needs --generator FILE", 2),
        (("--generator", "gan.safetensors"), "and no other method takes one", 2),
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


def test_a_set_of_a_benchmark_that_is_only_a_path_is_told_so(tmp_path):
    """pydantic's words for it were "a valid dictionary or object to extract fields from"."""
    file = tmp_path / "own.yaml"
    own = "  id_test: {source: glyphs, split: id_test, per_class: 2}\n  near: {found: some/folder}\n"
    file.write_text(f"name: own\nversion: '1'\ntransform: {{size: 32}}\nsets:\n{own}")
    with pytest.raises(UsageError, match=r"sets\.near\.found: must be keys with values, such as \{a: 1\}"):
        oods.load_benchmark(str(file))

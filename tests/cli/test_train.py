"""Recipes by name: `oodscope train`, `train:` in job files, and recipes of other packages."""

import json
import sys

import numpy as np
import pytest
from safetensors.torch import load_file

import oodscope as oods
from oodscope.base.errors import OodscopeError, UnknownNameError
from oodscope.data.generated.files import open_generated, write_generated
from oodscope.training.methods.cross_entropy import CrossEntropy
from oodscope.training.methods.outlier_exposure import OutlierExposure
from oodscope.training.registry import RECIPES, create_recipe

BENCHMARK = """
name: tiny
version: "1"
transform: {size: 32}
sets:
  id_train: {source: npz, path: train.npz}
  id_val: {source: npz, path: val.npz}
  id_test: {source: npz, path: test.npz}
  near: {odd: {source: npz, path: odd.npz}}
  ood_train: {source: npz, path: outliers.npz}
"""
FAST = ("--model", "small_cnn", "--set", "epochs=2", "--set", "batch_size=8")


@pytest.fixture
def project(tmp_path):
    """A benchmark on disk: three easy classes, near outliers, and outliers to learn from."""
    for number, (name, count) in enumerate({"train": 24, "val": 12, "test": 12, "odd": 9, "outliers": 15}.items()):
        pixels = np.random.default_rng(number).integers(0, 180, size=(count, 32, 32, 3)).astype(np.uint8)
        labels = np.arange(count) % 3
        pixels[np.arange(count), :, :, labels] += 70
        np.savez(tmp_path / f"{name}.npz", images=pixels, **({"labels": labels} if name != "outliers" else {}))
    (tmp_path / "bench.yaml").write_text(BENCHMARK)
    return tmp_path


class Halved(CrossEntropy):
    """A recipe of somebody else: half the loss."""

    name = "halved"

    factor: float = 0.5

    def loss(self, model, batch):
        step = super().loss(model, batch)
        return step._replace(loss=self.factor * step.loss)


class TestByName:
    def test_settings_are_fields(self):
        recipe = create_recipe("outlier_exposure", weight=0.7, epochs=3)
        assert recipe == OutlierExposure(weight=0.7, epochs=3)
        assert create_recipe("cross_entropy") == CrossEntropy()

    def test_misspelt_names_and_settings(self):
        with pytest.raises(UnknownNameError, match="unknown recipe 'outlier_exposur'. Did you mean"):
            create_recipe("outlier_exposur")
        with pytest.raises(OodscopeError, match="'outlier_exposure': unknown key 'weigth'. Did you mean 'weight'"):
            create_recipe("outlier_exposure", weigth=1)
        with pytest.raises(OodscopeError, match="recipe 'cross_entropy': epochs: Input should be greater than 0"):
            create_recipe("cross_entropy", epochs=0)

    def test_every_name_makes_a_recipe_of_that_name(self):
        assert {create_recipe(name).name for name in RECIPES} == set(RECIPES)


class TestCommand:
    def test_one_network_for_each_seed_and_again_from_disk(self, oodscope, project):
        words = ("train", "--benchmark", project / "bench.yaml", *FAST, "--seeds", "0,3", "-o", "out")
        outcome = oodscope(*words)
        assert outcome.status == 0, outcome
        assert "test accuracy" in outcome.out
        folders = [project / "out" / f"cross_entropy-seed{seed}" for seed in (0, 3)]
        first, second = (load_file(folder / "model.safetensors") for folder in folders)
        assert any((first[key] != second[key]).any() for key in first)
        told = json.loads(oodscope(*words, "--json").out)
        assert told["recipes"][0]["recipe"] == "cross_entropy" and told["recipes"][0]["epochs"] == 2
        assert [row["seed"] for row in told["networks"]] == [0, 3]
        assert all(0 <= row["test_accuracy"] <= 1 and len(row["stages"][0]) == 2 for row in told["networks"])

    def test_outliers_of_the_benchmark_are_passed_on(self, oodscope, project):
        words = ("train", "--recipe", "outlier_exposure", "--benchmark", project / "bench.yaml", *FAST)
        outcome = oodscope(*words, "--set", "ood_batch_size=4", "--set", "weight=2.0", "-o", "out")
        assert outcome.status == 0, outcome
        told = json.loads((project / "out" / "outlier_exposure-seed0" / "training.json").read_text())
        assert told["identity"]["outliers"] and told["identity"]["recipe"]["weight"] == 2.0

    def test_a_generated_set_takes_the_place_of_the_benchmarks_outliers(self, oodscope, project):
        pixels = np.random.default_rng(9).integers(0, 256, size=(12, 32, 32, 3)).astype(np.uint8)
        write_generated(project / "found", pixels, None, {"attack": {}}, kind="attacked")
        words = ("train", "--recipe", "outlier_exposure", "--benchmark", project / "bench.yaml", *FAST)
        outcome = oodscope(*words, "--set", "ood_batch_size=4", "--ood-train", project / "found", "-o", "out")
        assert outcome.status == 0, outcome
        told = json.loads((project / "out" / "outlier_exposure-seed0" / "training.json").read_text())
        assert told["identity"]["outliers"] == open_generated(project / "found").fingerprint

    @pytest.mark.parametrize(
        ("words", "message", "status"),
        [
            (("--ood-train", "nowhere"), "cross_entropy learns from no outliers: remove ood_train", 2),
            (("--recipe", "outlier_exposure", "--ood-train", "nowhere"), "nowhere is not there", 1),
            (("--recipe", "outlier_exposed"), "unknown recipe 'outlier_exposed'. Did you mean 'outlier_exposure'", 2),
            (("--set", "epoch=2"), "unknown key 'epoch'. Did you mean 'epochs'", 2),
            (("--set", "epochs"), "--set epochs: write KEY=VALUE", 2),
            (("--seeds", "1,1"), "each makes one network", 2),
            (("--seeds", "a"), "seeds.0: Input should be a valid integer", 2),
        ],
    )
    def test_mistakes_are_one_line(self, oodscope, project, words, message, status):
        outcome = oodscope("train", "--benchmark", project / "bench.yaml", *words)
        assert outcome.status == status
        assert message in outcome.err and outcome.err.count("\n") == 1, outcome

    def test_outliers_that_are_missing_or_in_a_test_set_stop_before_any_training(self, oodscope, project):
        words = ("train", "--recipe", "outlier_exposure", "--benchmark", project / "bench.yaml", *FAST, "-o", "out")
        outliers, odd = (dict(np.load(project / f"{name}.npz")) for name in ("outliers", "odd"))
        np.savez(project / "outliers.npz", images=np.concatenate([outliers["images"], odd["images"][:2]]))
        outcome = oodscope(*words)
        assert outcome.status == 1
        assert "2 of 9 images of near set 'odd' are among the training outliers 'ood_train'" in outcome.err
        text = (project / "bench.yaml").read_text()
        (project / "bench.yaml").write_text(text.replace("  ood_train: {source: npz, path: outliers.npz}\n", ""))
        outcome = oodscope(*words)
        assert outcome.status == 1
        assert "OutlierExposure learns from outliers, but there is no ood_train set" in outcome.err
        assert not (project / "out").exists()


JOB = """
benchmark: bench.yaml
model: {architecture: small_cnn, train: STAGES}
detectors: [msp]
output: out
"""


class TestJobs:
    def run(self, oodscope, project, stages):
        (project / "job.yaml").write_text(JOB.replace("STAGES", stages))
        return oodscope("run", project / "job.yaml", "--json")

    def test_a_chain_of_stages(self, oodscope, project):
        stages = "[{epochs: 1}, {recipe: outlier_exposure, epochs: 1, ood_batch_size: 4}]"
        outcome = self.run(oodscope, project, stages)
        assert outcome.status == 0, outcome
        record = json.loads(outcome.out)["run"]
        assert record["model"] == "small_cnn"
        other = self.run(oodscope, project, "{epochs: 1}")
        assert json.loads(other.out)["run"]["model_fingerprint"] != record["model_fingerprint"]

    def test_weights_are_where_a_training_starts(self, oodscope, project):
        assert oodscope("train", "--benchmark", project / "bench.yaml", *FAST, "-o", project / "first").status == 0
        weights = project / "first" / "cross_entropy-seed0" / "model.safetensors"
        (project / "job.yaml").write_text(
            JOB.replace("train: STAGES", f"weights: {weights}, train: {{recipe: fine_tune, epochs: 1, hidden: 8}}")
        )
        outcome = oodscope("run", project / "job.yaml", "--json")
        assert outcome.status == 0, outcome
        assert json.loads(outcome.out)["run"]["head"].count(", 8 features") == 1, "the recipe's head"

    def test_trainings_alone(self, oodscope, project):
        (project / "train.yaml").write_text(
            "train: [{epochs: 1}, {recipe: outlier_exposure, epochs: 1, ood_batch_size: 4}]\n"
            "benchmark: bench.yaml\nmodel: small_cnn\nseeds: [0, 1]\n"
        )
        outcome = oodscope("run", project / "train.yaml", "--output", project / "out", "--json")
        assert outcome.status == 0, outcome
        assert len(json.loads(outcome.out)["networks"]) == 2
        assert (project / "out" / "outlier_exposure-seed1" / "stage1" / "training.json").is_file()

    @pytest.mark.parametrize(
        ("stages", "message", "status"),
        [
            ("{recipe: outlier_exposur}", "unknown recipe 'outlier_exposur'. Did you mean", 2),
            ("{recipe: outlier_exposure, weigth: 1}", "unknown key 'weigth'. Did you mean 'weight'", 2),
            ("[]", "an empty list of recipes trains nothing", 2),
            ("[3]", "a recipe is a name or a mapping", 2),
        ],
    )
    def test_mistakes_name_the_key(self, oodscope, project, stages, message, status):
        outcome = self.run(oodscope, project, stages)
        assert outcome.status == status
        assert message in outcome.err and outcome.err.count("\n") == 1, outcome


class TestThirdParties:
    def test_registered_by_a_call(self, oodscope, project, monkeypatch):
        monkeypatch.setattr(RECIPES, "_registered", {})
        RECIPES.register("halved", Halved)
        self.goes_all_the_way(oodscope, project, Halved)

    def test_installed_with_an_entry_point(self, oodscope, project, monkeypatch, tmp_path):
        package = tmp_path / "site" / "halving-1.0.dist-info"
        package.mkdir(parents=True)
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: halving\nVersion: 1.0\n")
        (package / "entry_points.txt").write_text("[oodscope.recipes]\nhalved = halving:Halved\n")
        (package.parent / "halving.py").write_text(
            "from oodscope.training.methods.cross_entropy import CrossEntropy\n\n\n"
            "class Halved(CrossEntropy):\n    name = 'halved'\n    factor: float = 0.5\n\n"
            "    def loss(self, model, batch):\n        step = super().loss(model, batch)\n"
            "        return step._replace(loss=self.factor * step.loss)\n"
        )
        monkeypatch.syspath_prepend(str(package.parent))
        assert "halved" in oodscope("list", "recipes").out
        import halving

        self.goes_all_the_way(oodscope, project, halving.Halved)
        sys.modules.pop("halving")

    def goes_all_the_way(self, oodscope, project, cls):
        words = ("train", "--recipe", "halved", "--benchmark", project / "bench.yaml", *FAST)
        outcome = oodscope(*words, "--set", "factor=0.25", "-o", "out", "--json")
        assert outcome.status == 0, outcome
        told = json.loads(outcome.out)
        assert told["recipes"][0]["recipe"] == "halved" and told["recipes"][0]["factor"] == 0.25
        recipe = oods.create_recipe("halved", epochs=2, batch_size=8, factor=0.25)
        assert type(recipe) is cls
        bench = oods.load_benchmark(str(project / "bench.yaml"))

        def build():
            return oods.create_model("small_cnn", num_classes=3)[0]

        trained = oods.train(build, recipe, bench.id_train, bench.transform, device="cpu")
        saved = load_file(project / "out" / "halved-seed0" / "model.safetensors")
        assert all((saved[key] == value).all() for key, value in trained.model.state_dict().items())

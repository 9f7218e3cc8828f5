"""A training method of others: trained, saved, opened again, evaluated, reported and submitted."""

import json

import pytest
import torch

import oodscope as oods
from oodscope.training.registry import RECIPES
from tests.seams.world import command, done, few_replicates, run_folder  # noqa: F401
from tests.tiny import TRANSFORM, benchmark, classifier

TRAIN = {"--recipe": "warm_logits", "--set": "epochs=1", "--model": "tinylib:flat", "--weights": "pretrained"}


class TestRecipe:
    def test_by_python(self, tmp_path):
        recipe = oods.create_recipe("warm_logits", epochs=1, start=3.0)
        bench, network = benchmark(), classifier().model
        trained = oods.train(network, recipe, bench.id_train, TRANSFORM, folder=tmp_path / "net", device="cpu")
        assert 0 < trained.model.temperature.item() != 3.0
        clf = oods.Classifier(trained.model, TRANSFORM, name="warm", device="cpu")
        result = oods.evaluate(clf, bench, ["msp", "ebo"], recipe="warm_logits")
        assert result.table().rows and oods.compare(result)
        assert {row.recipe for row in result.measurements} == {"warm_logits"}
        assert "warm" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")
        with pytest.raises(oods.OodscopeError, match="unknown recipe 'warm_logit'. Did you mean 'warm_logits'"):
            oods.create_recipe("warm_logit")

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        options = {"detectors": None, "output": "out", **{key[2:]: value for key, value in TRAIN.items()}}
        printed = json.loads(done(oodscope(*command("train", **options), "--json")))
        assert printed["recipes"][0]["start"] == 2.0
        place, (network,) = printed["folder"], printed["networks"]
        assert "warm_logits" in done(oodscope("table", place, "--sheet", "settings"))
        done(oodscope("report", place, "--output", "trained.html"))
        assert "Training loss" in (tmp_path / "trained.html").read_text(encoding="utf-8")
        # the network that the recipe wrapped opens through its folder, and goes on to the leaderboard
        done(oodscope(*command(model=network["folder"], weights=None)))
        folder = run_folder(tmp_path)
        assert done(oodscope("table", folder)) and done(oodscope("compare", folder))
        done(oodscope("leaderboard", "submit", folder, "--board", "b", "--method", "Warm", "--detector", "msp"))
        assert "recomputed" in done(oodscope("leaderboard", "verify", "b"))
        outcome = oodscope(*command("train", **(options | {"recipe": "warm_logit"})))
        assert outcome.status == 2 and "Did you mean 'warm_logits'" in outcome.err

    def test_by_registration(self):
        class Warmer(RECIPES.get("warm_logits")):
            name = "warmer"

        RECIPES.register("warmer", Warmer)
        prepared = oods.create_recipe("warmer", start=5.0).prepare(classifier().model, None)
        assert prepared.temperature == torch.tensor(5.0)
        with pytest.raises(oods.OodscopeError, match="recipe 'mine' must be a subclass of Recipe"):
            RECIPES.register("mine", dict)

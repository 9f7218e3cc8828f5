"""A variation and a sampler, through an attack to its table, its page and the leaderboard."""

from pathlib import Path

import pytest
import torch

import oodscope as oods
from oodscope.deploy.function_scorer import FunctionScorer
from oodscope.generation.samplers.random_search import RandomSearch
from oodscope.generation.samplers.registry import SAMPLERS, create_sampler
from oodscope.generation.variations.registry import VARIATIONS, create_variation
from oodscope.report.page.attack import write_attack
from oodscope.results.opening import open_runs
from oodscope.runs.attack.run import Attack
from tests.seams.world import command, done
from tests.tiny import imageset, noise

SETTINGS = {"budget": "4", "chains": "6", "runs": "2", "far": None}


def attacked(folder, variations, sampler="portfolio"):
    scorer = FunctionScorer(lambda images: -images.mean(dim=(1, 2, 3)))
    sets = imageset("id_val", 20, 2), imageset("id_test", 20, 3), noise("odd", 12, 4)
    found = oods.attack({"mine": scorer}, *sets, variations, budget=4, chains=6, runs=2, sampler=sampler)
    write_attack(found, folder)
    return Attack.load(found.save(folder)) if hasattr(found, "save") else found


def attack_by_command(oodscope, place, **changes) -> Path:
    done(oodscope(*command("attack", **SETTINGS | changes)))
    (folder,) = (Path(place) / "runs" / "attacks").iterdir()
    done(oodscope("table", folder))
    done(oodscope("report", folder, "--output", "whole.html"))
    done(oodscope("leaderboard", "submit", folder, "--board", "b", "--method", "MSP", "--detector", "msp"))
    assert "recomputed" in done(oodscope("leaderboard", "verify", "b"))
    return folder


class TestVariation:
    def test_by_python(self, tmp_path):
        found = attacked(tmp_path / "attack", ["fade", "fade+color"])
        assert found.variations == ["fade", "fade+color"]
        assert {"fade", "fade+color"} <= set(found.result.measurements.distinct("group"))
        oods.write_report(open_runs([tmp_path / "attack"]), tmp_path / "report.html")
        images = torch.rand(2, 3, 8, 8)
        assert torch.equal(create_variation("fade")(torch.zeros(2, 1), images), images)

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        folder = attack_by_command(oodscope, tmp_path, detectors="msp,logit_range", variations="fade")
        assert Attack.load(folder).variations == ["fade"]
        outcome = oodscope(*command("attack", variations="fdae", **SETTINGS))
        assert outcome.status == 2 and "Did you mean 'fade'" in outcome.err

    def test_by_registration(self):
        VARIATIONS.register("fade_again", type(create_variation("fade")))
        assert create_variation("fade_again").parameters == ("share of grey",)


class TestSampler:
    def test_by_python(self, tmp_path):
        found = attacked(tmp_path / "attack", ["color"], create_sampler("corners", power=3.0))
        assert found.searches and all("corners" in str(each) for each in found.searches)
        with pytest.raises(oods.OodscopeError, match="corners: unknown setting 'powr'. Did you mean 'power'"):
            create_sampler("corners", powr=1.0)

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        folder = attack_by_command(
            oodscope, tmp_path, detectors="msp,logit_range", variations="color", samplers="corners"
        )
        assert "corners" in (folder / "attack.json").read_text(encoding="utf-8")
        outcome = oodscope(*command("attack", variations="color", samplers="cornres", **SETTINGS))
        assert outcome.status == 2 and "Did you mean 'corners'" in outcome.err

    def test_by_registration(self):
        SAMPLERS.register("random_again", RandomSearch)
        assert create_sampler("random_again") == RandomSearch()
        with pytest.raises(oods.OodscopeError, match="sampler 'text' must be a subclass of Sampler"):
            SAMPLERS.register("text", str)

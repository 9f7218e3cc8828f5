"""A library of networks: its names are specs wherever a model is asked for."""

import pytest
import torch
from torch import nn

import oodscope as oods
from oodscope.models.zoo.zoo import LIBRARIES
from oodscope.runs.evaluation.run import Result
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401
from tests.tiny import benchmark


class TestModelLibrary:
    def test_by_python(self, tmp_path):
        model, transform = oods.create_model("tinylib:flat", num_classes=4, weights="pretrained")
        result = oods.evaluate(
            oods.Classifier(model, transform, name="flat", device="cpu"), benchmark(), ["msp", "ebo"]
        )
        assert result.record.model == "flat" and result.table().rows and oods.compare(result)
        assert "flat" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")
        with pytest.raises(oods.OodscopeError, match="unknown model 'tinylb:flat'. Did you mean 'tinylib:flat'"):
            oods.create_model("tinylb:flat", num_classes=4)

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command()))
        folder = run_folder(tmp_path)
        assert Result.load(folder).record.model == "tinylib:flat"
        done(oodscope("report", folder, "--output", "whole.html"))
        done(oodscope("leaderboard", "submit", folder, "--board", "b", "--method", "MSP", "--detector", "msp"))
        assert "recomputed" in done(oodscope("leaderboard", "verify", "b"))
        done(oodscope("leaderboard", "build", "b", "--output", "site"))
        assert any("tinylib" in path.name for path in (tmp_path / "site" / "models").iterdir())
        outcome = oodscope(*command(model="tinylb:flat"))
        assert outcome.status == 2 and "Did you mean 'tinylib:flat'" in outcome.err

    def test_by_registration(self):
        LIBRARIES.register("mine", lambda name, num_classes, *, pretrained=False: (nn.Linear(2, num_classes), None))
        model, _ = oods.create_model("mine:anything", num_classes=3)
        assert model(torch.zeros(1, 2)).shape == (1, 3)

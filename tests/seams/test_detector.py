"""A detector, from scores to a rerun of its entry on the leaderboard."""

import numpy as np
import pytest

import oodscope as oods
from oodscope.leaderboard.verify.publishing import publish_activations
from oodscope.leaderboard.verify.rerunning import rerun
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.verifying import verify_all
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401
from tests.tiny import benchmark, classifier


class TestDetector:
    def test_by_python(self, tmp_path):
        result = evaluated(["msp", "logit_range", oods.create_detector("logit_range", scale=2.0)])
        plain, doubled = (result.scores.scores(name) for name in ("logit_range", "logit_range(scale=2.0)"))
        assert np.allclose(2 * plain, doubled)
        assert "logit_range" in [row.name for row in result.table().rows]
        assert any("logit_range" in (each.first, each.second) for each in oods.compare(result))
        assert "logit_range" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")
        submit(result.save(tmp_path / "run"), tmp_path / "board", id="range", method="Range", detector="logit_range")
        activations = publish_activations(classifier(), benchmark(), tmp_path / "activations")
        receipt = rerun(tmp_path / "board" / "range", activations)
        assert receipt.verdict == "re-executed"
        assert [each.entry.id for each in verify_all(tmp_path / "board").standings] == ["range"]

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command(detectors="msp,logit_range")))
        folder = run_folder(tmp_path)
        assert "logit_range" in done(oodscope("table", folder))
        assert "logit_range" in done(oodscope("compare", folder))
        done(oodscope("report", folder, "--output", "whole.html"))
        given = ("--board", "b", "--method", "Range", "--detector", "logit_range", "--id", "range")
        done(oodscope("leaderboard", "submit", folder, *given))
        assert "range: recomputed" in done(oodscope("leaderboard", "verify", "b"))
        done(oodscope("leaderboard", "build", "b", "--output", "site"))
        outcome = oodscope(*command(detectors="logit_rnge"))
        assert outcome.status == 2 and "Did you mean 'logit_range'" in outcome.err

    def test_by_registration(self):
        class Halved(type(oods.create_detector("logit_range"))):
            name = "logit_range_halved"

            def _score(self, batch):
                return super()._score(batch) / 2

        from oodscope.detectors.registry import DETECTORS

        DETECTORS.register("logit_range_halved", Halved)
        result = evaluated(["logit_range", "logit_range_halved"])
        assert np.allclose(result.scores.scores("logit_range"), 2 * result.scores.scores("logit_range_halved"))

"""A metric alone: named in a comparison, and by a protocol that a registration makes."""

from dataclasses import replace

import numpy as np
import pytest

import oodscope as oods
from oodscope.metrics.catalog import METRICS
from oodscope.protocols.registry import PROTOCOLS
from oodscope.protocols.standard import Standard
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401


def gap(result, detector, set):
    scores = result.scores
    return _lower_median(scores.scores(detector, set=set)) - _lower_median(scores.scores(detector, set="id_test"))


def _lower_median(values):
    return np.sort(values)[(len(values) - 1) // 2]


class TestMetric:
    def test_by_python(self, tmp_path):
        class Medians(Standard):
            name, title, summary = "medians", "Medians", "Standard, by medians."
            metrics, headline = (METRICS["median_gap"],), ("median_gap",)

        PROTOCOLS.register("medians", Medians)
        result = evaluated(protocols=["standard", "medians"])
        (row,) = result.measurements.filter(protocol="medians", metric="median_gap", detector="msp", set="rain")
        assert row.value == pytest.approx(gap(result, "msp", "rain"))
        assert "Median gap ↑" in result.table("medians").title
        (found,) = [each for each in oods.compare(result, metric="median_gap") if each.set == "rain"]
        assert found.first_value == pytest.approx(gap(result, found.first, "rain"))
        assert "Median gap" in oods.write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command()))
        assert "Median gap" in done(oodscope("compare", run_folder(tmp_path), "--metric", "median_gap"))
        outcome = oodscope("compare", run_folder(tmp_path), "--metric", "median_gpa")
        assert outcome.status == 2 and "Did you mean 'median_gap'" in outcome.err

    def test_by_registration(self):
        METRICS.register("median_gap_again", replace(METRICS["median_gap"], name="median_gap_again"))
        assert oods.compare(evaluated(), metric="median_gap_again")
        with pytest.raises(oods.OodscopeError, match="metric 'auroc' must be an oodscope.Metric, not 'auroc'"):
            METRICS.register("auroc", "auroc")
        with pytest.raises(oods.OodscopeError, match="metric 'gap': the object calls itself 'median_gap'"):
            METRICS.register("gap", METRICS["median_gap"])

"""A protocol with its own metric, group, option and figure, from scores to the leaderboard."""

import numpy as np
import pytest
import yaml

import oodscope as oods
from oodscope.leaderboard.site.render import write_site
from oodscope.leaderboard.verify.submitting import submit
from oodscope.leaderboard.verify.verifying import verify_all
from oodscope.protocols.registry import PROTOCOLS
from oodscope.runs.evaluation.run import Result
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401


def slow_oscr(scores, detector, set):
    """Every ID image against every OOD image, one by one."""
    rows = scores.frame
    ids = np.flatnonzero((rows["role"] == "id_test").to_numpy())
    oods_ = np.flatnonzero((rows["set"] == set).to_numpy())
    score, correct = scores.scores(detector), scores.correct()
    pairs = [correct[i] * ((score[i] < score[j]) + 0.5 * (score[i] == score[j])) for i in ids for j in oods_]
    return sum(pairs) / len(pairs)


class TestProtocol:
    def test_by_python(self, tmp_path):
        from oodscope_plugin.protocol import OpenSet

        result = evaluated(protocols=["standard", OpenSet(far=False)])
        rows = result.measurements.filter(protocol="open_set", metric="oscr", detector="knn")
        assert [(row.group, row.set) for row in rows] == [("open", "static"), ("open", "snow"), ("open", "mean")]
        for row in rows.filter(set="static"):
            assert row.value == pytest.approx(slow_oscr(result.scores, "knn", "static"), abs=1e-12)
            assert row.low < row.value < row.high

        saved = Result.load(result.save(tmp_path / "run"))
        table = saved.table("open_set")
        assert table.facts == {"protocol": "open_set", "metric": "oscr"} and "OSCR ↑" in table.title
        assert [column.name for column in table.columns] == [
            "mean",
            "static",
            "snow",
        ]  # far=False came back with the run
        (found, *_) = oods.compare(saved, metric="oscr", protocol="open_set")
        assert (found.group, found.set) == ("open", "mean")
        values = {row.detector: row.value for row in saved.measurements.filter(metric="oscr", set="mean")}
        assert found.difference == pytest.approx(values[found.first] - values[found.second])

        page = oods.write_report(saved, tmp_path / "report.html").read_text(encoding="utf-8")
        assert "Open-set recognition" in page and "Quantiles of open-set scores" in page and "OSCR" in page

    def test_on_the_leaderboard(self, tmp_path):
        from oodscope_plugin.protocol import OpenSet

        run = evaluated(protocols=["standard", OpenSet(far=False)]).save(tmp_path / "run")
        for name in ("knn", "msp"):
            submit(run, tmp_path / "board", id=f"{name}-1", method=name.upper(), detector=name)
        board = verify_all(tmp_path / "board")
        (benchmark,) = board.benchmarks()
        assert "open_set" in board.protocols(benchmark)
        rows = board.rows(benchmark, "open_set", "post-hoc", "default")
        assert len(rows) == 2 and {column.group for column in rows[0].cells} == {"open"}
        site = write_site(board, tmp_path / "site")
        (page,) = site.glob("benchmarks/tiny*/open_set.html")
        assert "OSCR" in page.read_text(encoding="utf-8")

    def test_by_registration(self):
        """A class given as an object is known from its first use; a registered one by its name."""
        from oodscope_plugin.protocol import OpenSet

        class Unregistered(OpenSet):
            name, title = "open_set_unregistered", "Open set, unregistered"

        class Registered(OpenSet):
            name, title = "open_set_registered", "Open set, registered"

        PROTOCOLS.register("open_set_registered", Registered)
        result = evaluated(["msp"], [Unregistered(), "open_set_registered"])
        assert "OSCR" in result.table().title and "OSCR" in result.table("open_set_registered").title

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command(protocols="standard,open_set")))
        folder = run_folder(tmp_path)
        assert (folder / "report.html").read_text(encoding="utf-8").count("Quantiles of open-set scores") >= 1
        assert "OSCR" in done(oodscope("table", folder, "--protocol", "open_set"))
        assert "OSCR" in done(oodscope("table", "--protocol", "open_set"))  # from the store
        assert "OSCR" in done(oodscope("compare", folder, "--protocol", "open_set", "--metric", "oscr"))
        done(oodscope("report", folder, "--output", "whole.html"))
        done(
            oodscope(
                "leaderboard", "submit", folder, "--board", "b", "--method", "MSP", "--detector", "msp", "--id", "m"
            )
        )
        assert "m: recomputed" in done(oodscope("leaderboard", "verify", "b"))
        done(oodscope("leaderboard", "build", "b", "--output", "site"))
        assert list((tmp_path / "site").glob("benchmarks/seeded-shapes*/open_set.html"))

    @pytest.mark.slow
    def test_by_yaml(self, oodscope, tmp_path):
        job = {
            "benchmark": "seeded-shapes",
            "model": {"architecture": "tinylib:flat", "weights": "pretrained"},
            "detectors": ["msp"],
            "protocols": ["standard", {"open_set": {"far": False}}],
            "device": "cpu",
            "output": "runs",
        }
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        result = oods.run(tmp_path / "job.yaml")
        done(oodscope("run", "job.yaml"))
        loaded = Result.load(run_folder(tmp_path)) if not isinstance(result, Result) else result
        assert loaded.scores.context.protocols == {"open_set": {"far": False}}
        assert loaded.measurements.filter(protocol="open_set").distinct("set") == ["id_test", "static", "mean"]

    def test_a_misspelt_option_and_name(self, oodscope):
        with pytest.raises(oods.OodscopeError, match="protocol open_set: no option 'fra'. Did you mean 'far'"):
            evaluated(protocols=[{"open_set": {"fra": True}}])
        outcome = oodscope(*command(protocols="open_ste"))
        assert outcome.status == 2 and "Did you mean 'open_set'" in outcome.err

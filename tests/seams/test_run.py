"""A kind of run of others: saved, found, printed in every format, and shown in the report."""

import pytest

import oodscope as oods
from oodscope.results.run import RUNS
from oodscope.results.store.store import ResultStore
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401


class TestKindOfRun:
    def test_by_python(self, tmp_path):
        census = RUNS.get("census").of(evaluated(), "msp")
        census.save(tmp_path / "runs" / "one")
        (found,) = oods.open_runs(tmp_path)
        assert found == census and found.measurements == census.measurements
        assert [row.name for row in found.table().rows] == list(census.shares)
        page = oods.write_report([evaluated(), found], tmp_path / "report.html").read_text(encoding="utf-8")
        assert "Census" in page and "counted by a plugin" in page
        store = ResultStore(tmp_path / "store.sqlite")
        store.add(found, tmp_path / "runs" / "one")
        assert store.measurements(run=found.record.id) == found.measurements

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command()))
        folder = run_folder(tmp_path)
        RUNS.get("census").of(oods.open_runs(folder)[0], "msp").save(tmp_path / "counted")
        for form in ("csv", "json", "latex", "html", "markdown", "tsv"):
            assert "id_test" in done(oodscope("table", "counted", "--format", form)).replace("\\_", "_")
        done(oodscope("report", folder, "counted", "--output", "both.html"))
        assert "counted by a plugin" in (tmp_path / "both.html").read_text(encoding="utf-8")
        outcome = oodscope("table", "counted", "--sheet", "share")
        assert outcome.status == 2 and "Did you mean 'shares'" in outcome.err

    def test_by_registration(self, tmp_path):
        class Other(RUNS.get("census")):
            kind = "other_census"

        RUNS.register("other_census", Other)
        Other.of(evaluated(), "msp").save(tmp_path / "one")
        assert type(oods.open_runs(tmp_path)[0]) is Other
        with pytest.raises(oods.OodscopeError, match="run 'mine' must be a subclass of Run"):
            RUNS.register("mine", dict)

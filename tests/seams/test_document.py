"""A format of tables and a figure of a paper, from a stored run."""

from dataclasses import replace

import pytest

import oodscope as oods
from oodscope.document.formats import FORMATS, Format
from oodscope.report.paper.figure import FIGURES
from oodscope.results.opening import open_runs
from tests.seams.world import command, done, evaluated, few_replicates, run_folder  # noqa: F401


class TestFormat:
    def test_by_python(self):
        table = evaluated().table()
        head, *lines = table.render("tsv").splitlines()
        assert head.split("\t")[:2] == ["detector", "mean"]
        assert [float(line.split("\t")[1]) for line in lines] == pytest.approx(
            [row.numbers[0].value for row in table.rows], abs=1e-6
        )
        with pytest.raises(oods.OodscopeError, match="unknown table format 'tvs'. Did you mean 'tsv'"):
            table.render("tvs")

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command()))
        printed = done(oodscope("table", run_folder(tmp_path), "--format", "tsv")).splitlines()
        assert printed[0].startswith("detector\tmean") and len(printed) == 3

    def test_by_registration(self):
        FORMATS.register("count", Format("txt", lambda table: f"{len(table.rows)} rows"))
        assert evaluated().table().render("count") == "2 rows"


class TestPaperFigure:
    def test_by_python(self):
        result = evaluated()
        drawn = FIGURES["plugin-1"].drawn([result])
        widths = [bar.get_width() for bar in drawn.axes[0].patches]
        assert widths == pytest.approx([row.numbers[0].value for row in result.table().rows])

    def test_by_registration(self, tmp_path):
        FIGURES.register("plugin-2", replace(FIGURES["plugin-1"], name="plugin-2"))
        evaluated().save(tmp_path / "run")
        assert FIGURES["plugin-2"].drawn(open_runs([tmp_path / "run"])).axes

    @pytest.mark.slow
    def test_by_command(self, oodscope, tmp_path):
        done(oodscope(*command()))
        done(oodscope("figure", "plugin-1", run_folder(tmp_path), "--output", "f.svg"))
        assert (tmp_path / "f.svg").read_text(encoding="utf-8").startswith("<?xml")
        outcome = oodscope("figure", "plugn-1", run_folder(tmp_path), "--output", "f.svg")
        assert outcome.status == 2 and "Did you mean 'plugin-1'" in outcome.err

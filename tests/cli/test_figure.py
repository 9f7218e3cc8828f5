"""``oodscope figure`` and ``oodscope table``: from folders of runs of every kind to a file or a table."""

import csv
import io
import json
import subprocess
import sys

import pytest

from oodscope.base.catalog import catalog
from oodscope.runs.attack.table import attack_table
from oodscope.runs.crossval.study import study_metric
from tests.report.paper_runs import evaluation
from tests.report.whole_runs import crossval
from tests.runs.crossval import made_studies
from tests.runs.generated.generated_world import NEAR, study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    for number, model in enumerate(("net", "other")):
        evaluation(model, number).save(home / "nets" / model)
    crossval(made_studies.table()).save(home / "dcv")
    made_studies.attack().save(home / "attack")
    study().save(home / "generated")
    return home


class TestFigure:
    @pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
    def test_several_runs_below_a_folder(self, oodscope, home, ending):
        outcome = oodscope("figure", "openood-7", home / "nets", "--output", f"figs/fig.{ending}")
        assert outcome.status == 0, outcome
        with open(f"figs/fig.{ending}", "rb") as file:
            assert file.read(5).startswith({"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}[ending])
        assert outcome.out.strip() == f"figs/fig.{ending}"

    @pytest.mark.parametrize(
        ("name", "runs", "output", "message", "status"),
        [
            ("openod-7", "nets", "f.pdf", "unknown figure 'openod-7'. Did you mean 'openood-7'", 2),
            ("openood-7", "nets", "f.gif", "f.gif: figures are written as png, pdf, svg", 2),
            (
                "openood-7",
                "nets/net",
                "f.pdf",
                "openood-7: 1 evaluation given, at least 2 needed. It needs:",
                1,
            ),
            ("dcv-pairs", "nets", "f.pdf", "dcv-pairs: 0 cross-validations given, one needed", 1),
            ("openood-1", "nowhere", "f.pdf", "no such folder", 1),
        ],
    )
    def test_what_does_not_fit_is_one_line(self, oodscope, home, tmp_path, name, runs, output, message, status):
        outcome = oodscope("figure", name, home / runs, "--output", output)
        assert outcome.status == status
        assert message in outcome.err and len(outcome.err.strip().splitlines()) == 1
        assert not list(tmp_path.glob("f.*"))

    def test_help_needs_no_matplotlib(self):
        script = (
            "import sys; from oodscope.cli.app import app\n"
            "try: app(['figure', '--help'])\n"
            "except SystemExit: pass\n"
            "print(sorted({'torch', 'numpy', 'pandas', 'matplotlib'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"

    def test_the_list_names_them_all_with_what_they_need(self, oodscope):
        from oodscope.report.paper.figure import FIGURES

        assert {name: each["needs"] for name, each in catalog("figures").items()} == {
            name: each.needs for name, each in FIGURES.items()
        }, "run: make catalog"
        assert "openood-6" in oodscope("list", "figures").out


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


class TestTables:
    def test_of_an_attack(self, oodscope, home):
        outcome = oodscope("table", home / "attack", "--format", "csv")
        assert outcome.status == 0, outcome
        assert outcome.out.strip() == attack_table(made_studies.attack()).render("csv").strip()
        assert r"\multicolumn{2}{c}{MinRank $\uparrow$}" in oodscope("table", home / "attack", "--format", "latex").out
        assert "| AUROC ↑ clean |" in oodscope("table", home / "attack", "--format", "markdown").out
        assert "MinRank" in oodscope("table", home / "attack").out
        one = oodscope("table", home / "attack", "--metric", "min_rank", "--format", "csv").out
        assert rows(one)[0]["metric"] == "min_rank"

    def test_of_a_cross_validation(self, oodscope, home):
        metric = study_metric(made_studies.table(), "auroc")
        truth = rows(oodscope("table", home / "dcv", "--format", "csv").out)
        assert [float(row["knn"]) for row in truth] == metric.truth[metric.detectors.index("knn")].tolist()
        other = rows(
            oodscope("table", home / "dcv", "--metric", "tpr5_id_positive_interpolated", "--format", "csv").out
        )
        assert float(other[0]["knn"]) != float(truth[0]["knn"])
        counts = oodscope("table", home / "dcv", "--sheet", "counts-0.05", "--format", "latex").out
        assert r"\toprule" in counts and "p $\\le$ 0.05" in counts
        assert "Hit and error rate by metric" in oodscope("table", home / "dcv", "--sheet", "rates-0.05").out

    def test_of_generated_sets(self, oodscope, home):
        outcome = oodscope("table", home / "generated", "--format", "csv")
        assert outcome.status == 0, outcome
        row = rows(outcome.out)[0]
        assert float(row[NEAR]) == study().separation()[row["network"], row["detector"], NEAR].value
        row = rows(oodscope("table", home / "generated", "--sheet", "calibration", "--format", "csv").out)[0]
        assert float(row["id_test"]) == study().calibration()[row["network"], "id_test"].value
        worse = oodscope("table", home / "generated", "--metric", "adaptive_ece15", "--format", "markdown").out
        assert "adaptive ECE ↓" in worse
        assert "**" in oodscope("table", home / "generated", "--format", "markdown").out

    @pytest.mark.parametrize("format", ["rich", "markdown", "csv", "json", "latex", "html"])
    @pytest.mark.parametrize("kind", ["nets/net", "attack", "dcv", "generated"])
    def test_every_kind_of_run_in_every_format(self, oodscope, home, kind, format):
        outcome = oodscope("table", home / kind, "--format", format)
        assert outcome.status == 0, outcome
        if format == "json":
            content = json.loads(outcome.out)
            assert content["rows"] and all(cell["column"] for row in content["rows"] for cell in row["cells"])
        else:
            label = "training" if kind == "dcv" else "detector"
            assert label in outcome.out and not outcome.out.endswith("\n\n")
            assert {"html": "<table", "latex": r"\begin{tabular}"}.get(format, "") in outcome.out

    @pytest.mark.parametrize(
        ("arguments", "message", "status"),
        [
            (["nets"], "holds 2 runs; a table is of one", 1),
            (["dcv", "--sheet", "count-0.05"], "unknown sheet 'count-0.05'. Did you mean 'counts-0.05'", 2),
            (["dcv", "--protocol", "standard"], "unknown sheet 'standard'. Did you mean 'truth-standard-errors'", 2),
            (["dcv", "--format", "jsn"], "unknown table format 'jsn'. Did you mean 'json'", 2),
            (["dcv", "--metric", "aurok"], "unknown metric 'aurok'. Did you mean 'auroc'", 2),
            (["attack", "--format", "yaml"], "Known: rich, markdown, csv, json, latex, html", 2),
        ],
    )
    def test_mistakes_are_one_line(self, oodscope, home, arguments, message, status):
        outcome = oodscope("table", home / arguments[0], *arguments[1:])
        assert outcome.status == status
        assert message in outcome.err and len(outcome.err.strip().splitlines()) == 1

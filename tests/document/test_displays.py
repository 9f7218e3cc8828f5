"""In a notebook every result shows itself: numbers as stored, names as text, colours those of the page."""

import re
from dataclasses import replace

import pytest

from oodscope.document.table import single_groups
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.crossval.summary import summary
from tests.report.reading import read
from tests.results.factory import make_result
from tests.runs.crossval import made_studies
from tests.runs.generated.generated_world import EVIL, NEAR, study

SHOWN = {
    "result": make_result,
    "table": lambda: make_result().table(),
    "attack": made_studies.attack,
    "crossval": made_studies.table,
    "generated": study,
    "comparisons": made_studies.comparisons,
    "comparison": lambda: made_studies.comparisons()[0],
    "nothing compared": lambda: made_studies.comparisons()[:0],
}


def numbers(html):
    return {float(each.attributes["data-value"]) for each in read(html).every() if "data-value" in each.attributes}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHOWN)
def test_well_formed_and_without_a_colour_or_a_script(kind):
    html = SHOWN[kind]()._repr_html_()
    read(html)
    assert "<script" not in html and "http" not in html and 'onclick="' not in html
    style = "".join(re.findall(r"<style>(.*?)</style>", html, re.S))
    # light and dark come from the notebook: letters and ground are never set
    assert not re.search(r"#[0-9a-f]{3}|rgb|(?<!-)color: (?!inherit)|background: (?!none)", style)
    assert all(line.startswith(".oodscope") for line in style.strip().splitlines())
    assert len(html) < 60_000


def test_a_result_shows_the_first_table_of_every_protocol():
    result = make_result()
    html = result._repr_html_()
    found = numbers(html)
    for protocol in ("standard", "full_spectrum"):
        assert {row.value for row in result.measurements.filter(protocol=protocol, metric="auroc")} <= found
    assert html.count("AUROC ↑") == 2 and result.record.id in html and html.count("<style>") == 1


def test_a_protocol_without_its_headline_is_passed_over():
    result = make_result()
    record = result.record.model_copy(update={"protocols": ["standard", "generated"], "model": "<i>x</i>"})
    html = replace(result, record=record)._repr_html_()
    assert html.count("<table") == 1 and "<i>x" not in html and "&lt;i&gt;x" in html


def test_an_attack_shows_its_worst_case():
    attack = made_studies.attack()
    html = attack._repr_html_()
    rows = attack.result.measurements.filter(protocol="attack")
    assert {row.value for row in rows if row.metric in ("auroc", "min_rank")} <= numbers(html)
    assert "AUROC ↑</th>" in html and ">shift</th>" in html and "&lt;b onclick=" in html


def test_a_study_of_generated_sets_shows_both_tables():
    html = study()._repr_html_()
    stored = {row.value for (_, _, name), row in study().separation().items() if name in (NEAR, *study().real)}
    stored |= {row.value for row in study().calibration().values()}
    assert stored <= numbers(html)
    assert EVIL not in html and "AUROC ↑" in html and "ECE ↓" in html


def test_a_cross_validation_shows_means_over_pairs_best_first():
    table = made_studies.table()
    metric = study_metric(table, "auroc")
    sheet = summary(table)
    plain = [index for index, cell in enumerate(metric.cells) if cell.training == "plain"]
    means = {name: metric.truth[row, plain].mean() for row, name in enumerate(metric.detectors)}
    assert {row.name: row.cells[0].value for row in sheet.rows} == pytest.approx(means)
    assert [row.name for row in sheet.rows] == sorted(means, key=lambda name: -means[name])
    assert [column.name for column in sheet.columns] == ["plain", "outlier exposure"]
    assert [row.cells[0].best for row in sheet.rows] == [True] + [False] * 7
    assert "mean over 5 pairs" in table._repr_html_() and "12 hold-outs" in table._repr_html_()


def test_an_unfinished_cross_validation_says_so():
    table = made_studies.table()
    first = (table.frame["kind"] == "fold") & (table.frame["repetition"] == 0)
    begun = CrossValidationTable(table.frame[first].iloc[:-1].astype({"kind": str}))
    html = begun._repr_html_()
    read(html)
    assert "no complete repetition" in html and "nnguide" in html


def test_comparisons_show_sentences_and_numbers():
    found = made_studies.comparisons()
    html = found._repr_html_()
    assert {value for row in found for value in (row.first_value, row.difference, row.p)} <= numbers(html)
    assert all(sentence.split("(")[0] in html for sentence in found.sentences())
    assert "<b>AUROC ↑</b>" in html
    bold = [cell.text for cell in read(html).all("td") if any(c.tag == "b" for c in cell.every())]
    single = single_groups((row.group, row.set) for row in found)
    # the mean of a single set is that set, and is shown once
    shown = [row for row in found if not (row.set == "mean" and row.group in single)]
    assert len(bold) == sum(row.distinguishable for row in shown)


@pytest.mark.slow
def test_in_a_notebook_that_runs():
    """Jupyter itself takes the HTML; only where nbclient and a kernel are installed."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    lines = ["from tests.results.factory import make_result", "from tests.runs.crossval import made_studies"]
    sources = ["\n".join(lines), "make_result()", "make_result().table()", "made_studies.comparisons()"]
    sources += ["made_studies.table()", "made_studies.attack()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [cell.outputs[-1]["data"] for cell in notebook.cells[1:]]
    assert all("text/html" in each and '<div class="oodscope">' in each["text/html"] for each in outputs)
    assert outputs[0]["text/html"] == make_result()._repr_html_()

"""A sheet says the same in every format, and no name acts as markup."""

import csv
import io

from oodscope.document.sheet import Entry, Sheet
from tests.report.reading import read

EVIL = """<script>alert("1")</script>'"><img src=x>{{ 7*7 }} & % _ | * \\"""
SHEET = Sheet(
    "name",
    f"A title {EVIL}",
    ("detector", EVIL, "count"),
    (
        (Entry("msp"), Entry("0.1235**", 0.12345678901234, True), Entry("-6", -6)),
        (Entry(EVIL), Entry("–", ""), Entry("10", 10, True)),
    ),
    1,
    (f"Note {EVIL}",),
)


def test_csv_is_exact():
    rows = list(csv.reader(io.StringIO(SHEET.csv())))
    assert rows == [["detector", EVIL, "count"], ["msp", "0.12345678901234", "-6"], [EVIL, "", "10"]]


def test_markdown_and_latex():
    markdown = SHEET.render("markdown")
    assert r"| msp | **0.1235\*\*** | -6 |" in markdown and "| --- | ---: | ---: |" in markdown
    assert markdown.count("<script") == markdown.count(r"\<script") == 4
    latex = SHEET.render("latex")
    assert r"msp & \textbf{0.1235**} & $-$6 \\" in latex and r"\textbf{10} \\" in latex
    assert r"\begin{tabular}{lrr}" in latex and r"\{\{ 7*7 \}\} \& \% \_ \textbar{}" in latex


def test_html_shows_names_as_they_are():
    table = read(SHEET.html())
    assert not table.all("script") and not table.all("img")
    assert table.all("th", scope="row")[1].text == EVIL
    cells = table.all("td")
    assert cells[0].attributes["data-value"] == "0.12345678901234" and cells[0].all("b")[0].text == "0.1235**"
    assert cells[1].attributes["data-value"] == "-6" and "data-value" not in cells[2].attributes

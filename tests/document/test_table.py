"""A table says the same in every format, numbers survive to the bit, and no name acts as markup."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

import oodscope
from oodscope.base.errors import UnknownNameError
from oodscope.document import html
from oodscope.document.formats import FORMATS
from oodscope.document.number import Number
from oodscope.document.table import Column, Entry, Row, Table, columns
from tests.document.every_table import tables
from tests.report.reading import read

EVIL = """<script>alert("1")</script>'"><img src=x>{{ 7*7 }} & % _ | * \\"""
TABLE = Table(
    "name",
    f"A title {EVIL}",
    columns("detector"),
    columns(EVIL, "count"),
    (
        Row((Entry("msp"),), (Entry("0.1235**", 0.12345678901234, True), Entry("-6", -6))),
        Row((Entry(EVIL),), (None, Entry("10", 10, True))),
    ),
    (f"Note {EVIL}",),
)

special = st.sampled_from("\\{}[]()$&#%_^~|<>*`'\"-–†!:;=,")
printed = st.text(special | st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=10)
anything = st.text(
    special | st.sampled_from("\r\n\t\x1b\x07\x9b") | st.characters(exclude_categories=["Cs"]), min_size=1
)
floats = st.floats(allow_nan=False, allow_infinity=False)
maybe = st.none() | floats


def hostile(name: str) -> Table:
    """A table with one name wherever a name can stand: sections, groups, labels, texts, facts, reasons."""
    number = Number(0.5, 0.4, 0.6, best=True, exposure=name, doubts=(name,), rank=(1, 2))
    rows = tuple(
        Row((Entry(label), Entry(f"{name}.")), (number, Entry(name, strong=True), None), section)
        for label, section in ((name, "a"), ("other", "b"))
    )
    return Table(
        name="name",
        title=f"Of {name}",
        labels=(Column("", "detector"), Column("", f"x{name}")),
        columns=(Column(f"g{name}", name), Column(f"g{name}", f"{name}'"), Column("", f"{name}''")),
        rows=rows,
        notes=(f"Note {name}.",),
        accuracy=((name, Number(0.9, 0.8, 0.95)),),
        facts={"protocol": name},
        section="tuning",
        sections={"a": f"first {name}", "b": f"second {name}"},
    )


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("format", FORMATS)
def test_every_table_of_every_kind_of_run_in_every_format(format):
    assert len(tables()) > 25
    for name, table in tables().items():
        text = table.render(format)
        # a page holds its words escaped, a terminal breaks them over lines
        words = read(text).text if format == "html" else text
        assert (text.endswith(("\n", ">")) and len(text.splitlines()) > len(table.rows)) or format == "html", name
        if format not in ("csv", "latex", "markdown"):
            assert one_line(table.title)[:30] in one_line(words), name
        for row in table.rows:
            for cell in row.cells:
                if isinstance(cell, Number) and format in ("rich", "html", "markdown"):
                    assert cell.number in words, (name, cell)


def test_csv_and_json_of_every_table_hold_every_number():
    for name, table in tables().items():
        lines = list(csv.DictReader(io.StringIO(table.render("csv"))))
        content = json.loads(table.render("json"))
        assert len(lines) == len(content["rows"]) == len(table.rows)
        for row, line, told in zip(table.rows, lines, content["rows"]):
            cells = {cell["column"]: cell for cell in told["cells"]}
            for column, cell in zip(table.columns, row.cells):
                if cell is None:
                    assert line[column.key] == "" and column.key not in cells
                elif isinstance(cell, Number):
                    assert float(line[column.key]) == cells[column.key]["value"] == cell.value, name
                    assert cells[column.key]["low"] == cell.low
                    assert line[f"{column.key} low"] == ("" if cell.low is None else repr(cell.low))
                elif not isinstance(cell.content, str):
                    assert float(line[column.key]) == cells[column.key]["value"] == cell.content, name


def test_each_format_is_written_in_one_place():
    sources = {path: path.read_text(encoding="utf-8") for path in Path(oodscope.__file__).parent.rglob("*.py")}
    for mark, writer in (
        (r"\\begin\{+tabular", "latex"),
        (r"\\toprule", "latex"),
        ("---:", "text"),
        ("<thead>", "html"),
    ):
        found = [path for path, text in sources.items() if re.search(mark, text)]
        assert [path.name for path in found] == [f"{writer}.py"] and found[0].parent.name == "document", mark


def test_an_unknown_format_is_named():
    with pytest.raises(UnknownNameError, match="unknown table format 'jason'. Did you mean 'json'.*Known: rich, mark"):
        TABLE.render("jason")


def test_a_row_of_other_columns_is_refused():
    with pytest.raises(ValueError, match="table t: a row of other columns"):
        Table("t", "t", columns("detector"), columns("a", "b"), (Row((Entry("x"),), (None,)),))


def test_csv_is_exact():
    rows = list(csv.reader(io.StringIO(TABLE.render("csv"))))
    assert rows == [["detector", EVIL, "count"], ["msp", "0.12345678901234", "-6"], [EVIL, "", "10"]]


def test_markdown_and_latex():
    markdown = TABLE.render("markdown")
    assert r"| msp | **0.1235\*\*** | -6 |" in markdown and "| --- | ---: | ---: |" in markdown
    assert markdown.count("<script") == markdown.count(r"\<script") == 4
    latex = TABLE.render("latex")
    assert r"msp & \textbf{0.1235**} & $-$6 \\" in latex and r"\textbf{10} \\" in latex
    assert r"\begin{tabular}{lrr}" in latex and r"\{\{ 7*7 \}\} \& \% \_ \textbar{}" in latex


def test_html_shows_names_as_they_are():
    table = read(html.bare(TABLE))
    assert not table.all("script") and not table.all("img")
    assert table.all("th", scope="row")[1].text == EVIL
    cells = table.all("td")
    assert cells[0].attributes["data-value"] == "0.12345678901234" and cells[0].all("b")[0].text == "0.1235**"
    assert cells[1].attributes["data-value"] == "-6" and "data-value" not in cells[2].attributes


@given(st.lists(st.tuples(floats, maybe, maybe, maybe, maybe), min_size=1, max_size=5), floats)
def test_csv_and_json_give_back_numbers_to_the_bit(numbers, text):
    rows = tuple(
        Row((Entry("x", place),), (Number(v, low, high, sd=sd, standard_error=se), Entry("about", text)))
        for place, (v, low, high, sd, se) in enumerate(numbers)
    )
    table = Table("t", "t", columns("n"), columns("a", "b"), rows)
    content = json.loads(table.render("json"))["rows"]
    lines = list(csv.DictReader(io.StringIO(table.render("csv"))))
    for (value, *others), line, told in zip(numbers, lines, content):
        first, second = told["cells"]
        assert repr(float(line["a"])) == repr(first["value"]) == repr(value)
        assert repr(float(line["b"])) == repr(second["value"]) == repr(text)
        keys = {"low": "a low", "high": "a high", "sd": "a sd", "standard_error": "a se"}
        for (key, column), number in zip(keys.items(), others):
            assert first.get(key) == number and repr(first.get(key)) == repr(number)
            assert line.get(column, "") == ("" if number is None else repr(number))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_json_has_no_word_for_what_is_not_a_number(value):
    table = Table("t", "t", columns("n"), columns("a", "b"), (Row((Entry("x"),), (Number(value), Entry("?", value))),))
    assert [cell["value"] for cell in json.loads(table.render("json"))["rows"][0]["cells"]] == [None, None]


@settings(deadline=None)
@given(anything)
@example("a\rb")
def test_any_name_survives_csv_and_json(name):
    table = hostile(name)
    head, *lines = csv.reader(io.StringIO(table.render("csv"), newline=""))
    assert head[1] == f"x{name}" and head[4] == f"g{name}/{name}"
    assert [line[0] for line in lines] == [name, "other"] and {line[3] for line in lines} == {name}
    content = json.loads(table.render("json"))
    assert content["rows"][0]["detector"] == content["protocol"] == name
    assert content["rows"][0]["cells"][0]["exposure"] == name and content["notes"] == [f"Note {name}."]


@settings(deadline=None)
@given(printed)
@example("*a*")
@example("[a](b)")
@example("`a|b`")
def test_any_name_is_text_in_markdown(name):
    page = read(MarkdownIt("commonmark").enable("table").render(hostile(name).render("markdown")))
    assert {each.tag for each in page.every()} <= {"p", "br", "table", "thead", "tbody", "tr", "th", "td", "strong"}
    (first, *_) = page.all("p")
    assert one_line(first.text) == one_line(f"Of {name}")
    assert [one_line(cell.text) for cell in page.all("th")][:2] == ["detector", one_line(f"x{name}")]
    cells = page.all("tbody")[0].all("tr")[0].all("td")
    assert [one_line(cell.text) for cell in cells[:2]] == [one_line(name), one_line(f"{name}.")]
    assert one_line(cells[5].text) == one_line(name)


@settings(deadline=None)
@given(printed)
@example("[1cm]")
@example("*")
@example("\\end{tabular}")
def test_any_name_is_text_in_latex(name):
    text = hostile(name).render("latex")
    bare = re.sub(r"\\[\\{}&%$#_]", lambda found: r"\\" if found.group() == r"\\" else "", text)
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
    assert re.findall(r"\\(?:begin|end)\{\w+\}", text) == [
        *(r"\begin{table}", r"\begin{tabular}", r"\end{tabular}", r"\end{table}")
    ]
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    spans = [sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line)) for line in lines]
    assert {len(re.findall(r"(?<!\\)&", line)) + more for line, more in zip(lines, spans)} == {5}
    assert len(lines) == 2 + 2 * 2
    assert not any(line.lstrip().startswith(("[", "*")) for line in lines)
    assert not re.search(r"(?<!\\)[#_]", body)


@settings(deadline=None)
@given(anything)
@example("</td></table>")
def test_any_name_is_text_in_html(name):
    page = read(hostile(name).render("html"))
    assert {each.tag for each in page.every()} <= {
        *("style", "div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "sup", "small", "span")
    }
    # the reader of a page takes any end of a line for one
    plain = name.replace("\r\n", "\n").replace("\r", "\n")
    assert page.all("th", scope="row")[0].text.replace("\r\n", "\n").replace("\r", "\n") == plain
    assert page.all("table")[0].attributes["data-protocol"] == name
    assert f"{name}; {name}" in page.all("span")[0].attributes["title"]


@settings(deadline=None)
@given(anything, st.sampled_from([40, 80, 200]))
@example("[red]x[/red]", 200)
@example("\x1b]0;title\x07", 80)
def test_any_name_is_text_in_a_terminal(name, width):
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(hostile(name))
    text = console.file.getvalue()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert text.count("50.00") + text.count("50.0 ±10.0") == 2
    if name.isascii() and name.isprintable() and width == 200 and len(name) < 12 and not name.isspace():
        assert name.strip() in text


@pytest.mark.parametrize("width", [50, 80, 120])
def test_no_terminal_drops_a_column(width):
    for name, table in tables().items():
        console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
        console.print(table)
        text = console.file.getvalue()
        assert max(map(len, text.splitlines())) <= width, name
        for row in table.rows:
            for cell in row.cells:
                if isinstance(cell, Number):
                    assert cell.number in text or cell.short in text, (name, cell)
                else:
                    assert (cell.text if cell else "–") in text, (name, cell)

"""Tables show the measurements, all of them, in the right order, in every format."""

import csv
import io
import json
import re
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from oodscope.base.errors import DataError, UnknownNameError, UsageError
from oodscope.document.wording import span
from oodscope.protocols.arrange import pivot
from oodscope.results.measurement import Measurement, Measurements
from tests.results.factory import make_result

special = st.sampled_from("\\{}[]()$&#%_^~|<>*`'\"-–†")
names = st.text(special | st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=10)


def row(detector="a", value=0.5, low=None, high=None, **changes) -> Measurement:
    plain = {"run": "r", "benchmark": "b", "benchmark_version": "1", "model": "m", "protocol": "standard"}
    plain |= {"set": "mean", "group": "near", "metric": "auroc", "interval": "delong-logit", "level": 0.95}
    return Measurement(**plain | {"detector": detector, "value": value, "low": low, "high": high} | changes)


def grid(*rows, metric="auroc"):
    return pivot(Measurements(rows), "standard", metric)


def expected(protocol, metric) -> dict[tuple[str, str, str], Measurement]:
    found = make_result().measurements.filter(protocol=protocol, metric=metric)
    return {(each.detector, each.group, each.set): each for each in found}


CASES = pytest.mark.parametrize(("protocol", "metric"), [("standard", "auroc"), ("full_spectrum", "fpr95_id_positive")])


@CASES
def test_json_holds_every_measurement_exactly(protocol, metric):
    content = json.loads(make_result().table(protocol, metric).render("json"))
    found = {
        (line["detector"], cell["group"], cell["set"]): (cell["value"], cell["low"], cell["high"])
        for line in content["rows"]
        for cell in line["cells"]
    }
    assert found == {key: (m.value, m.low, m.high) for key, m in expected(protocol, metric).items()}
    accuracy = make_result().measurements.filter(protocol=protocol, metric="accuracy")
    assert [(line["set"], line["value"]) for line in content["accuracy"]] == [(m.set, m.value) for m in accuracy]


@CASES
def test_csv_holds_every_measurement_exactly(protocol, metric):
    lines = list(csv.DictReader(io.StringIO(make_result().table(protocol, metric).render("csv"))))
    measured = expected(protocol, metric)
    assert len(lines) * 6 == len(measured)
    for (detector, group, name), m in measured.items():
        (line,) = [line for line in lines if line["detector"] == detector]
        key = f"{group}/{name}"
        assert (float(line[key]), float(line[f"{key} low"])) == (m.value, m.low)
        assert float(line[f"{key} high"]) == m.high


@CASES
@pytest.mark.parametrize("format", ["markdown", "latex"])
def test_papers_get_every_measurement_in_percent(format, protocol, metric):
    text = make_result().table(protocol, metric).render(format)
    bare = re.sub(r"\\textbf|\\scriptsize|\$\^\\dagger\$|[*†{}\\]", "", text)
    lines = {re.split(r"[|&]", line.strip("| "))[0].strip(): line for line in bare.splitlines() if line}
    for (detector, _, _), m in expected(protocol, metric).items():
        low, high = span(m.low, m.high).split("–")
        assert re.search(rf"\b{100 * m.value:.2f} +\[{low}, {high}\]", lines[detector])


@CASES
@pytest.mark.parametrize("width", [40, 64, 80, 100, 140, 200])
def test_a_terminal_of_any_width_shows_every_value(protocol, metric, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(make_result().table(protocol, metric))
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    measured = [m for (*_, group, name), m in expected(protocol, metric).items() if not repeated(group, name)]
    accuracy = [f"{100 * m.value:.2f}" for m in make_result().measurements.filter(protocol=protocol, metric="accuracy")]
    short = "±: distance" in one_line(text)
    assert short == (width <= 100)
    if short:
        reach = [ceil(round(1000 * max(m.high - m.value, m.value - m.low), 6)) / 10 for m in measured]
        shown = re.findall(r"\d+\.\d ±\d+\.\d", text)
        assert sorted(shown) == sorted(f"{100 * m.value:.1f} ±{r:.1f}" for m, r in zip(measured, reach))
        assert all(name in text for name in {m.set for m in measured} - {"mean"}), "no name is broken over lines"
    else:
        shown = re.findall(r"\d+\.\d\d", text)
        assert sorted(shown) == sorted([f"{100 * m.value:.2f}" for m in measured] + accuracy)
        assert all(span(m.low, m.high) in text for m in measured)


def repeated(group, name):
    """Whether it is the mean of a group of one set, which people are shown once."""
    sets = {row.set for row in make_result().measurements.filter(group=group, metric="auroc")}
    return name == "mean" and len(sets) == 2


def one_line(text):
    return " ".join(text.split())


def test_rows_are_sorted_by_the_near_mean_best_first():
    up = [(row.name, row.cells[0].value) for row in make_result().table().rows if row.section == "default"]
    assert [value for _, value in up] == sorted((value for _, value in up), reverse=True)
    lower = make_result().table(metric="fpr95_ood_positive")
    down = [row.cells[0].value for row in lower.rows if row.section == "default"]
    assert down == sorted(down)
    assert (lower.columns[0].group, lower.columns[0].name) == ("near", "mean")
    assert [c.words for c in lower.columns] == [
        "near mean",
        "held_out",
        "far mean",
        "photographs",
        "digits",
        "textures",
    ]


@CASES
def test_marks_are_the_best_and_those_whose_intervals_overlap_it(protocol, metric):
    shown = make_result().table(protocol, metric)
    higher = metric == "auroc"
    seen = set()
    for index, column in enumerate(shown.columns):
        track = [row for row in shown.rows if row.section == "default"]
        measured = {row.name: expected(protocol, metric)[row.name, column.group, column.name] for row in track}
        pick = max if higher else min
        best = pick(measured.values(), key=lambda m: m.value)
        for row in track:
            m, cell = measured[row.name], row.cells[index]
            assert cell.best == (m.value == best.value)
            assert cell.close == (m.value != best.value and max(m.low, best.low) <= min(m.high, best.high))
            seen.add((cell.best, cell.close))
    assert seen == {(True, False), (False, True), (False, False)}


def ranked():
    rows = [
        row("a", 0.9, 0.88, 0.92, rank_low=1, rank_high=2, class_low=0.82, class_high=0.94),
        row("b", 0.89, 0.87, 0.91, rank_low=1, rank_high=2, class_low=0.81, class_high=0.93),
        row("c", 0.5, 0.48, 0.52, rank_low=3, rank_high=3),
        row("d", 0.4, 0.38, 0.42),
    ]
    return pivot(
        Measurements([*rows, *(replace(each, set="x", rank_low=None, rank_high=None) for each in rows)]), "standard"
    )


def test_the_mean_of_one_set_is_that_set():
    for kind in ("markdown", "latex"):
        assert "mean" not in ranked().render(kind), "shown once, under its own name"


def test_ranks_stand_beside_the_names_in_every_format():
    table = ranked()
    assert [r.places for r in table.rows] == ["1–2", "1–2", "3", ""]
    lines = table.render("markdown").splitlines()
    assert lines[:2] == ["AUROC ↑, protocol standard", ""]
    assert lines[2] == "| detector | rank | x |", "the mean over one set repeats it"
    assert lines[3] == "| --- | --- | ---: |"
    assert lines[6].startswith("| c | 3 | 50.00 [48.0, 52.0] |")
    latex = table.render("latex")
    assert r"\begin{tabular}{lcr}" in latex and r"\cmidrule(lr){3-3}" in latex
    assert r"a & 1--2 & \textbf{90.00}" in latex and r"detector & rank & x" in latex
    assert re.search(r"detector +rank +x", str(table)) and re.search(r"b +1–2 +89.00†", str(table))
    content = json.loads(table.render("json"))["rows"]
    assert [line["cells"][0].get("rank") for line in content] == [[1, 2], [1, 2], [3, 3], None]
    assert content[0]["cells"][0]["class_high"] == 0.94
    html = table._repr_html_()
    assert '<th scope="col">rank</th>' in html and '<td class="rank" data-value="1">1–2</td>' in html
    assert '<td class="rank">–</td>' in html
    assert '<td class="best first" data-value="0.9" data-low="0.88" data-high="0.92" data-class-low="0.82"' in html
    assert "95 % interval for other OOD classes: 82.0–94.0; for other images of these classes: 88.0–92.0" in html
    assert '<small class="classes">82.0–94.0</small>' in html
    assert any("max-T" in note and "places on x that" in note for note in table.notes)
    assert any("3.0 times as wide" in note for note in table.notes)
    widths = {len(re.findall(r"(?<!\\\\)&", line)) for line in latex.splitlines() if line.endswith(r"\\")}
    assert widths == {2}


@pytest.mark.parametrize("width", [40, 60, 80])
def test_ranks_fit_a_narrow_terminal(width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(ranked())
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "1–2" in text


def test_tracks_are_ranked_apart():
    tuned = replace(row("tuned", 0.9), tuning="ood_val")
    found = grid(tuned, replace(row("also", 0.8), tuning="ood_val"), row("a", 0.5), row("b", 0.4))
    assert [(r.name, r.cells[0].best) for r in found.rows] == [
        ("a", True),
        ("b", False),
        ("tuned", True),
        ("also", False),
    ]
    assert "among detectors tuned alike" in found.notes[1]


def test_without_intervals_nothing_is_called_close():
    found = grid(row("a", 0.9), row("b", 0.8999))
    assert [r.cells[0].close for r in found.rows] == [False, False]
    assert "No intervals" in found.notes[1]


def test_covariate_shifted_sets_are_shown_last_and_not_ranked():
    found = grid(
        row("a", 0.9, set="blur", group="csid"), row("b", 0.8, set="blur", group="csid"), row("a", 0.5), row("b", 0.6)
    )
    assert [c.group for c in found.columns] == ["near", "csid"]
    assert [[cell.best for cell in r.cells] for r in found.rows] == [[True, False], [False, False]]
    assert any("csid" in note and "not ranked" in note for note in found.notes)


def test_a_detector_without_a_value_is_shown_with_a_gap():
    found = pivot(Measurements([row("a", 0.5), row("b", 0.9, set="x"), row("a", 0.5, set="x")]), "standard")
    assert [r.name for r in found.rows] == ["a", "b"]
    assert found.rows[1].cells[0] is None
    assert "| b | – |" in found.render("markdown")
    for format in ("rich", "csv", "json", "latex"):
        assert "90" in found.render(format) or "0.9" in found.render(format)


def test_the_note_names_the_metric_the_direction_and_the_interval():
    text = make_result().table(metric="fpr95_id_positive").render("markdown")
    assert text.startswith("FPR95 (ID positive) ↓, protocol standard\n")
    for said in ("share of OOD kept when 95 % of ID is kept", "lower is better", "95 % (bootstrap-bca-40)"):
        assert said in text


def test_what_cannot_be_shown_is_an_error():
    with pytest.raises(DataError, match="two values of auroc for a on near mean"):
        grid(row("a"), row("a"))
    with pytest.raises(UsageError, match="'human'; protocols with it: standard, full_spectrum"):
        make_result().table("human")
    with pytest.raises(
        UnknownNameError, match="unknown metric 'fpr95'. Did you mean 'fpr95_id_positive' or 'fpr95_ood_positive'"
    ):
        make_result().table(metric="fpr95")
    with pytest.raises(UnknownNameError, match="Did you mean 'latex'"):
        make_result().table().render("latx")


def balance(text: str) -> int:
    depth = 0
    for character in re.sub(r"\\[{}\\]", "", text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    return depth


@settings(max_examples=60, deadline=None)
@given(detector=names, name=names, protocol=names)
@example(detector="a_b&c%d#e", name="{x}^~\\y$", protocol="p_q")
def test_any_name_makes_a_well_formed_latex_table(detector, name, protocol):
    rows = [
        row(d, v, v - 0.1, v + 0.1, set=s, protocol=protocol)
        for d, v in ((detector, 0.5), ("other'", 0.6))
        for s in ("mean", name + "'")
    ]
    text = pivot(Measurements(rows), protocol).render("latex")
    assert balance(text) == 0
    for environment in ("table", "tabular"):
        assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}") == 1
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert [len(re.findall(r"(?<!\\)&", line)) for line in lines] == [1, 1, 1, 1]
    assert not re.search(r"(?<!\\)[#%_^]", body.replace(r"$^\dagger$", ""))
    assert re.sub(r"\\\$", "", text).count("$") % 2 == 0


@settings(max_examples=60, deadline=None)
@given(detector=names)
def test_any_name_makes_a_well_formed_markdown_table(detector):
    lines = pivot(Measurements([row(detector), row("other'")]), "standard").render("markdown").splitlines()[2:6]
    assert [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines] == [3, 3, 3, 3]


def test_names_are_text_in_terminals_and_notebooks():
    table = pivot(Measurements([row("[red]x[/red]"), row("<script>alert('y')</script>")]), "standard")
    assert "[red]x[/red]" in str(table)
    html = table._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html


@given(st.floats(0, 1), st.floats(0, 1))
def test_intervals_are_rounded_outwards(one, other):
    low, high = sorted((one, other))
    shown_low, shown_high = map(float, span(low, high).split("–"))
    assert shown_low <= 100 * low + 1e-6 and 100 * high - 1e-6 <= shown_high
    assert 100 * low - shown_low < 0.1 + 1e-6 and shown_high - 100 * high < 0.1 + 1e-6

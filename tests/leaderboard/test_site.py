"""The site shows the board's numbers, asks nothing of the network, and lets no name act as markup."""

import csv
import io
import json
import re
from dataclasses import replace
from os.path import normpath
from pathlib import PurePosixPath

import numpy as np
import pytest

from oodscope.base.errors import StorageError
from oodscope.document.number import Number
from oodscope.document.table import Column
from oodscope.leaderboard.published.table import published_standings
from oodscope.leaderboard.records.board import Board, Erratum
from oodscope.leaderboard.records.records import ModelUse, Publication
from oodscope.leaderboard.records.standing import Difference
from oodscope.leaderboard.site.addresses import safe_name
from oodscope.leaderboard.site.render import render_pages, write_site
from oodscope.leaderboard.site.strip import Rail, Strip
from oodscope.results.measurement import Measurements
from tests.leaderboard.board_factory import make_board, make_entry
from tests.report.reading import read

EVIL = """<script>alert(1)</script>'"><img src=x onerror=alert(2)>{{ 7*7 }}</td></table></pre></title>&amp;#x3c;"""
TABLE = "benchmarks/cifar10@openood-1.5/standard.html"


@pytest.fixture(scope="module")
def board():
    made = make_board(14)
    wanted = {"cifar10": ("KNN", "temp_scaling", "NPOS", "OE", "Gram"), "imagenet1k": ("KNN", "ASH")}
    printed = [s for s in published_standings() if s.entry.method in wanted.get(s.entry.benchmark.name, ())]
    return replace(made, standings=(*made.standings, *printed))


@pytest.fixture(scope="module")
def files(board):
    return dict(render_pages(board))


@pytest.fixture(scope="module")
def pages(files):
    return {path: read(text) for path, text in files.items() if path.endswith(".html")}


def numbers(line):
    """What a row says in full precision, cell by cell."""
    return [
        float(cell.attributes["data-value"]) if "data-value" in cell.attributes else None for cell in line.all("td")
    ]


def test_every_page_is_there(board, pages):
    assert {"index.html", "downloads.html", "methods/index.html", "models/index.html", TABLE} <= set(pages)
    assert "benchmarks/cifar10@openood-1.5/full_spectrum.html" in pages
    assert "benchmarks/cifar10@openood-1.5/standard~fpr95_id_positive.html" in pages
    assert len([path for path in pages if path.startswith("models/")]) == 1 + len(board.models())
    assert "methods/knn.html" in pages and "methods/temp_scaling.html" in pages


@pytest.mark.parametrize("metric", ["auroc", "fpr95_id_positive"])
def test_tables_show_what_the_board_says(board, pages, metric):
    page = pages[TABLE if metric == "auroc" else TABLE.replace(".html", f"~{metric}.html")]
    sections = page.all("section", **{"class": "ranking"})
    seen = []
    for section in sections:
        where = (section.attributes["data-track"], section.attributes["data-tuning"])
        seen.append(where)
        heads = [th.attributes.get("data-sort") for th in section.all("thead")[0].all("tr")[-1].all("th")]
        columns = [Column(*name.split(".")) for name in heads[3:] if name and "." in name]
        rows = board.rows("cifar10@openood-1.5", "standard", *where, metric)
        lines = section.all("tbody")[0].all("tr")
        assert [line.attributes["id"] for line in lines] == [f"e-{row.standing.entry.id}" for row in rows]
        for line, row in zip(lines, rows):
            rank, _, *values = numbers(line)
            assert values[: len(columns)] == [row.cells[c].value if c in row.cells else None for c in columns]
            ranked = row.cells[columns[0]].rank if columns[0] in row.cells else None
            assert rank == (None if ranked is None else ranked[0] + ranked[1] / 100000)
            assert ("unranked" in line.attributes.get("class", "")) == (not row.ranked)
            assert line.attributes["data-tier"] == row.standing.tier
            if not row.ranked:
                printed = r"\(\d+(–\d+)?\)|cannot say" if row.standing.tier == "reported" else "–"
                assert re.fullmatch(printed, line.all("td")[0].text), "no rank outside brackets"
            for column, cell in zip(columns, line.all("td")[2:]):
                if column in row.cells:
                    found = row.cells[column]
                    below = found.interval or (f"±{100 * found.sd:.2f}" if found.sd is not None else "")
                    assert cell.text.replace("\n", "").startswith(f"{100 * found.value:.2f}{below}")
    assert sorted(seen) == [
        each
        for each in board.tables("cifar10@openood-1.5", "standard")
        if board.rows("cifar10@openood-1.5", "standard", *each, metric)
    ]


@pytest.mark.parametrize(("metric", "pick"), [("auroc", max), ("fpr95_id_positive", min)])
def test_the_best_ranked_value_of_a_column_is_bold_and_no_other(board, pages, metric, pick):
    page = pages[TABLE if metric == "auroc" else TABLE.replace(".html", f"~{metric}.html")]
    compared = 0
    for section in page.all("section", **{"class": "ranking"}):
        rows = board.rows(
            "cifar10@openood-1.5",
            "standard",
            section.attributes["data-track"],
            section.attributes["data-tuning"],
            metric,
        )
        ranked = [row.cells[Column("near", "mean")].value for row in rows if row.ranked]
        bold = [
            float(line.all("td")[2].attributes["data-value"])
            for line in section.all("tbody")[0].all("tr")
            if line.all("td")[2].all("b")
        ]
        assert bold == ([pick(ranked)] if len(ranked) > 1 else [])
        compared += len(bold)
    assert compared > 1


def test_printed_spreads_stand_below_printed_values(pages):
    (line,) = [tr for tr in pages[TABLE].all("tr") if tr.attributes.get("id") == "e-openood-v1.5-cifar10-knn"]
    assert [cell.text.strip() for cell in line.all("td")[2:]][:1] == ["90.64±0.20"]
    assert "unranked" in line.attributes["class"]


def test_dots_of_the_map_lead_to_their_rows_and_lie_where_their_means_are(pages):
    page = pages[TABLE]
    dots = [each for each in page.all("a") if each.attributes.get("class", "").startswith("dot ")]
    heads = [cell.attributes.get("data-sort") for cell in page.all("thead")[1].all("tr")[-1].all("th")]
    places = []
    for dot in dots:
        (row,) = page.all("tr", id=dot.attributes["href"].removeprefix("#"))
        cells = [child for child in row.every() if child.tag in ("td", "th")]
        near, far = (float(cells[heads.index(name)].attributes["data-value"]) for name in ("near.mean", "far.mean"))
        open_mark = "unranked" in row.attributes.get("class", "")
        assert (dot.attributes["class"] == "dot open") == open_mark
        places.append((near, far, float(dot.attributes["data-x-at"]), float(dot.attributes["data-y-at"])))
    near, far, x, y = np.array(places).T
    assert len(places) >= 3 and min(*x, *y) > 0 and max(*x, *y) < 1
    for values, drawn in ((near, x), (far, y)):
        slope, start = np.polyfit(values, drawn, 1)
        assert slope > 0
        np.testing.assert_allclose(slope * values + start, drawn, atol=1e-4)


def test_values_lie_on_their_rail(pages):
    rail = Rail(0.5, 0.9)
    assert rail.strip(Number(0.7, 0.6, 0.8)) == Strip(
        pytest.approx(0.5), pytest.approx(0.25), pytest.approx(0.75), False
    )
    assert rail.strip(Number(0.4, None, None)) == Strip(0.0, 0.0, 0.0, True)
    found = [each for page in pages.values() for each in page.all("i") if "data-value-at" in each.attributes]
    assert found
    for each in found:
        low, value, high = (float(each.attributes[f"data-{name}-at"]) for name in ("low", "value", "high"))
        assert 0 <= low <= value <= high <= 1


def test_seeds_are_one_row_and_all_can_be_linked(board, pages):
    (section,) = pages[TABLE].all("section", data_track="training", data_tuning="default")
    (line,) = [tr for tr in section.all("tr") if tr.attributes.get("id") == "e-logitnorm-0"]
    assert [span.attributes["id"] for span in line.all("span") if "id" in span.attributes] == [
        "e-logitnorm-1",
        "e-logitnorm-2",
    ]
    assert "3 seeds" in line.text
    accuracies = [s.measurements.filter(metric="accuracy")[0].value for s in board.method("LogitNorm") if s.entry.group]
    assert numbers(line)[-4] == pytest.approx(sum(accuracies) / 3)


def test_the_page_of_a_method_has_everything_of_it(board, pages, files):
    page = pages["methods/knn.html"]
    own = [each for each in board.standings if each.entry.method.lower() == "knn"]
    shown = {}
    for section in page.all("section", **{"class": "ranking"}):
        title = section.all("h3")[0].all("a")[0].text
        heads = [th.attributes["data-sort"] for th in section.all("th", scope="col")]
        for line in section.all("tbody")[0].all("tr"):
            for head, cell in zip(heads, line.all("th") + line.all("td")):
                if "." in head and "data-value" in cell.attributes:
                    shown[line.attributes["data-entry"], title, head] = float(cell.attributes["data-value"])
    wanted = {
        (each.entry.id, f"{each.entry.benchmark}, {row.protocol.replace('_', ' ')}", f"{row.group}.mean"): row.value
        for each in own
        for row in each.measurements.filter(metric="auroc", set="mean")
    }
    assert shown == wanted
    assert {d.attributes["id"] for d in page.all("details")} == {f"e-{each.entry.id}" for each in own}
    (row,) = page.all("section", id="differences")[0].all("tbody")[0].all("tr")
    (found,) = next(each.differences for each in own if each.differences)
    assert numbers(row)[:3] == [found.reported, found.measured, found.measured - found.reported]
    assert "outside the interval" in row.text and "Table 7" in row.text
    errata = page.all("section", id="errata")[0].text
    assert "knn-r18-old gave way to knn-r18: wrong preprocessing" in errata and "2026-05-02" in errata
    texts = {pre.text for pre in page.all("pre")}
    assert {text for text in texts if not text.startswith("oodscope ")} == {each.entry.paper.bibtex for each in own}
    assert "oodscope leaderboard verify leaderboard/knn-r18" in texts
    marks = {button.attributes["data-copy"] for button in page.all("button", **{"class": "copy"})}
    assert marks == {pre.attributes["id"] for pre in page.all("pre")}
    assert "unreliable: two columns of scores are equal" in page.text


def test_the_page_of_a_network_has_everything_on_it(board, pages):
    own = board.model("net 3")
    page = pages[next(path for path in pages if path.startswith("models/net-3"))]
    lines = [line for table in page.all("tbody") for line in table.all("tr")]
    assert {line.attributes["data-entry"] for line in lines} == {each.entry.id for each in own}
    ranked = 0
    for line in lines:
        (standing,) = [each for each in own if each.entry.id == line.attributes["data-entry"]]
        near, far = (
            standing.measurements.filter(metric="auroc", group=g, set="mean")[0].value for g in ("near", "far")
        )
        assert numbers(line)[2:4] == [near, far]
        where = ("cifar10@openood-1.5", "standard", standing.track, standing.entry.tuning)
        (row,) = [row for row in board.rows(*where) if standing in row.standings]
        rank = row.cells[Column("near", "mean")].rank
        assert numbers(line)[1] == (None if rank is None else rank[0] + rank[1] / 100000)
        ranked += rank is not None
    assert ranked


def test_the_front_page_counts_and_names_leaders(board, pages):
    page = pages["index.html"]
    counts = [int(b.attributes["data-value"]) for b in page.all("ul", **{"class": "facts"})[0].all("b")]
    assert counts[0] == len(board.standings) == sum(counts[3:])
    leaders = [float(s.attributes["data-value"]) for s in page.all("span", **{"class": "value"})]
    expected = []
    for protocol in ("standard", "full_spectrum"):
        for track in ("post-hoc", "training", "outlier-data", "vision-language", "transductive"):
            for tuning in ("default", "id_only", "ood_val"):
                rows = [r for r in board.rows("cifar10@openood-1.5", protocol, track, tuning) if r.ranked]
                expected += [max(r.cells[Column("near", "mean")].value for r in rows)] if rows else []
    assert leaders == expected
    assert "arXiv 2306.09301" in page.text and "reported, not recomputed" in page.text


def test_downloads_hold_every_measurement(board, files):
    rows = list(csv.DictReader(io.StringIO(files["data/everything.csv"])))
    assert len(rows) == sum(len(each.measurements) for each in board.standings)
    values = [row.value for each in board.standings for row in each.measurements]
    assert [float(row["value"]) for row in rows] == values
    assert [row["value"] for row in json.loads(files["data/everything.json"])] == values
    part = json.loads(files["data/cifar10@openood-1.5/full_spectrum.json"])
    assert {row["entry"] for row in part} == {"knn-r18"} and {row["protocol"] for row in part} == {"full_spectrum"}
    knn = [r for r in json.loads(files["data/everything.json"]) if r["entry"] == "openood-v1.5-cifar10-knn"]
    assert [row["spread"] for row in knn] == pytest.approx([0.002, 0.0014, 0.003])
    for each in board.standings:
        assert json.loads(files[f"entries/{each.entry.id}/entry.json"])["method"] == each.entry.method
    said = json.loads(files["data/differences.json"])
    assert len(said["differences"]) == 1 and said["errata"][0]["old"] == "knn-r18-old"


def test_every_link_leads_somewhere(files, pages):
    ids = {path: {e.attributes["id"] for e in page.every() if "id" in e.attributes} for path, page in pages.items()}
    for path, page in pages.items():
        for element in page.every():
            for name in ("href", "src"):
                if (link := element.attributes.get(name)) and not link.startswith("https:"):
                    place, _, mark = link.partition("#")
                    target = normpath(PurePosixPath(path).parent / place) if place else path
                    assert target in files, (path, link)
                    assert not mark or mark in ids[target], (path, link)


def test_ids_are_unique(pages):
    for path, page in pages.items():
        ids = [e.attributes["id"] for e in page.every() if "id" in e.attributes]
        assert len(ids) == len(set(ids)), path


def check_nothing_from_outside(pages):
    for path, page in pages.items():
        (policy,) = [m.attributes["content"] for m in page.all("meta") if "http-equiv" in m.attributes]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self';"), path
        for element in page.every():
            assert element.tag not in {"iframe", "object", "embed", "base", "img", "style"}
            assert "style" not in element.attributes
            assert not any(name.startswith("on") for name in element.attributes)
            if element.tag != "a":
                for name in ("src", "href", "action", "data", "srcset"):
                    assert not re.match(r"\s*[a-z]+:|//", element.attributes.get(name) or "", re.IGNORECASE)
            elif re.match(r"\s*[a-z]+:|//", element.attributes["href"], re.IGNORECASE):
                assert element.attributes["href"].startswith("https://")
                assert element.attributes["rel"] == "noopener noreferrer"


def test_nothing_is_asked_of_the_network(files, pages):
    check_nothing_from_outside(pages)
    for name in ("site.css", "site.js", "theme.js"):
        assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp|innerHTML|eval\(", files[name])


def twin(tail: str) -> Board:
    """A board whose every text ends in ``tail``: the same shape for any tail."""
    entry = make_entry(
        "first",
        method=f"m{tail}",
        authors=(f"a{tail}",),
        paper=Publication(
            title=f"t{tail}", venue=f"v{tail}", year=2025, link="https://example.org/", bibtex=f"b{tail}"
        ),
        benchmark=make_entry().benchmark.model_copy(update={"name": f"n{tail}", "version": f"1{tail}"}),
        protocols={f"p{tail}": 1},
        model=ModelUse(
            name=f"net{tail}",
            architecture=f"arch{tail}",
            recipe=f"r{tail}",
            weights_hash=f"w{tail}",
            trained_on=(f"d{tail}",),
        ),
        detector=make_entry().detector.model_copy(
            update={"id": f"d{tail}", "name": f"d{tail}", "params": {f"k{tail}": f"v{tail}"}}
        ),
        notes=(f"note{tail}",),
    )
    entry = entry.model_copy(update={"code": f"javascript:alert(1){tail}", "weights": "JaVaScRiPt:alert(2)"})
    numbers = make_board(0).standings[0].measurements
    changed = [
        {**vars(row)}
        | {
            "protocol": f"p{tail}",
            "set": row.set if row.set == "mean" else f"{row.set}{tail}",
            "exposure": f"x{tail}",
            "interval": f"i{tail}",
        }
        | ({"group": f"g{tail}"} if row.group == "far" else {})
        for row in numbers
        if row.protocol == "standard"
    ]
    standing = replace(
        make_board(0).standings[0],
        entry=entry,
        measurements=Measurements.from_rows(changed),
        flags=(f"unreliable: {tail}", f"f{tail}"),
        differences=(
            Difference(f"p{tail}", "auroc", f"g{tail}", f"s{tail}", 0.9, 0.8, 0.7, 0.85, True, source=f"src{tail}"),
        ),
    )
    other = entry.model_copy(update={"id": "second", "model": entry.model.model_copy(update={"name": f"other{tail}"})})
    gone = replace(standing, entry=other, superseded_by="first", reason=f"why{tail}")
    again = replace(standing, entry=entry.model_copy(update={"id": "third"}), tier="recomputed")
    return Board((standing, gone, again), (Erratum("second", "first", f"why{tail}", f"2026-01-01{tail}"),))


def test_no_text_acts_as_markup():
    plain, evil = list(render_pages(twin("x"))), list(render_pages(twin(EVIL)))
    assert len(plain) == len(evil)
    seen = ""
    for (path, text), (_, hostile) in zip(plain, evil):
        if path.endswith(".html"):
            first, second = read(text), read(hostile)
            shapes = [[(e.tag, list(e.attributes)) for e in page.every()] for page in (first, second)]
            assert shapes[0] == shapes[1], path
            check_nothing_from_outside({path: second})
            assert not [a for a in second.all("a") if "script:" in a.attributes["href"].lower()]
            seen += second.text + " ".join(str(v) for e in second.every() for v in e.attributes.values())
    for word in ("m", "a", "t", "v", "b", "net", "arch", "r", "w", "d", "note", "x", "f", "src", "why", "p", "g"):
        assert f"{word}{EVIL}" in seen, word


def test_names_of_hostile_methods_are_safe_and_unique():
    names = [
        "../../etc/passwd", "..", ".", "a/b", "a\\b", "CON", "nul.txt", "index", "a--b", "é", "e\u0301", "x" * 300, "A",
        "a b", "a_b", "<b>", "%2e%2e%2f", "a?b", "a#b", "a.", "-rf", "~", "KNN+", "knn", "*", "com1",
    ]  # fmt: skip
    standings = tuple(
        replace(each, entry=make_entry(f"e{n}", method=name, model=ModelUse(name=name)))
        for n, name in enumerate(names)
        for each in make_board(0).standings[:1]
    )
    paths = [path for path, _ in render_pages(Board(standings))]
    assert len(paths) == len({path.lower() for path in paths})
    for path in paths:
        assert re.fullmatch(r"[a-z0-9_@+~./-]+", path) and ".." not in path and not path.startswith("/"), path
        assert all(len(part) < 100 and not part.startswith(("-", ".")) for part in path.split("/"))
        assert not re.match(r"(con|nul|com1)\.", path.split("/")[-1])
    methods = [path for path in paths if path.startswith("methods/")]
    assert len(methods) == 1 + len(names) - 3  # "a b", "a_b" and "a--b" are one method, and so are the two é
    assert len([path for path in paths if path.startswith("models/")]) == 1 + len(names)


def test_a_name_cannot_take_the_place_of_a_hash():
    made = safe_name("é")
    assert safe_name(made) != made  # whoever knows the hash of a name cannot be called by it
    assert safe_name("cifar10@openood-1.5") == "cifar10@openood-1.5"


def test_a_formula_in_a_name_is_not_run_by_a_spreadsheet():
    standing = replace(make_board(0).standings[0], entry=make_entry(method="=HYPERLINK(1)"))
    text = dict(render_pages(Board((standing,))))["data/everything.csv"]
    assert next(csv.DictReader(io.StringIO(text)))["method"] == "'=HYPERLINK(1)"


def test_a_site_replaces_a_site_and_nothing_else(board, tmp_path):
    folder = write_site(board, tmp_path / "deep" / "site")
    (folder / "methods" / "stale.html").write_text("old")
    write_site(Board(()), folder)
    assert not (folder / "methods" / "stale.html").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["site"]
    assert "0 entries" in (folder / "index.html").read_text(encoding="utf-8").replace('<b data-value="0">', "").replace(
        "</b>", ""
    )
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("x")
    with pytest.raises(StorageError, match="neither empty nor a site"):
        write_site(board, precious)
    assert (precious / "thesis.tex").exists()

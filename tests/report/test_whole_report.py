"""The report over runs of every kind: each number on it is one that was stored, and each that ranks is on it."""

import json
import re

import pytest

from oodscope.protocols.registry import headline_metrics
from oodscope.report.page import tables
from oodscope.report.page.generated import generated_view
from oodscope.report.page.page import write_report
from oodscope.report.page.tables import protocol_sections
from oodscope.results.opening import of_kind
from oodscope.runs.attack.run import Attack
from oodscope.runs.comparison.advice import advise
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.evaluation.run import Result
from oodscope.runs.generated.ranks import rank_agreements
from oodscope.runs.generated.run import GeneratedStudy
from tests.report.reading import read
from tests.report.whole_runs import crossval, every_kind, judged, table
from tests.results.factory import make_result

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_report(every_kind(), tmp_path_factory.mktemp("whole") / "report.html")


@pytest.fixture(scope="module")
def page(path):
    return read(path.read_text(encoding="utf-8"))


def records():
    return [record for run in every_kind() for record in run.records()]


def all_rows():
    # a cross-validation stores no measurements: what it shows is computed by its study
    return [row for run in every_kind() if run.kind != "crossval" for row in run.measurements]


def known_numbers():
    """Every number that a run stored, or that its own study computes."""
    runs, numbers = every_kind(), set()
    for row in all_rows():
        numbers |= {
            row.value,
            row.rank_low,
            row.class_rank_low,
            row.fit_seconds,
            row.microseconds_per_image,
            row.peak_mib,
        }
    for record in records():
        numbers |= {each.n for each in record.sets.values()}
    for each in judged().scores.context.detectors.values():
        numbers |= {each.fit_seconds, each.microseconds_per_image, each.peak_mib}
    study = study_metric(table(), "auroc")
    advice = advise(judged())
    numbers |= {advice.value.value, advice.missed.value}
    numbers |= {*study.truth.ravel().tolist(), *study.repetitions.mean(axis=0).ravel().tolist()}
    numbers |= set(study.repetitions.mean(axis=0).mean(axis=1).tolist())
    numbers |= set(study.folds.std(axis=1, ddof=1).mean(axis=0).ravel().tolist())
    for alpha in (0.1, 0.05, 0.01):
        rates, ways = study.rates(alpha), study.directions(alpha)
        numbers |= {rates.hits.value, rates.errors.value, ways.share, ways.opposite}
    for made in of_kind(runs, GeneratedStudy):
        numbers |= {each.tau for each in rank_agreements(made)}
        numbers |= {number for each in made.sanity.sets for number in (each.frechet, each.perceptual)}
    return numbers - {None}


def test_every_number_on_the_page_was_stored(page):
    shown = [element for element in page.every() if "data-value" in element.attributes]
    known = known_numbers()
    for element in shown:
        value = element.attributes["data-value"]
        if value:  # the diagonal of a table of pairs has none
            assert float(value) in known, (element.tag, value, element.text, element.parent.text[:80])
    assert len(shown) > 500


def scorecard(page):
    (card,) = page.all("table", **{"class": "scorecard sortable"})
    groups = [(th.text, int(th.attributes["colspan"])) for th in card.all("th", **{"class": "group"})]
    protocols = [name.replace(" ", "_") for name, count in groups for _ in range(count)]
    whats = [th.all("span")[0].text for th in card.all("thead")[0].all("tr")[1].all("th")[1:]]
    cells = {}
    for line in card.all("tr"):
        if line.all("td"):
            key = (line.all("th", scope="row")[0].text, line.attributes["data-tuning"])
            for place, cell in enumerate(line.all("td")):
                if "data-value" in cell.attributes:
                    cells[place, *key] = cell
    return list(zip(protocols, whats)), cells


def expected(protocol, what):
    """The rows that a column of the scorecard should hold, from the stored measurements alone."""
    runs = every_kind()
    if protocol == "attack":
        (attack,) = of_kind(runs, Attack)
        return attack.result.measurements.filter(protocol=protocol, metric="auroc", group="shift")
    if protocol == "generated":
        name = re.search(r"AUROC on (.*) ↑", what)[1]
        (study,) = of_kind(runs, GeneratedStudy)
        return [r for s in study.results for r in s.measurements.filter(protocol="standard", metric="auroc", set=name)]
    group = "all" if protocol == "human_centric" else "near"
    metric = headline_metrics(protocol)[0]
    return judged().measurements.filter(protocol=protocol, metric=metric, group=group, set="mean")


def test_the_scorecard_holds_the_measurements_and_all_of_them(page):
    columns, cells = scorecard(page)
    assert [name for name, _ in columns] == [
        *("standard", "full_spectrum", "human_centric", "crossval", "attack"),
        *["generated"] * 3,  # one for each network
    ]
    networks = iter(of_kind(every_kind(), GeneratedStudy)[0].networks)
    for place, (protocol, what) in enumerate(columns):
        own = {key[1:]: cell for key, cell in cells.items() if key[0] == place}
        if protocol == "crossval":
            assert {name for name, _ in own} == set(table().detectors)
            continue
        rows = expected(protocol, what)
        if protocol == "generated":
            network = next(networks)
            rows = [row for row in rows if row.model == network]
        assert own.keys() == {(row.detector, row.tuning) for row in rows} and own
        for row in rows:
            cell = own[row.detector, row.tuning]
            assert float(cell.attributes["data-value"]) == row.value
            assert float(cell.attributes["data-low"]) == row.low and float(cell.attributes["data-high"]) == row.high
            assert f"{100 * row.value:.2f}" in cell.text
            (rank,) = cell.all("span", **{"class": "rank"})
            low, high = row.class_rank_low or row.rank_low, row.class_rank_high or row.rank_high
            if low is not None:
                assert rank.text in (f"{low}–{high}", f"{low}")
            assert re.fullmatch(r"\d+(–\d+)?", rank.text)
        assert what.endswith("↓" if protocol == "human_centric" else "↑")


def test_leaders_are_marked_and_nothing_is_averaged_across_protocols(page):
    columns, cells = scorecard(page)
    for place, (_, what) in enumerate(columns):
        pick = min if what.endswith("↓") else max
        own = {key: cell for key, cell in cells.items() if key[0] == place and key[2] == "default"}
        values = {key: float(cell.attributes["data-value"]) for key, cell in own.items()}
        best = {key for key, value in values.items() if value == pick(values.values())}
        assert {key for key, cell in own.items() if cell.attributes.get("class") == "best"} == best
    (dots,) = page.all("table", **{"class": "dots"})
    drawn = [row.all("td") for row in dots.all("tbody")[0].all("tr")]
    own = [place for place, (protocol, _) in enumerate(columns) if protocol != "generated"]  # by other networks
    assert len(drawn) == len({key[1:] for key in cells if key[0] in own}) and {len(row) for row in drawn} == {len(own)}
    for place, (protocol, _) in enumerate(columns[: len(own)]):
        assert dots.all("thead")[0].all("a")[place].text == protocol.replace("_", " ")
        shown = [row[place] for row in drawn if row[place].attributes["class"] != "none"]
        assert len(shown) == len([key for key in cells if key[0] == place])


def test_links_lead_somewhere_and_ids_are_unique(page):
    ids = [element.attributes["id"] for element in page.every() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        assert link.attributes["href"].removeprefix("#") in ids
    for name in ("verdict", "scorecard", "standard-1", "human-centric-1", "plots", "crossval-1"):
        assert name in ids
    assert {"attack-1", "attack-1-worst", "generated-1", "generated-1-claims", "provenance"} <= set(ids)


def test_every_plot_has_its_data_and_every_run_its_record(page):
    figures = {div.attributes["data-figure"] for div in page.all("div", **{"class": "plot"})}
    data = {script.attributes["id"]: json.loads(script.text) for script in page.all("script", type="application/json")}
    assert {f"figure-{name}" for name in figures} == data.keys()
    kinds = {re.match(r"[a-z]+", name)[0] for name in figures}
    assert {"roc", "scores", "der", "risk", "cost", "rank", "verdict", "budget", "reliability", "estimates"} <= kinds
    (provenance,) = page.all("section", id="provenance")
    for record in records():
        for text in (record.id, record.model_fingerprint, record.oodscope_version, *record.environment.values()):
            assert str(text) in provenance.text
    assert page.text.count("plotly") and "MIT License" in provenance.text


def test_it_asks_for_nothing_from_outside(page):
    for element in page.every():
        assert element.tag not in {"link", "iframe", "object", "embed", "base"}
        assert (element.attributes.get("src") or "data:").startswith("data:")
        assert (element.attributes.get("href") or "#").startswith("#")


def test_two_runs_of_one_protocol_stand_side_by_side(tmp_path):
    runs = [make_result(), judged()]
    page = read(write_report(runs, tmp_path / "two.html", title="two").read_text(encoding="utf-8"))
    columns, cells = scorecard(page)
    assert [name for name, _ in columns] == ["standard", "standard", "full_spectrum", "full_spectrum", "human_centric"]
    first, second = (r.measurements.filter(detector="knn", protocol="standard", metric="auroc") for r in runs)
    for place, rows in enumerate((first, second)):
        (row,) = rows.filter(group="near", set="mean")
        assert float(cells[place, "knn", "default"].attributes["data-value"]) == row.value
    ids = [element.attributes["id"] for element in page.every() if "id" in element.attributes]
    assert len(ids) == len(set(ids)) and {"standard-1", "standard-2"} <= set(ids)


def test_many_detectors_keep_their_first_tables_whole_and_the_others_short(monkeypatch):
    monkeypatch.setattr(tables, "LARGE", 10)
    for section in protocol_sections([judged()]):
        first, *others = section.tables
        assert {column.name for column in first.table.columns} - {"mean"}
        for other in others:
            assert {column.name for column in other.table.columns} == {"mean"}
            assert "measurements.csv" in other.table.notes[-1]
            for row in other.table.rows:
                assert len(row.cells) == len(other.table.columns)


def test_an_unfinished_cross_validation_is_passed_over(tmp_path):
    frame = table().frame
    kept = (frame["kind"] == "fold") & (frame["repetition"] == 0) & (frame["fold"] == 0) & (frame["detector"] == "knn")
    one_fold = type(table())(frame[kept.to_numpy()])
    one_cell_short = type(table())(one_fold.frame.iloc[:-1])
    other_metric = type(table())(frame.assign(metric="aupr_out"))
    for unfinished in (one_fold, one_cell_short, other_metric):
        runs = [crossval(unfinished)]
        page = read(write_report(runs, tmp_path / "begun.html").read_text(encoding="utf-8"))
        ids = {element.attributes.get("id") for element in page.every()}
        assert not ids & {"crossval-1", "verdict", "scorecard"} and "provenance" in ids


def test_a_study_alone_makes_a_report(tmp_path):
    for runs in ([crossval()], list(of_kind(every_kind(), Attack))):
        page = read(write_report(runs, tmp_path / "one.html").read_text(encoding="utf-8"))
        (first,) = page.all("section", id="verdict")
        assert "Who leads each protocol" in first.text and page.all("h1")[0].text


def test_one_result_is_a_report_of_one_run(tmp_path):
    one, same = tmp_path / "one.html", tmp_path / "same.html"
    write_report(judged(), one)
    write_report([judged()], same)
    assert one.read_bytes() == same.read_bytes() and isinstance(judged(), Result)
    assert generated_view(of_kind(every_kind(), GeneratedStudy)[0]).record.id in {each.id for each in records()}


def test_the_scorecard_can_be_switched_to_what_passes(page):
    (other,) = page.all("table", **{"class": "scorecard sortable fpr95"})
    assert [each.attributes["value"] for each in page.all("input", name="metric")] == ["headline", "fpr95"]
    lines = {row.all("th")[0].text: row for row in other.all("tr") if row.all("td")}
    rows = judged().measurements.filter(protocol="standard", metric="fpr95_id_positive", group="near", set="mean")
    assert rows and {row.detector for row in rows} == set(lines)
    for row in rows:
        assert float(lines[row.detector].all("td")[0].attributes["data-value"]) == row.value
    assert "↓" in other.all("thead")[0].text

"""The page shows the measurements, needs nothing from outside, and lets no name act as markup."""

import base64
import gzip
import hashlib
import html
import json
import re

import pytest

from oodscope.document.table import single_groups
from oodscope.document.wording import span
from oodscope.report.page.page import write_report
from oodscope.report.render import bundle
from oodscope.results.measurement import Measurements
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.run import Result
from tests.report.reading import read
from tests.results.factory import make_record, make_result, make_scores

pytestmark = pytest.mark.slow

EVIL = """<script>alert("1")</script>'"><img src=x onerror=alert(2)>{{ 7*7 }}"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_report(make_result(), tmp_path_factory.mktemp("report") / "deep" / "report.html")


@pytest.fixture(scope="module")
def page(path):
    return read(path.read_text(encoding="utf-8"))


def test_every_number_of_every_table_is_the_measurement(page):
    shown = {}
    for table in page.all("table"):
        if metric := table.attributes.get("data-metric"):
            groups = [(th.text, int(th.attributes["colspan"])) for th in table.all("th", **{"class": "group"})]
            columns = [group for group, count in groups for _ in range(count)]
            names = [th.text for th in table.all("thead")[0].all("tr")[-1].all("th")][1:]
            for line in table.all("tr"):
                cells = line.all("td")
                for group, name, cell in zip(columns, names, cells):
                    detector = line.all("th", scope="row")[0].text
                    shown[table.attributes["data-protocol"], metric, detector, group, name] = cell
    rows = [row for row in make_result().measurements if row.detector]
    single = single_groups((row.group, row.set) for row in rows)
    # the mean of a group of one set is that set, and is shown once
    shown_once = [row for row in rows if not (row.set == "mean" and row.group in single)]
    measured = {(m.protocol, m.metric, m.detector, m.group, m.set): m for m in shown_once}
    assert shown.keys() == measured.keys()
    for key, m in measured.items():
        assert float(shown[key].attributes["data-value"]) == m.value
        assert shown[key].text.replace("†", "") == f"{100 * m.value:.2f}{span(m.low, m.high)}"


def test_the_accuracy_is_the_measurement(page):
    shown = [
        (b.attributes["data-accuracy"], float(b.attributes["data-value"]), b.text)
        for b in page.all("b")
        if "data-accuracy" in b.attributes
    ]
    measured = [(m.set, m.value, f"{100 * m.value:.2f}") for m in make_result().measurements.filter(metric="accuracy")]
    assert shown == measured


def test_the_best_of_the_near_mean_is_marked_and_headlined(page):
    for protocol in ("standard", "full_spectrum"):
        near = make_result().measurements.filter(protocol=protocol, metric="auroc", group="near", set="mean")
        best = max(near.filter(tuning="default"), key=lambda m: m.value)
        table = page.all("table", data_protocol=protocol, data_metric="auroc")[0]
        first = next(line for line in table.all("tr") if line.all("td"))
        assert first.all("th")[0].text == best.detector
        assert "best" in first.all("td")[0].attributes["class"].split()
        (card, _) = page.all("tr", data_protocol=protocol)  # default parameters, and tuned ones
        assert "default parameters" in card.text and "near-OOD AUROC ↑" in card.text
        assert card.all("b")[0].text == best.detector
        ends = span(*((best.low, best.high) if best.class_low is None else (best.class_low, best.class_high)))
        assert card.all("span", **{"class": "value"})[0].text == f"{100 * best.value:.2f}{ends}"


def test_record_notes_and_reasons_are_there(page):
    record = make_result().record
    said = page.all("main")[0].text
    for text in (
        *record.skipped.values(),
        *record.notes,
        record.model_fingerprint,
        record.transform,
        record.head,
        *(s.fingerprint for s in record.sets.values()),
        *map(str, record.environment.values()),
        "12000",
    ):
        assert text in said
    assert "gamma=0.1, top=10" in said


def test_the_page_asks_for_nothing_from_outside(path, page):
    for element in page.every():
        assert element.tag not in {"link", "img", "iframe", "object", "embed", "base"}
        assert "src" not in element.attributes
        assert (element.attributes.get("href") or "#").startswith("#")
    (packed,) = page.all("script", id="packed-plotly")
    text = path.read_text(encoding="utf-8").replace(packed.text, "").replace(bundle.licence(), "")
    assert not re.search(r"https?:|url\((?!data:)|@import|fetch\(", text)
    assert path.stat().st_size < 1_500_000


def test_links_lead_somewhere(page):
    ids = {element.attributes.get("id") for element in page.every()}
    for link in page.all("a"):
        assert link.attributes["href"].removeprefix("#") in ids


def test_only_our_own_script_may_run(page):
    scripts = [script.text for script in page.all("script") if "type" not in script.attributes]
    (packed,) = page.all("script", type="text/plain")
    # what a script unpacks is run by its hash, too: it is the published bundle, bit by bit
    assert gzip.decompress(base64.b64decode(packed.text)).decode() == bundle.script()
    digests = [hashlib.sha256(text.encode()).digest() for text in (*scripts, bundle.script())]
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    (policy,) = [m.attributes["content"] for m in page.all("meta") if "http-equiv" in m.attributes]
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    assert len(scripts) == 6


def test_no_name_acts_as_markup(tmp_path):
    clean = make_scores()
    frame = clean.frame.rename(columns={"knn": EVIL})
    frame["set"] = frame["set"].astype(str).replace({"held_out": EVIL, "unseen_fonts": EVIL + "2"})
    described = {EVIL if k == "knn" else k: v for k, v in clean.context.detectors.items()}
    described[EVIL] = described[EVIL].model_copy(update={"params": {EVIL: EVIL}})
    scores = ScoreTable(frame, {"detectors": described})
    renamed = {"held_out": EVIL, "unseen_fonts": EVIL + "2"}
    rows = [
        {**vars(m)}
        | {
            "set": renamed.get(m.set, m.set),
            "detector": EVIL if m.detector == "knn" else m.detector,
            "protocol": EVIL if m.protocol == "standard" else m.protocol,
            "interval": EVIL,
        }
        for m in make_result().measurements
    ]
    record = make_record(
        skipped={EVIL: EVIL},
        notes=[EVIL],
        transform=EVIL,
        head=EVIL,
        model=EVIL,
        environment={EVIL: EVIL},
        protocols=[EVIL, "full_spectrum"],
        costs={EVIL: EVIL},
        device=EVIL,
    )
    result = Result(record, Measurements.from_rows(rows), scores)
    page = read(write_report(result, tmp_path / "report.html", title=EVIL).read_text(encoding="utf-8"))
    assert len([script for script in page.all("script") if "type" not in script.attributes]) == 6
    assert page.all("img") == []
    assert not any(name.startswith("on") for element in page.every() for name in element.attributes)
    assert page.all("title")[0].text == page.all("h1")[0].text == EVIL
    assert EVIL in [li.text for li in page.all("li")]
    assert EVIL in [th.text for th in page.all("th", scope="row")]
    assert EVIL in [th.text for th in page.all("th", scope="col")]
    plots = [json.loads(script.text) for script in page.all("script", type="application/json")]
    told = [trace.get("name", "") for figure in plots for trace in figure["data"]]
    # plotly reads a little HTML in labels, so names are escaped once more there
    assert any(name.startswith(html.escape(EVIL, quote=False)) for name in told)
    assert not any("<script" in name or "<img" in name for name in told)


def test_a_result_without_shifted_sets_or_costs_or_notes(tmp_path):
    full = make_scores()
    bare = {name: {"params": {}, "tuning": "default"} for name in full.detectors}
    scores = ScoreTable(full.frame[full.frame["role"] != "csid"], {"detectors": bare})
    numbers = make_result().measurements.filter(protocol="standard")
    record = make_record(protocols=["standard"], skipped={}, notes=[], forward_images=None)
    text = write_report(Result(record, numbers, scores), tmp_path / "report.html").read_text(encoding="utf-8")
    page = read(text)
    assert {section.attributes.get("id") for section in page.all("section")} == {
        "verdict",
        "scorecard",
        "standard-1",
        "plots",
        "costs",
        "provenance",
    }
    assert "not counted" in page.text
    figures = [figure.attributes["data-figure"] for figure in page.all("div", **{"class": "plot"})]
    # a ROC for each set, one of costs, two of disagreement, and a histogram and a ROC for each detector
    assert len(figures) == len(set(figures)) == 4 + 1 + 2 + 8 * 2
    assert {f"figure-{name}" for name in figures} == {
        script.attributes["id"] for script in page.all("script", type="application/json")
    }

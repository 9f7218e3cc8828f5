"""``oodscope report``: one page over folders of runs, and one line where something is wrong."""

import pytest

from tests.report.reading import read
from tests.report.whole_runs import attack_of, crossval, judged
from tests.results.factory import make_result


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    judged().save(home / "evaluations" / "one")
    attack_of(judged()).save(home / "attacks" / "found")
    crossval().save(home / "dcv")
    return home


@pytest.mark.slow
def test_it_writes_one_page_over_all_runs_below(oodscope, home, tmp_path):
    outcome = oodscope("report", home, "--output", tmp_path / "all" / "page.html", "--title", "Mine & yours")
    assert outcome.status == 0, outcome
    assert outcome.out.strip() == f"report: {tmp_path / 'all' / 'page.html'}"
    page = read((tmp_path / "all" / "page.html").read_text(encoding="utf-8"))
    assert page.all("h1")[0].text == page.all("title")[0].text == "Mine & yours"
    cards = [line.attributes["data-protocol"] for line in page.all("tr") if "data-protocol" in line.attributes]
    assert list(dict.fromkeys(cards)) == [*("standard", "full_spectrum", "human_centric", "crossval", "attack")]


@pytest.mark.slow
def test_several_folders_are_named_one_by_one(oodscope, home, tmp_path):
    other = make_result().save(tmp_path / "other")
    outcome = oodscope("report", home / "evaluations", other)
    assert outcome.status == 0, outcome
    page = read((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.all("h1")[0].text == "glyphs: small_cnn"
    ids = {element.attributes.get("id") for element in page.every()}
    assert {"standard-1", "standard-2"} <= ids


@pytest.mark.parametrize(
    ("places", "words", "status"),
    [
        (["nowhere"], "nowhere: no such folder", 1),
        (["."], ".: no finished run here, nor in any folder below", 1),
        (["{home}", "{home}/dcv"], "dcv: the same run is named twice", 1),
        (["{home}", "--output", "report.pdf"], "report.pdf: the report is an HTML file", 2),
    ],
)
def test_what_is_wrong_is_said_in_one_line(oodscope, home, places, words, status):
    outcome = oodscope("report", *(place.format(home=home) for place in places))
    assert outcome.status == status, outcome
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("oodscope: ")]
    assert words in line and "Traceback" not in outcome.err

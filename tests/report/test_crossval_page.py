"""The page, tables and figures of a study show what was computed, and nothing acts as markup."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from oodscope.report.page.crossval import write_crossval
from oodscope.report.page.templating import own_scripts
from oodscope.runs.crossval.run import CrossValidationTable
from oodscope.runs.crossval.sheets import ALPHAS, starred
from oodscope.runs.crossval.study import study_metric
from tests.report.reading import read
from tests.runs.crossval.crossval_factory import make_table

EVIL = """<script>alert("1")</script>'"><img src=x onerror=alert(2)>{{ 7*7 }}"""


@pytest.fixture(scope="module")
def table():
    return make_table(metrics=("aupr_out", "auroc"), hold_outs=30)


@pytest.fixture(scope="module")
def study(table):
    return study_metric(table, "auroc")


@pytest.fixture(scope="module")
def written(table, tmp_path_factory):
    return write_crossval(table, tmp_path_factory.mktemp("crossval"))


@pytest.fixture(scope="module")
def page(written):
    return read(written[0].read_text(encoding="utf-8"))


def sheet(written, name):
    with open(written[0].parent / "tables" / f"{name}.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    return rows[0], rows[1:]


def test_every_table_of_the_paper_is_there_in_every_format(written):
    folder = written[0].parent
    names = {str(path.relative_to(folder)) for path in written}
    assert all(path.is_file() and path.stat().st_size for path in written)
    stems = [f"tables/rates-{alpha:g}" for alpha in ALPHAS] + ["tables/against-truth"]
    for metric in ("auroc", "aupr_out"):
        stems += [f"tables/{metric}/counts-{alpha:g}" for alpha in ALPHAS]
        stems += [f"tables/{metric}/{name}" for name in ("truth", "p-values", "p-values-holm", "p-values-bh", "wins")]
        stems += [f"tables/{metric}/{name}" for name in ("truth-standard-errors", "cross-validated", "against-truth-p")]
        assert {f"tables/{metric}/{name}.csv" for name in ("cells", "fold-tests", "variance")} <= names
        assert {f"figures/{name}-{metric}.svg" for name in ("ranks", "agreement", "convergence", "variance")} <= names
    assert {f"{stem}.{ending}" for stem in stems for ending in ("csv", "md", "tex")} <= names


def test_table_4_is_the_truth(written, study):
    head, rows = sheet(written, "auroc/truth")
    assert head == ["training", "ID", "OOD", *study.detectors]
    assert rows[0][:3] == ["plain", "cifar10", "cifar100"] and rows[-1][0] == "outlier_exposure"
    np.testing.assert_array_equal(np.array([row[3:] for row in rows], dtype=float).T, study.truth)


def test_tables_5_and_6_are_the_tests(written, study):
    head, rows = sheet(written, "auroc/p-values")
    counted = sheet(written, "auroc/counts-0.05")[1]
    corrected = sheet(written, "auroc/p-values-holm")[1]
    assert head == ["detector", *study.detectors]
    for a, row in enumerate(rows):
        for b in range(8):
            if a == b:
                assert row[b + 1] == counted[a][b + 1] == ""
                continue
            assert float(row[b + 1]) == study.truth_tests.p[a, b]
            assert float(corrected[a][b + 1]) == study.truth_tests.holm()[a, b]
            sign = 1 if study.truth_tests.p[a, b] <= 0.05 else -1
            assert int(counted[a][b + 1]) == sign * study.counts(0.05)[a, b]


def bold(written, name):
    """Which entries of a Markdown table are bold."""
    text = (written[0].parent / "tables" / f"{name}.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")][2:]
    return np.array([[entry.startswith("**") for entry in line] for line in lines])


def test_bold_is_the_best_of_a_row_and_what_survives_holm(written, study):
    expected = study.truth.max(axis=0)[:, None] == study.truth.T
    np.testing.assert_array_equal(bold(written, "auroc/truth")[:, 3:], expected)
    survives = study.truth_tests.holm() <= 0.05
    assert (survives != (study.truth_tests.p <= 0.05)).any()
    np.testing.assert_array_equal(bold(written, "auroc/p-values")[:, 1:], survives)
    np.testing.assert_array_equal(bold(written, "auroc/counts-0.1")[:, 1:], study.truth_tests.p <= 0.1)


def test_tables_7_to_9_are_the_rates(written, study):
    for alpha in ALPHAS:
        _, rows = sheet(written, f"rates-{alpha:g}")
        # the metrics of the paper come first: all detectors, then those that are not far from the others
        rest = study.only([name for name in study.detectors if name not in ("mds", "klm")])
        for row, words, each in zip(rows[:2], ("all 8", "without klm, mds"), (study, rest), strict=True):
            rates, ways = each.rates(alpha), each.directions(alpha)
            assert row[:3] == ["AUROC", "after the ReLU", words]
            assert (float(row[3]), row[4]) == (rates.hits.value, f"{rates.hits.total}/{rates.hits.pairs}")
            assert (float(row[5]), row[6]) == (ways.same / rates.hits.pairs, f"{ways.same}/{rates.hits.pairs}")
            assert row[8] == f"{rates.errors.total}/{rates.errors.pairs}"
            assert int(row[9]) == ways.opposite
    _, rows = sheet(written, "error-ratio")
    assert float(rows[0][3]) == study.error_ratio().value
    _, rows = sheet(written, "against-truth")
    flagged = re.findall(r"(\d+) \(([^)]*)\)", rows[0][1])
    expected = {
        (str(study.numbers[r]), study.detectors[d]) for r, d in zip(*np.nonzero(study.against_truth <= ALPHAS[0]))
    }
    assert {(number, name) for number, names in flagged for name in names.split(", ")} == expected


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.01, "0.0100***"),
        (0.0141, "0.0141**"),
        (0.05, "0.0500**"),
        (0.0501, "0.0501*"),
        (0.1, "0.1000*"),
        (0.1055, "0.1055"),
        (1e-6, "<0.0001***"),
    ],
)
def test_stars_are_those_of_the_legend(p, text):
    assert starred(p) == text


def test_the_page_shows_the_tables_and_asks_for_nothing(written, page, study):
    text = written[0].read_text(encoding="utf-8")
    assert not re.search(r"https?:|url\(|@import", text) and written[0].stat().st_size < 1_500_000
    for element in page.every():
        assert element.tag not in {"link", "img", "iframe"} and "src" not in element.attributes
    run = [script.text for script in page.all("script") if "type" not in script.attributes]
    assert run == [*own_scripts("theme.js", "scroll.js", "unpack.js", "plots.js").values()]
    ids = {element.attributes.get("id") for element in page.every()}
    assert all(link.attributes["href"].removeprefix("#") in ids for link in page.all("a"))
    shown = [float(cell.attributes["data-value"]) for cell in page.all("td") if "data-value" in cell.attributes]
    assert set(study.truth.ravel().tolist()) <= set(shown)
    # the paper prints one of these two metrics; all detectors, and without two of them
    card, _ = page.all("div", **{"class": "card"})
    found = study.directions(0.05).same / study.rates(0.05).hits.pairs
    assert f"{found:.2f} of 10 find a true difference and its winner" in card.text
    assert len(page.all("figure")) == 12  # of each metric: folds, estimates, ranks, agreement, convergence, variance
    (verdict,) = page.all("p", **{"class": "verdict"})
    best = study.detectors[int(study.cross_validated.mean(axis=1).argmax())]
    assert verdict.text.strip().startswith(f"{best} leads: ") and "may be best" in verdict.text
    assert "Weakest: " in verdict.text and "0.69" not in verdict.text
    assert not page.all("svg")


def test_small_studies_say_what_they_are_too_small_for(tmp_path):
    two = make_table(detectors=("msp", "knn"), metrics=("auroc",), pairs=1, repetitions=1, folds=2, hold_outs=0)
    page = read(write_crossval(two, tmp_path / "two")[0].read_text(encoding="utf-8"))
    assert "No hold-outs were made" in page.text and "tests over cells need at least 8 cells" in page.text
    one = make_table(detectors=("msp",), metrics=("auroc",), pairs=1, repetitions=0, hold_outs=1, crossed=(0, 0, 0))
    page = read(write_crossval(one, tmp_path / "one")[0].read_text(encoding="utf-8"))
    assert "No cross-validations were made" in page.text and len(page.all("figure")) == 1
    single = make_table(detectors=("msp",), metrics=("auroc",), pairs=1, repetitions=0, hold_outs=3, crossed=(2, 2, 1))
    page = read(write_crossval(single, tmp_path / "single")[0].read_text(encoding="utf-8"))
    assert "crossed design is too small" in page.text and len(page.all("figure")) == 2


def test_no_name_acts_as_markup(tmp_path):
    table = make_table(detectors=("msp", "knn", "ebo"), metrics=("auroc",), pairs=4, repetitions=2, hold_outs=3)
    frame = table.frame.astype({"detector": str, "pair": str, "metric": str})
    frame["detector"] = frame["detector"].replace("knn", EVIL)
    frame["pair"] = frame["pair"].replace("cifar10/dtd", EVIL)
    evil = CrossValidationTable(frame, {EVIL: EVIL})
    text = write_crossval(evil, tmp_path)[0].read_text(encoding="utf-8")
    page = read(text)
    run = [script for script in page.all("script") if "type" not in script.attributes]
    assert len(run) == 4 and not page.all("img") and EVIL in page.text
    for path in Path(tmp_path).rglob("*.svg"):
        assert "<script>alert" not in path.read_text(encoding="utf-8")


def test_a_value_and_its_interval_have_one_unit(written, table):
    """A cell read ``0.0383 [1.0-7.1]``: a share, and an interval in percent."""
    for metric in ("auroc", "aupr_out"):
        text = (written[0].parent / "tables" / metric / "cross-validated.md").read_text(encoding="utf-8")
        cells = re.findall(r"([\d.]+)\*{0,2} \[([\d.]+), ([\d.]+)\]", text)
        assert cells
        for value, low, high in cells:
            assert float(low) - 0.06 <= float(value) <= float(high) + 0.06

"""The page of generated sets: numbers as measured, names escaped, pictures inside."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import oodscope as oods
from oodscope.report.generated_figures import confusion_matrix, information_histogram, radar, reliability_diagram
from oodscope.report.page.generated import render
from oodscope.runs.generated.claims import claims
from oodscope.runs.generated.ranks import rank_agreements
from oodscope.runs.generated.run import GeneratedStudy
from tests.report.reading import read
from tests.runs.generated.generated_world import EVIL, NEAR, SHIFTED, study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def done():
    return study()


def test_it_needs_nothing_but_a_browser(done, tmp_path):
    page = oods.write_generated_study(done, tmp_path).read_text()
    read(page)  # every element is closed
    assert EVIL not in page
    assert "&lt;b onclick=" in page
    assert "http" not in re.sub(r"Content-Security-Policy|http-equiv", "", page)
    shown = page[: page.index('id="provenance"')]  # records tell of preprocessing in words of their own
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", shown))
    assert {path.name for path in tmp_path.iterdir()} == {
        *("report.html", "detectors.csv", "detectors.md", "calibration.csv", "calibration.md")
    }
    pictures = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", page)
    assert len(pictures) == 30 + 30 + 2 * 30  # test, near, and shifted images beside their originals
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(pictures[30]))))
    assert (shown == done.samples[NEAR].images[0]).all()


def test_the_numbers_are_those_measured(done):
    page = render(done)
    for metric in ("auroc", "aupr_out", "aupr_in"):
        for (_, _, name), row in done.separation(metric).items():
            if name in (NEAR, *done.real):
                assert f'data-value="{row.value}"' in page
    for metric in ("ece15", "adaptive_ece15", "classwise_ece15"):
        for row in done.calibration(metric).values():
            assert f'data-value="{row.value}"' in page
    for each in done.sanity.sets:
        assert f'data-value="{each.frechet}"' in page
        if each.perceptual is not None:
            assert f'data-value="{each.perceptual}"' in page
    for each in rank_agreements(done):
        assert f'data-value="{each.tau}"' in page
    root = read(page)
    (section,) = root.all("section", id="claims")
    said = [[cell.text for cell in row.all("td")] for row in section.all("tr")[1:]]
    assert said == [[each.text, "yes" if each.holds else "no", each.evidence] for each in claims(done)]
    (confusion,) = root.all("section", id="confusion")
    assert len(confusion.all("figure")) == 3
    (disagreement,) = root.all("section", id="information")
    assert len(disagreement.all("figure")) == 2 * 4  # near, two real sets and shifted, under judges and makers
    assert page.count("had a part in making the generated images") >= 12


def test_what_is_not_known_is_not_shown(done):
    bare = [
        each.model_copy(update={"frechet": None, "perceptual": None, "made_information": (), "kept": None})
        for each in done.sanity.sets
        if each.name != SHIFTED
    ]
    sanity = done.sanity.model_copy(update={"sets": tuple(bare), "generated": (NEAR,), "makers": {}, "window": None})
    root = read(render(GeneratedStudy(done.results[:1], sanity, {})))
    sections = {each.attributes["id"] for each in root.all("section")}
    assert {"distance", "perceptual"} & sections == set()
    assert {"claims", "confusion", "detectors", "calibration", "validity"} <= sections


def test_a_confusion_matrix_is_read_row_by_row():
    figure = confusion_matrix([[3, 1], [0, 0]], ["cat", EVIL], "x")
    assert "cat taken for cat: 75.0%" in figure
    assert "cat taken for &lt;b" in figure
    assert figure.count("<rect") == 2  # nothing came from the second class
    many = confusion_matrix(np.eye(100, dtype=int).tolist(), [str(n) for n in range(100)], "x")
    assert many.count("<rect") == 100
    assert "taken for" not in many


def test_a_reliability_diagram_of_empty_bins():
    bins = {"count": [0, 4], "accuracy": [0.0, 0.5], "confidence": [0.0, 0.9]}
    assert "nan" not in reliability_diagram(bins, "x", "c0")


def test_the_window_is_drawn_where_it_is():
    edges = np.linspace(0, 1, 5)
    figure = information_histogram([4, 0, 0, 0], [1, 1, 1, 1], edges, (0.25, 0.75), "x", "c0")
    left, width = re.search(r'<rect class="window" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', figure).groups()
    assert float(left) == pytest.approx(8 + 0.25 * 220)
    assert float(width) == pytest.approx(0.5 * 220)
    assert "kept: 0.25 to 0.75" in figure


def test_a_radar_shows_order_not_height():
    axes, styles = ["a", "b", "c"], {"x": "c0", "y": "c1"}
    low, high = np.array([0.5, 0.6, 0.7]), np.array([0.9, 0.95, 1.0])
    lines = re.findall(r'points="([^"]+)"', radar({"x": low, "y": high}, axes, styles, "t"))
    assert lines[0] == lines[1]
    flat = radar({"x": np.full(3, 0.8)}, axes, styles, "t")
    assert "nan" not in flat


def test_a_study_of_one_network_and_few_detectors_has_a_page(done):
    one = GeneratedStudy(done.results[:1], done.sanity, done.samples)
    root = read(render(one))
    (validity,) = root.all("section", id="validity")
    assert "all networks" not in [cell.text for cell in validity.all("th")]
    rows = [row for row in done.results[0].measurements if row.detector in ("", "msp")]
    single = replace(done.results[0], measurements=type(done.results[0].measurements)(rows))
    root = read(render(GeneratedStudy((single,), done.sanity, done.samples)))
    assert root.all("section", id="validity") == []

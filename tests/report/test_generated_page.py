"""The page of generated sets: numbers as measured, names escaped, pictures inside."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from oodscope.report.page.generated import render, write_generated_study
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
    page = write_generated_study(done, tmp_path).read_text()
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
    assert said == [[each.text, each.answer, each.evidence] for each in claims(done)]
    (confusion,) = root.all("section", id="confusion")
    assert len(confusion.all("figure")) == 3
    (disagreement,) = root.all("section", id="information")
    assert len(disagreement.all("figure")) == 2  # under judges and makers
    # in three tables of detectors and three of calibration, two of three networks are marked
    assert sum(cell.text == "↻" for cell in root.all("td")) == 3 * 12 + 3 * 2
    assert page.count("↻: the network had a part in making the generated images") == 6


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


def test_a_study_of_one_network_and_few_detectors_has_a_page(done):
    one = GeneratedStudy(done.results[:1], done.sanity, done.samples)
    root = read(render(one))
    (validity,) = root.all("section", id="validity")
    assert "all networks" not in [cell.text for cell in validity.all("th")]
    rows = [row for row in done.results[0].measurements if row.detector in ("", "msp")]
    single = replace(done.results[0], measurements=type(done.results[0].measurements)(rows))
    root = read(render(GeneratedStudy((single,), done.sanity, done.samples)))
    assert root.all("section", id="validity") == []

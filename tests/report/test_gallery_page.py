"""A gallery on a page: each picture once, shown wherever it is meant, with numbers that the scores hold."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from oodscope.report.page.gallery import hardest_walls, picture_rules, render_gallery
from oodscope.results.gallery import Gallery, hardest
from oodscope.results.scoretable import ScoreTable
from tests.report.reading import read
from tests.results.factory import make_result

EVIL = '"><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def result():
    made = make_result()
    frame = made.scores.frame
    chosen = {
        int(row) for name, role in (("held_out", "near"), ("id_test", "id_test")) for row in worst(made, role, name)
    }
    keys = tuple((str(frame["set"][row]), str(frame["sample_id"][row])) for row in sorted(chosen))
    rng = np.random.default_rng(0)
    pictures = tuple(rng.integers(0, 256, (30, 40 + 24 * (n % 2), 3)).astype(np.uint8) for n in range(len(keys)))
    names = (EVIL, *map(str, range(1, 10)))
    scores = ScoreTable(
        frame, {**made.scores.context.plain(), "classes": {"held_out": [f"own {n}" for n in range(10)]}}
    )
    return replace(made, scores=scores, gallery=Gallery(keys, pictures, names))


def worst(made, role, name):
    return np.unique(np.concatenate([hardest(made.scores, each, role, name) for each in made.scores.detectors]))


def test_each_picture_is_there_once_and_whole(result):
    rules = picture_rules(result.gallery)
    found = re.findall(r"\.seen(\d+)\{background-image:url\(data:image/png;base64,([A-Za-z0-9+/=]+)\)\}", rules)
    assert [int(number) for number, _ in found] == list(range(len(result.gallery)))
    for (_, content), picture in zip(found, result.gallery.pictures):
        assert (np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))) == picture).all()
    pixelated = rules.splitlines()[-1]
    assert pixelated.endswith("{image-rendering:pixelated}")
    assert re.findall(r"\.seen(\d+)", pixelated) == [str(n) for n in range(0, len(found), 2)]  # 40 px, not 64


def test_walls_show_the_worst_first_with_their_numbers(result):
    page = read(str(render_gallery(result)))
    walls = page.all("details")
    assert [wall.all("summary")[0].text.split()[0] for wall in walls] == ["held_out", "id_test"]
    frame = result.scores.frame
    for wall, (role, name) in zip(walls, (("near", "held_out"), ("id_test", "id_test"))):
        rows = [each for each in wall.all("div") if each.attributes.get("class") == "thumbnails"]
        assert [row.all("b")[0].text for row in rows] == result.scores.detectors
        for row, detector in zip(rows, result.scores.detectors):
            expected = hardest(result.scores, detector, role, name)
            shown = row.all("i")
            assert [float(each.attributes["data-value"]) for each in shown] == frame[detector][expected].tolist()
            places = [result.gallery.keys.index((name, frame["sample_id"][n])) for n in expected]
            assert [each.attributes["class"] for each in shown] == [f"seen seen{place}" for place in places]


def test_what_is_said_of_an_image(result):
    (wall, _) = hardest_walls(result, ["vim", "mds"])
    (_, (thumbnail, *_)) = wall.rows[0]
    scores = result.scores
    row = int(hardest(scores, "vim", "near", "held_out")[0])
    known = scores.scores("vim", role="id_test")
    assert thumbnail.share == sum(value > thumbnail.score for value in known) / len(known)
    assert thumbnail.own == f"own {scores.frame['own_class'][row]}"
    assert thumbnail.taken_for == result.gallery.class_names[scores.frame["prediction"][row]]
    also = row in hardest(scores, "mds", "near", "held_out")
    assert thumbnail.fooled == 1 + also
    strangest = hardest_walls(result)[1].rows[0][1][0]
    known = scores.scores("msp", role="id_test")
    assert strangest.share == sum(value < strangest.score for value in known) / len(known)
    assert strangest.own == ""


def test_hostile_names_stay_text(result):
    page = str(render_gallery(result))
    assert EVIL not in page
    assert "onerror=alert(1)" in page  # as text
    assert not read(page).all("img")


def test_without_pictures_there_is_nothing(result):
    assert render_gallery(replace(result, gallery=None)) == ""
    assert picture_rules(None) == ""
    assert render_gallery(replace(result, gallery=Gallery((), ()))) == ""
    assert picture_rules(Gallery((), ())) == ""

"""An evaluation keeps small pictures of exactly the images that its detectors get most wrong."""

import numpy as np
import pytest

import oodscope as oods
from oodscope.base.errors import DataError
from oodscope.results.scoretable import ScoreTable
from oodscope.runs.evaluation.picturing import picture_hardest
from tests.tiny import benchmark, classifier


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    bench = benchmark()
    store = oods.ActivationStore(tmp_path_factory.mktemp("store"))
    return bench, oods.evaluate(classifier(), bench, ["msp", "ebo"], store=store)


def expected(result, count, detectors=("msp", "ebo")):
    """Keys of the worst images of each set and detector, by sorting plain lists."""
    wanted = set()
    for name, role in {(row.set, row.role) for row in result.scores.frame.itertuples()}:
        own = result.scores.frame[result.scores.frame["set"] == name]
        for detector in detectors:
            sign = 1 if role in ("near", "far") else -1
            order = sorted(zip(sign * own[detector], range(len(own)), own["sample_id"]))
            wanted |= {(name, sample) for _, _, sample in order[:count]}
    return wanted


def shown(result):
    """Six images of each set, evenly spread over it."""
    frame = result.scores.frame
    wanted = set()
    for name in ("static", "snow", "rain", "id_test", "dim"):
        samples = frame[frame["set"] == name]["sample_id"].tolist()
        wanted |= {(name, samples[round(step * (len(samples) - 1) / 5)]) for step in range(6)}
    return wanted


def test_the_gallery_holds_the_worst_of_every_set_and_detector(judged):
    bench, result = judged
    assert set(result.gallery.keys) == expected(result, 8) | shown(result)
    assert result.gallery.class_names == bench.class_names
    assert {name for name, _ in result.gallery.keys} == {"static", "snow", "rain", "id_test", "dim"}


def test_pictures_are_the_pixels_of_their_samples(judged):
    bench, result = judged
    sets = {images.name: images for _, images in bench.members()}
    for (name, sample), picture in zip(result.gallery.keys, result.gallery.pictures):
        row = sets[name].sample_ids().index(sample)
        assert (picture == sets[name].images([row])[0]).all()


def test_with_little_room_everyone_has_the_worst_first(judged):
    bench, result = judged
    size = 8 * 8 * 3
    first = expected(result, 1)
    gallery = picture_hardest(bench, result.scores, most_bytes=size * len(first) + 1)
    assert set(gallery.keys) == first
    assert len(picture_hardest(bench, result.scores, most_bytes=size * 3)) == 3
    assert len(picture_hardest(bench, result.scores, most_bytes=size - 1)) == 0


def test_an_image_that_is_hard_for_several_is_read_once(judged, monkeypatch):
    bench, result = judged
    twice = ScoreTable(
        result.scores.frame.assign(ebo=result.scores.frame["msp"]), {"detectors": {"msp": {}, "ebo": {}}}
    )
    read, places = oods.ImageSet.images, []
    monkeypatch.setattr(
        oods.ImageSet, "images", lambda self, rows: [places.append((self.name, *rows)), read(self, rows)][1]
    )
    gallery = picture_hardest(bench, twice)
    assert len(gallery) == len(places) == len(set(places)) == len(expected(result, 8, ("msp",)) | shown(result))


def test_large_and_grey_images_become_small_and_coloured(judged):
    _, result = judged
    rng = np.random.default_rng(0)
    large = oods.ImageSet.from_arrays("rain", rng.integers(0, 256, (30, 256, 128)).astype(np.uint8))
    gallery = picture_hardest(benchmark(far=(large,)), result.scores)
    shapes = {picture.shape for key, picture in zip(gallery.keys, gallery.pictures) if key[0] == "rain"}
    assert shapes == {(64, 32, 3)}


def test_an_image_that_has_gone_costs_its_picture_only(judged, monkeypatch):
    bench, result = judged
    read = oods.ImageSet.images

    def gone(self, rows):
        if self.name == "rain":
            raise DataError("rain: no such file")
        return read(self, rows)

    monkeypatch.setattr(oods.ImageSet, "images", gone)
    gallery = picture_hardest(bench, result.scores)
    assert set(gallery.keys) == {key for key in expected(result, 8) | shown(result) if key[0] != "rain"}


def test_it_survives_the_folder(judged, tmp_path):
    _, result = judged
    loaded = oods.Result.load(result.save(tmp_path / "run"))
    assert loaded.gallery.keys == result.gallery.keys

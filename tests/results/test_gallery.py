"""Pictures of the hardest images: the right ones, whole, and optional."""

import json
from dataclasses import replace

import numpy as np
import pytest

from oodscope.base.errors import DataError
from oodscope.results.gallery import Gallery, hardest, shown_sets
from oodscope.runs.evaluation.run import Result
from tests.results.factory import make_result, make_scores


def make_gallery(count=5):
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (8 + n, 64 - n, 3)).astype(np.uint8) for n in range(count)]
    return Gallery(tuple(("held_out", f"held_out/{n:05d}.png") for n in range(count)), tuple(pictures), ("ä", "<b>"))


@pytest.fixture
def folder(tmp_path):
    return replace(make_result(), gallery=make_gallery()).save(tmp_path / "run")


def test_what_is_saved_is_loaded(folder):
    before, after = make_gallery(), Result.load(folder).gallery
    assert after.keys == before.keys
    assert after.class_names == before.class_names
    for mine, theirs in zip(before.pictures, after.pictures):
        assert (mine == theirs).all()
    assert after.places["held_out", "held_out/00003.png"] == 3


def test_a_result_without_one_is_as_it_was(tmp_path):
    folder = make_result().save(tmp_path / "run")
    assert not (folder / "gallery.safetensors").exists()
    assert set(json.loads((folder / "run.json").read_text())["sha256"]) == {"measurements.parquet", "scores.parquet"}
    assert Result.load(folder).gallery is None


def test_a_stray_file_is_no_gallery(tmp_path):
    folder = make_result().save(tmp_path / "run")
    make_gallery().save(folder / "gallery.safetensors")
    assert Result.load(folder).gallery is None


def test_a_file_lost_or_changed_afterwards_is_noticed(folder):
    path = folder / "gallery.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="gallery.safetensors: not the file saved"):
        Result.load(folder)
    path.unlink()
    with pytest.raises(DataError, match="gallery.safetensors is missing"):
        Result.load(folder)


@pytest.mark.parametrize("content", [b"", b"nonsense", (8).to_bytes(8, "little") + b'{"a":{}}'])
def test_another_file_is_an_error_for_people(tmp_path, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match="x.safetensors: not a gallery"):
        Gallery.load(path)


@pytest.mark.parametrize(
    ("keys", "shape", "dtype"),
    [
        ([("a", "1"), ("a", "1")], (4, 4, 3), np.uint8),
        ([("a", "1")], (4, 4, 3), np.uint8),
        ([("a", "1"), ("a", "2")], (65, 4, 3), np.uint8),
        ([("a", "1"), ("a", "2")], (4, 4, 1), np.uint8),
        ([("a", "1"), ("a", "2")], (4, 4), np.uint8),
        ([("a", "1"), ("a", "2")], (4, 4, 3), np.float32),
    ],
)
def test_what_is_no_gallery_is_refused(keys, shape, dtype):
    with pytest.raises(DataError):
        Gallery(tuple(keys), (np.zeros(shape, dtype), np.zeros(shape, dtype)))


@pytest.mark.parametrize("detector", ["msp", "mds"])
def test_the_hardest_are_found_by_a_slow_search(detector):
    scores = make_scores()
    assert [name for _, name in shown_sets(scores)] == [
        *("held_out", "photographs", "digits", "textures", "id_test", "unseen_fonts", "corrupted")
    ]
    for role, name in shown_sets(scores):
        rows = enumerate(zip(scores.frame["set"], scores.frame[detector]))
        left = [(value, row) for row, (own, value) in rows if own == name]
        expected = []
        for _ in range(3):
            worst = left[0]
            for each in left:
                if (each[0] < worst[0]) if role in ("near", "far") else (each[0] > worst[0]):
                    worst = each
            left.remove(worst)
            expected.append(worst[1])
        assert hardest(scores, detector, role, name, 3).tolist() == expected


@pytest.mark.parametrize("levels", [1, 3])
def test_equal_scores_keep_the_order_of_the_rows(levels):
    scores = make_scores()
    scores.frame["msp"] = np.random.default_rng(0).integers(0, levels, len(scores)).astype(float)
    for role, name, sign in (("far", "digits", 1), ("id_test", "id_test", -1)):
        rows = [row for row, own in enumerate(scores.frame["set"]) if own == name]
        expected = sorted(rows, key=lambda row: sign * scores.frame["msp"][row])  # Python's sort is stable
        assert hardest(scores, "msp", role, name, 50).tolist() == expected[:50]

"""The cache: what is listed is there, damage is found, and what goes is what nobody has used."""

import os
import time

import pytest

from oodscope.activations.store.store import ActivationStore
from oodscope.base.errors import UnknownNameError, UsageError
from oodscope.base.place import LocalPlace, RemotePlace
from oodscope.jobs.cache import Entry, chosen, damaged, entries, prunable, read_age, read_bytes
from tests.tiny import classifier, imageset

DAY = 86_400.0


def put(root, name, size, days=0.0):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


@pytest.fixture
def cache(tmp_path):
    """A cache with three trainings, a downloaded dataset and what kills and old versions left."""
    root = tmp_path / "cache"
    for name, size, days in (("old", 100, 100), ("recent", 200, 10), ("now", 400, 0)):
        put(root, f"training/{name}/model.safetensors", size, days)
    put(root, "data/cifar10/train.bin", 1000, 400)
    put(root, "glyphs/.digits.npz.1-ab.tmp", 7, 3)
    put(root, "activations/ab/cdef/features.bin", 30, 3)
    put(root, "filehashes.sqlite", 5, 50)
    return root


def names(found):
    return [f"{each.kind}/{each.name}" for each in found]


def test_entries_are_listed_with_sizes_and_the_least_recently_used_first(cache):
    assert names(entries(["training"])) == ["training/old", "training/recent", "training/now"]
    assert [each.bytes for each in entries(["training"])] == [100, 200, 400]
    assert sum(each.bytes for each in entries()) == 1742
    assert {each.kind for each in entries()} == {"training", "data", "glyphs", "activations", "other"}


def test_what_nothing_reads_again_goes_in_any_case(cache):
    going = {name: each.reason for each, name in zip(chosen(entries()), names(chosen(entries())))}
    assert going == {
        "glyphs/glyphs/.digits.npz.1-ab.tmp": "left by a killed process",
        "activations/ab/cdef": "of an older version",
    }


def test_age_decides(cache):
    every = prunable(entries(["training"]), ["training"])
    assert names(chosen(every, older=90 * DAY)) == ["training/old"]
    assert names(chosen(every, older=0.0)) == ["training/old", "training/recent"], "what is in use stays"


def test_size_decides_and_the_least_recently_used_goes_first(cache):
    every = entries(["training"])
    assert names(chosen(every, keep_under=600)) == ["training/old"]
    assert names(chosen(every, keep_under=599)) == ["training/old", "training/recent"]
    assert names(chosen(every, keep_under=0)) == ["training/old", "training/recent"]
    assert chosen(every, keep_under=700) == []


def test_downloads_go_only_by_name(cache):
    assert "data/cifar10" not in names(prunable(entries(), ()))
    assert names(prunable(entries(["data"]), ["data"])) == ["data/cifar10"]


def test_removing_removes_the_files_and_nothing_else(cache):
    (entry,) = chosen(entries(["training"]), older=90 * DAY)
    entry.remove()
    assert names(entries(["training"])) == ["training/recent", "training/now"]
    assert (cache / "data/cifar10/train.bin").is_file()


@pytest.mark.parametrize("text", ["", "90", "d", "-1d", "3 months"])
def test_a_bad_age_is_one_line(text):
    with pytest.raises(UsageError, match="--older"):
        read_age(text)


def test_ages_and_sizes_are_read():
    assert (read_age("90d"), read_age("12h"), read_age("2w")) == (90 * DAY, DAY / 2, 14 * DAY)
    assert (read_bytes("500G"), read_bytes("1.5T"), read_bytes("7")) == (5 * 10**11, 15 * 10**11, 7)
    with pytest.raises(UsageError, match="--keep-under"):
        read_bytes("many")


def test_an_unknown_kind_is_named(cache):
    with pytest.raises(UnknownNameError, match="Did you mean 'training'"):
        entries(["trainings"])


def test_damaged_activations_are_found_and_computed_anew(tmp_path):
    known, images = classifier(), imageset("a", 40, 0)
    ActivationStore().extract(known, images)
    every = entries(["activations"])
    assert len(every) == 1 and list(damaged(every)) == []
    path = next((tmp_path / "cache" / "activations").rglob("*.safetensors"))
    content = bytearray(path.read_bytes())
    content[-3] ^= 4
    path.write_bytes(content)
    ((entry, reason),) = damaged(entries())
    assert path.name in reason
    entry.remove()
    store = ActivationStore()
    store.extract(known, images)
    assert store.forwarded == 40 and list(damaged(entries())) == []


def test_a_shard_in_a_foreign_folder_is_damage(tmp_path):
    ActivationStore().extract(classifier(), imageset("a", 40, 0))
    path = next((tmp_path / "cache" / "activations").rglob("features/*.safetensors"))
    path.rename(path.parents[1] / "logits" / path.name)
    ((_, reason),) = damaged(entries())
    assert "belongs elsewhere" in reason


def test_a_training_whose_weights_rotted_is_found(tmp_path):
    folder = tmp_path / "cache" / "training" / "net"
    put(folder, "model.safetensors", 10)
    (folder / "training.json").write_text('{"weights_crc32": 1}')
    assert ["checksum" in reason for _, reason in damaged(entries())] == [True]
    (folder / "training.json").write_text("[]")
    assert ["not a finished training" in reason for _, reason in damaged(entries())] == [True]


def test_a_store_elsewhere_is_part_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OODSCOPE_ACTIVATIONS", str(tmp_path / "shared"))
    ActivationStore().extract(classifier(), imageset("a", 40, 0))
    (entry,) = entries(["activations"])
    assert isinstance(entry, Entry) and str(entry.place) == str(tmp_path / "shared") and entry.bytes > 0


def test_an_object_store_is_walked_like_a_folder(tmp_path):
    pytest.importorskip("fsspec")
    places = LocalPlace(tmp_path / "p"), RemotePlace(f"memory://{tmp_path.name}/p")
    for place in places:
        for name in ("a/b/c", "a/d"):
            place.create(name, b"12345")
    found = [[(each.name, each.bytes) for each in sorted(place.walk())] for place in places]
    assert found[0] == found[1] == [("a/b/c", 5), ("a/d", 5)]
    assert all(abs(each.used - time.time()) < 60 for place in places for each in place.walk())

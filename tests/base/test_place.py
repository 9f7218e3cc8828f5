"""Places: of many writers one wins, and readers see all of its bytes."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from oodscope.base.errors import StorageError
from oodscope.base.place import LocalPlace


@pytest.fixture(params=[True, False], ids=["links", "no links"])
def place(request, tmp_path, monkeypatch):
    if not request.param:

        def refused(*_, **__):
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refused)
    return LocalPlace(tmp_path / "p")


def test_the_first_stands(place):
    assert place.create("a/b", b"one")
    assert not place.create("a/b", b"two")
    assert place.read("a/b") == b"one"
    assert place.exists("a/b")
    assert place.local("a/b").read_bytes() == b"one"
    assert list(place.list("a")) == ["a/b"]
    assert [path.name for path in (place.root / "a").iterdir()] == ["b"]


def test_of_many_writers_one_wins(place):
    contents = [bytes([number]) * 50_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for turn in range(20):
            won = list(pool.map(lambda content, turn=turn: place.create(f"x/{turn}", content), contents))
            assert sum(won) == 1
            assert place.read(f"x/{turn}") == contents[won.index(True)]
    assert len(list(place.list("x"))) == len(list((place.root / "x").iterdir())) == 20


def test_replacing_and_removing(place):
    place.create("a", b"one")
    place.replace("a", b"two")
    assert place.read("a") == b"two"
    assert place.remove("a")
    assert place.remove("a")
    assert not place.exists("a")
    assert list(place.list("nowhere")) == []


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="a part of this path is a file"):
        LocalPlace(tmp_path / "file" / "folder").create("a", b"one")

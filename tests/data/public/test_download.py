"""Downloads: resumed, checked, and never half there under their name."""

import hashlib

import pytest

from oodscope.base.errors import DataError, StorageError
from oodscope.data.public.download import download
from tests.data.public.server import serve

DATA = bytes(range(256)) * 40
MD5 = hashlib.md5(DATA).hexdigest()


@pytest.fixture
def server():
    with serve({"a.zip": DATA}) as served:
        yield served


def test_a_whole_file(server, tmp_path):
    assert download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5).read_bytes() == DATA
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
    download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5)
    assert len(server.asked) == 1  # what is there and right is not asked for again
    (tmp_path / "a.zip").write_bytes(b"other")
    assert download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5).read_bytes() == DATA


def test_broken_off_and_resumed(server, tmp_path):
    target = tmp_path / "a.zip"
    server.break_after = 1000
    with pytest.raises(DataError, match=r"broke off after 1,000 bytes .*; run the same command again to go on"):
        download(f"{server.url}/a.zip", target, MD5)
    assert not target.exists()
    server.break_after = None
    download(f"{server.url}/a.zip", target, MD5)
    assert target.read_bytes() == DATA
    assert [wanted for _, wanted in server.asked] == [None, "bytes=1000-"]


def test_a_server_that_cannot_resume_sends_everything(server, tmp_path):
    server.ranges = False
    (tmp_path / "a.zip.part").write_bytes(DATA[:1000])
    download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5)
    assert (tmp_path / "a.zip").read_bytes() == DATA


def test_a_part_that_is_whole_already(server, tmp_path):
    (tmp_path / "a.zip.part").write_bytes(DATA)
    download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5)
    assert (tmp_path / "a.zip").read_bytes() == DATA


def test_a_part_longer_than_the_file_starts_anew(server, tmp_path):
    (tmp_path / "a.zip.part").write_bytes(DATA + b"more")
    download(f"{server.url}/a.zip", tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == DATA


def test_a_wrong_checksum_deletes_what_came(server, tmp_path):
    (tmp_path / "a.zip.part").write_bytes(b"x" * 1000)
    with pytest.raises(DataError, match=f"has the MD5 [0-9a-f]{{32}}, not {MD5}; it was deleted"):
        download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5)
    assert list(tmp_path.iterdir()) == []
    download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5)


@pytest.mark.parametrize(
    ("path", "message"), [("gone.zip", "the server says 404"), ("a.zip", "broke off after 0 bytes")]
)
def test_what_cannot_be_had_is_one_line(server, tmp_path, path, message):
    url = server.url if path == "gone.zip" else "http://127.0.0.1:9"
    with pytest.raises(DataError, match=message) as caught:
        download(f"{url}/{path}", tmp_path / path, MD5)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / path).exists()


def test_no_room_is_said_before_anything_is_written(server, tmp_path, monkeypatch):
    import shutil
    from types import SimpleNamespace

    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=len(DATA) - 1))
    with pytest.raises(StorageError, match="10,240 bytes are needed and 10,239 are free"):
        download(f"{server.url}/a.zip", tmp_path / "a.zip", MD5)
    assert list(tmp_path.iterdir()) == []

"""Archives of strangers: what is good arrives whole, what is hostile leaves no trace."""

import gzip
import io
import os
import tarfile
import zipfile

import pytest

from oodscope.base.errors import DataError, StorageError
from oodscope.data.public.unpack import Limits, unpack
from tests.data.public.miniature import pack

FILES = {"set/a/1.png": os.urandom(500), "set/a/2.png": os.urandom(300), "set/readme.txt": b"hello"}


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def archive(tmp_path):
    def write(name, data):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz"])
def test_everything_arrives(archive, tmp_path, name):
    target = tmp_path / "root"
    written = unpack(archive(name, pack(name, FILES)), target)
    assert tree(target) == FILES
    assert sorted(map(str, written)) == sorted(FILES)


def test_a_leading_folder_is_dropped_and_the_rest_left_out(archive, tmp_path):
    data = pack("x.zip", {**FILES, "junk/3.png": b"x"})
    unpack(archive("x.zip", data), tmp_path / "root", strip="set")
    assert sorted(tree(tmp_path / "root")) == ["a/1.png", "a/2.png", "readme.txt"]
    with pytest.raises(DataError, match="nothing in it under 'sets'"):
        unpack(tmp_path / "x.zip", tmp_path / "other", strip="sets")


def test_gz_alone_and_inside(archive, tmp_path):
    unpack(archive("digits-ubyte.gz", gzip.compress(b"digits")), tmp_path / "root")
    unpack(archive("x.zip", pack("x.zip", {"gzip/letters.gz": gzip.compress(b"abc")})), tmp_path / "root", strip="gzip")
    assert tree(tmp_path / "root") == {"digits-ubyte": b"digits", "letters": b"abc"}


def test_broken_files_in_place_are_replaced_and_others_left_alone(archive, tmp_path):
    target = tmp_path / "root"
    (target / "set" / "a").mkdir(parents=True)
    (target / "set" / "a" / "1.png").write_bytes(b"broken")
    (target / "set" / "mine.txt").write_bytes(b"mine")
    unpack(archive("x.tar", pack("x.tar", FILES)), target)
    assert tree(target) == {**FILES, "set/mine.txt": b"mine"}


def tar_with(*entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        good = tarfile.TarInfo("good.png")
        good.size = 4
        made.addfile(good, io.BytesIO(b"good"))
        for entry in entries:
            made.addfile(entry, io.BytesIO(b"x" * entry.size))
    return buffer.getvalue()


def entry(name, kind=tarfile.REGTYPE, link=""):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    made.size = 3 if kind == tarfile.REGTYPE else 0
    return made


def zip_link():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        link = zipfile.ZipInfo("link.png")
        link.external_attr = 0o120777 << 16
        made.writestr(link, "/etc/passwd")
    return buffer.getvalue()


def zip_twice():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made, pytest.warns(UserWarning):
        made.writestr("a.png", "1")
        made.writestr("a.png", "2")
    return buffer.getvalue()


def bomb():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("big.png", b"\0" * 20_000_000)
    return buffer.getvalue()


HOSTILE = {
    "up.tar": (tar_with(entry("../out.png")), "'../out.png' would leave the folder"),
    "deep.tar": (tar_with(entry("a/../../out.png")), "would leave the folder"),
    "up.zip": (pack("up.zip", {"a/../../out.png": b"x"}), "would leave the folder"),
    "backslash.zip": (pack("up.zip", {"..\\out.png": b"x"}), "would leave the folder"),
    "absolute.tar": (tar_with(entry("/tmp/out.png")), "would leave the folder"),
    "absolute.zip": (pack("a.zip", {"/out.png": b"x"}), "would leave the folder"),
    "drive.zip": (pack("a.zip", {"C:/out.png": b"x"}), "would leave the folder"),
    "symlink.tar": (tar_with(entry("l", tarfile.SYMTYPE, "/etc"), entry("l/out.png")), "'l' is a link or device"),
    "hardlink.tar": (tar_with(entry("l", tarfile.LNKTYPE, "../../x")), "is a link or device"),
    "device.tar": (tar_with(entry("null", tarfile.CHRTYPE)), "is a link or device"),
    "fifo.tar": (tar_with(entry("pipe", tarfile.FIFOTYPE)), "is a link or device"),
    "symlink.zip": (zip_link(), "'link.png' is a link or device"),
    "twice.tar": (tar_with(entry("good.png")), "two entries are called 'good.png'"),
    "twice-again.tar": (tar_with(entry("./good.png")), "two entries are called 'good.png'"),
    "twice.zip": (zip_twice(), "two entries are called 'a.png'"),
    "both.tar": (tar_with(entry("good.png/inside.png")), "'good.png/inside.png' is both a file and a folder"),
    "bomb.zip": (bomb(), "grows far beyond its size"),
    "bomb.gz": (gzip.compress(b"\0" * 20_000_000), "grows far beyond its size"),
    "nested.zip": (pack("n.zip", {"a.gz": gzip.compress(b"\0" * 20_000_000)}), "grows far beyond its size"),
    "cut.zip": (pack("c.zip", FILES)[:-30], "damaged archive"),
    "cut.tar.gz": (pack("c.tar.gz", FILES)[:600], "damaged archive"),
    "cut.gz": (gzip.compress(os.urandom(5000))[:-30], "damaged archive"),
    "empty.zip": (pack("e.zip", {}), "nothing in it"),
    "page.zip": (b"<html>Sign in to Google Drive</html>", "damaged archive"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused_whole(archive, tmp_path, name):
    data, message = HOSTILE[name]
    target = tmp_path / "deep" / "root"
    with pytest.raises(DataError, match=message) as caught:
        unpack(archive(name, data), target)
    assert "\n" not in str(caught.value)
    assert list(target.iterdir()) == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["deep", "root", name])


def test_too_many_entries(archive, tmp_path):
    path = archive("x.zip", pack("x.zip", FILES))
    unpack(path, tmp_path / "root", limits=Limits(entries=3))
    with pytest.raises(DataError, match="far more entries"):
        unpack(path, tmp_path / "other", limits=Limits(entries=2))


def test_no_room(archive, tmp_path, monkeypatch):
    import shutil
    from types import SimpleNamespace

    path = archive("x.zip", pack("x.zip", FILES))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=804))
    with pytest.raises(StorageError, match="no space to unpack"):
        unpack(path, tmp_path / "root")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=805))
    unpack(path, tmp_path / "root")


def test_a_folder_on_another_disk(archive, tmp_path, monkeypatch):
    import errno
    from pathlib import Path

    rename = Path.replace

    def one_disk_only(self, target):
        if ".unpacking" in str(self):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", one_disk_only)
    unpack(archive("x.tar", pack("x.tar", FILES)), tmp_path / "root")
    assert tree(tmp_path / "root") == FILES


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz"])
def test_progress_ends_where_the_archive_ends(archive, tmp_path, name):
    from contextlib import contextmanager

    seen = []

    class Watching:
        @contextmanager
        def stage(self, description, total):
            seen.append(total)
            yield lambda finished: seen.append(finished)

    path = archive(name, pack(name, {f"{number}.png": os.urandom(200_000) for number in range(5)}))
    unpack(path, tmp_path / "root", progress=Watching())
    assert min(seen) >= 0
    assert 0.9 * path.stat().st_size <= sum(seen[1:]) <= path.stat().st_size == seen[0]


def test_what_a_killed_process_left_is_cleared(archive, tmp_path):
    stale = tmp_path / "root" / ".unpacking-killed" / "set"
    stale.mkdir(parents=True)
    (stale / "1.png").write_bytes(b"half")
    unpack(archive("x.tar", pack("x.tar", FILES)), tmp_path / "root")
    assert tree(tmp_path / "root") == FILES

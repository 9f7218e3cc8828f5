"""An entry is kept whole or not at all; whatever else is sent is refused in one line and leaves nothing."""

import asyncio
import io
import json
import pickle
import stat
import tarfile
import zipfile

import pytest

from oodscope.base.errors import OodscopeError
from oodscope.results.store.store import ResultStore
from oodscope.serve import submissions as module
from oodscope.serve.app import Leaderboard
from oodscope.serve.board import LiveBoard
from oodscope.serve.receiving import Limits
from oodscope.serve.snapshot import Snapshot
from oodscope.serve.store import WatchedStore
from oodscope.serve.submissions import Submissions
from oodscope.serve.submitters import Submitters
from oodscope.serve.token import Token, read_token
from tests.serve.asking import ask, asked
from tests.serve.world import changed, files_of, form, make_entry, tarred, upload, zipped

SECRET = "correct-horse-battery"
ZIP = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/zip"}
TAR = ZIP | {"Content-Type": "application/gzip"}
FORM = ZIP | {"Content-Type": "multipart/form-data; boundary=limit"}
LIMITS = Limits(size=300_000, idle_seconds=0.5, upload_seconds=5.0, check_seconds=120.0, unpacked=1_000_000, at_once=2)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """An application that accepts, over one board for all tests: a started process is worth keeping."""
    entries = tmp_path_factory.mktemp("board")
    make_entry(entries, "first", 1)
    submissions = Submissions(entries, Submitters(entries, Token(SECRET)), LIMITS)
    submissions.open()
    yield submissions
    submissions.close()


@pytest.fixture
def app(server, tmp_path):
    board = LiveBoard(server.entries)
    board.snapshot = Snapshot.of({})

    async def admit(newcomer, keep) -> None:
        """Building has tests of its own."""
        keep()

    board.admit = admit
    return Leaderboard(board, WatchedStore(ResultStore(tmp_path / "none.db")), server).application()


@pytest.fixture
def files(tmp_path):
    return files_of(make_entry(tmp_path / "made", "mine", 5))


def left(server) -> list[str]:
    """What lies in the folder where uploads are received."""
    return sorted(path.name for path in (server.entries / ".incoming").iterdir() if path.name != "lock")


def names(server) -> set[str]:
    return {path.name for path in server.entries.iterdir()}


def refused(server, app, headers, body, status: int, words: str) -> None:
    before = {name: files_of(server.entries / name) for name in names(server) if name[0] != "."}
    answer = ask(app, "POST", "/api/entries", headers, body if isinstance(body, list) else [body])
    assert answer.status == status, answer.body
    told = json.loads(answer.body)["error"]
    assert words in told and "\n" not in told and str(server.entries) not in told and SECRET not in told
    assert {name: files_of(server.entries / name) for name in names(server) if name[0] != "."} == before
    assert left(server) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zip", "folder in a zip", "tar.gz", "form", "reported only"])
def test_an_entry_is_kept_byte_for_byte(server, app, tmp_path, kind):
    name = kind.replace(" ", "-").replace(".", "-")
    files = files_of(make_entry(tmp_path / "made", name, 7))
    if kind == "reported only":
        printed = {"protocol": "standard", "metric": "auroc", "group": "near", "set": "mean", "printed": "90.1"}
        files = changed(files, scores=None, reported=[printed | {"source": "Table 1"}])
        del files["scores.parquet"]
    headers, body = ZIP, zipped(files)
    if kind == "folder in a zip":
        body = zipped({f"whatever/{path}": content for path, content in files.items()})
    elif kind == "tar.gz":
        headers, body = TAR, tarred(files)
    elif kind == "form":
        headers, body = FORM, form([("scores", files["scores.parquet"]), ("entry", files["entry.json"])])
    pieces = [body[start : start + 999] for start in range(0, len(body), 999)]
    answer = ask(app, "POST", "/api/entries", headers, pieces)
    assert answer.status == 201, answer.body
    assert json.loads(answer.body)["id"] == name and answer.headers["location"] == f"/api/entries/{name}"
    assert files_of(server.entries / name) == files
    assert left(server) == []
    refused(server, app, headers, body, 409, "never overwritten")


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", f"Basic {SECRET}", SECRET, f"Bearer {SECRET}x", f"Bearer {SECRET[:-1]}"]
)
def test_without_the_token_nothing_is_read(server, app, given):
    headers = {"Content-Type": "application/zip"} | ({"Authorization": given} if given else {})
    refused(server, app, headers, [b"x"], 401, "Authorization")


def test_a_token_in_the_address_is_no_token(server, app, files):
    answer = ask(app, "POST", f"/api/entries?token={SECRET}", {"Content-Type": "application/zip"}, [zipped(files)])
    assert answer.status in (401, 404, 405)


def test_other_types_are_refused(server, app, files):
    for kind in ("text/plain", "", "multipart/form-data", "application/x-python-pickle"):
        refused(server, app, ZIP | {"Content-Type": kind}, zipped(files), 415, "zip")


def test_size_is_counted_and_not_believed(server, app):
    refused(server, app, ZIP, [b"x" * 100_000] * 4, 413, "at most")
    refused(server, app, ZIP | {"Content-Length": "10"}, [b"x" * 100_000] * 4, 413, "at most")
    refused(server, app, ZIP | {"Content-Length": str(10**12)}, [b"x"], 413, "at most")
    long = form([("entry", b"{}"), ("scores", b"x" * 400_000)])
    refused(server, app, FORM, [long[start : start + 50_000] for start in range(0, len(long), 50_000)], 413, "at most")


def test_an_upload_that_stops_is_given_up(server, app):
    answer = asyncio.run(asked(app, "POST", "/api/entries", ZIP, [b"PK"] * 50, pause=1.0))
    assert answer.status == 408 and left(server) == []


def test_an_upload_that_is_cut_off_leaves_nothing(server, app, files):
    body = zipped(files)
    for headers, piece in ((ZIP, body[: len(body) // 2]), (FORM, form([("entry", files["entry.json"])])[:-30])):
        answer = asyncio.run(asked(app, "POST", "/api/entries", headers, [piece], ends=False))
        assert answer.status == 400 and left(server) == []


def linked(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        link = zipfile.ZipInfo("scores.parquet")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("entry.json", files["entry.json"])
    return stream.getvalue()


def twice(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for _ in range(2):
            archive.writestr("entry.json", files["entry.json"])
    return stream.getvalue()


def odd(kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo("scores.parquet")
    member.type, member.linkname = kind, target
    return member


def entry_only(files: dict[str, bytes]) -> dict[str, bytes]:
    return {"entry.json": files["entry.json"]}


HOSTILE = {
    "a path that leaves": (ZIP, lambda f: zipped(f | {"../evil": b"x"}), "would leave the folder"),
    "an absolute path": (ZIP, lambda f: zipped(f | {"/tmp/evil": b"x"}), "would leave the folder"),
    "a path of Windows": (ZIP, lambda f: zipped(f | {"c:\\evil": b"x"}), "would leave the folder"),
    "a link in a zip": (ZIP, linked, "link or device"),
    "a symbolic link": (TAR, lambda f: tarred(entry_only(f), odd(tarfile.SYMTYPE, "/etc/passwd")), "link or device"),
    "a hard link": (TAR, lambda f: tarred(entry_only(f), odd(tarfile.LNKTYPE, "entry.json")), "link or device"),
    "a device": (TAR, lambda f: tarred(entry_only(f), odd(tarfile.CHRTYPE)), "link or device"),
    "a pipe": (TAR, lambda f: tarred(entry_only(f), odd(tarfile.FIFOTYPE)), "link or device"),
    "one name twice": (ZIP, twice, "two entries"),
    "a bomb": (ZIP, lambda f: zipped(f | {"scores.parquet": b"\0" * 30_000_000}), "grows far beyond"),
    "a bomb in a tar": (TAR, lambda f: tarred(f | {"scores.parquet": b"\0" * 30_000_000}), "grows far beyond"),
    "many files": (ZIP, lambda f: zipped(f | {f"{n}": b"" for n in range(50)}), "far more entries"),
    "a stranger": (ZIP, lambda f: zipped(f | {"setup.py": b"raise SystemExit"}), "'setup.py' does not belong"),
    "a folder too deep": (ZIP, lambda f: zipped({f"a/b/{k}": v for k, v in f.items()}), "does not belong"),
    "no archive": (ZIP, lambda f: b"hello", "damaged"),
    "no tar": (TAR, lambda f: b"\x1f\x8bhello", "the archive"),
    "half an archive": (ZIP, lambda f: zipped(f)[:-200], "damaged"),
    "nothing": (ZIP, lambda f: zipped({}), "nothing in it"),
    "no entry": (ZIP, lambda f: zipped({"scores.parquet": f["scores.parquet"]}), "entry.json: no such file"),
    "no scores": (ZIP, lambda f: zipped(entry_only(f)), "scores.parquet: no such file"),
    "no JSON": (ZIP, lambda f: zipped(f | {"entry.json": b"{"}), "not valid JSON"),
    "a pickle": (ZIP, lambda f: zipped(f | {"scores.parquet": pickle.dumps(print)}), "checksum differs"),
    "an id that leaves": (ZIP, lambda f: zipped(changed(f, id="../../evil")), "the id must be"),
    "an id that is hidden": (ZIP, lambda f: zipped(changed(f, id=".incoming")), "the id must be"),
    "an id that is a number": (ZIP, lambda f: zipped(changed(f, id=7)), "the id must be"),
    "the board's own name": (ZIP, lambda f: zipped(changed(f, id="receipts")), "the board keeps its own files"),
    "an unknown key": (ZIP, lambda f: zipped(changed(f, methd="x")), "unknown key 'methd'"),
    "other scores": (ZIP, lambda f: zipped(f | {"scores.parquet": f["scores.parquet"] + b"x"}), "checksum differs"),
    "a false claim": (
        ZIP,
        lambda f: zipped(
            changed(
                f, claims=[{"protocol": "standard", "metric": "auroc", "group": "near", "set": "mean", "value": 1.0}]
            )
        ),
        "auroc",
    ),
    "a form without an entry": (FORM, lambda f: form([("scores", b"x")]), "no field 'entry'"),
    "a form with a stranger": (FORM, lambda f: form([("entry", b"{}"), ("../x", b"x")]), "takes entry and scores"),
    "a form with one field twice": (FORM, lambda f: form([("entry", b"{}")] * 2), "twice"),
    "no form": (FORM, lambda f: b"hello", "not a multipart form"),
    "a form with a long header": (FORM, lambda f: b"--limit\r\nX-A: " + b"a" * 70_000, "form"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_entry_is_refused_in_one_line(server, app, files, case):
    headers, make, words = HOSTILE[case]
    status = 400 if headers is FORM else 422
    refused(server, app, headers, make(files), status, words)
    assert not (server.entries.parent / "evil").exists()


def test_pinned_lists_of_the_board_count(server, app, files, tmp_path):
    lists = server.entries / "lists"
    lists.mkdir()
    try:
        pinned = {"name": "small", "version": "1", "sets": {"id_test": ["id_test", 30, "0" * 64]}}
        (lists / "small.json").write_text(json.dumps(pinned))
        refused(server, app, ZIP, zipped(files), 422, "is judged on id_test")
    finally:
        (lists / "small.json").unlink()
        lists.rmdir()


def test_of_two_at_once_with_one_name_one_is_kept(server, app, tmp_path):
    bodies = [upload(tmp_path / f"{n}", "twin", n) for n in range(2)]

    async def both():
        return await asyncio.gather(*(asked(app, "POST", "/api/entries", ZIP, [body]) for body in bodies))

    assert sorted(answer.status for answer in asyncio.run(both())) == [201, 409]
    assert left(server) == [] and set(files_of(server.entries / "twin")) == {"entry.json", "scores.parquet"}


def test_too_many_at_once_are_asked_to_come_again(server, app, monkeypatch):
    held = asyncio.Event()

    async def hold(*_):
        await held.wait()
        raise module.RefusedError(400, "enough")

    monkeypatch.setattr(module, "receive", hold)

    async def three():
        waiting = [asyncio.create_task(asked(app, "POST", "/api/entries", ZIP)) for _ in range(2)]
        await asyncio.sleep(0.2)
        third = await asked(app, "POST", "/api/entries", ZIP)
        held.set()
        return third, await asyncio.gather(*waiting)

    third, others = asyncio.run(three())
    assert third.status == 503 and "retry-after" in third.headers
    assert [answer.status for answer in others] == [400, 400]
    assert server._receiving == 0 and server._begun.total() == 0


def test_what_takes_too_long_to_check_is_refused(server, app, files, monkeypatch):
    monkeypatch.setattr(server, "limits", Limits(**{**vars(LIMITS), "check_seconds": 0.0}))
    refused(server, app, ZIP, zipped(files), 422, "could not be checked: not done after")


def test_a_second_server_does_not_accept_into_the_same_folder(server):
    with pytest.raises(OodscopeError, match="another server accepts"):
        Submissions(server.entries, Submitters(server.entries, Token(SECRET)), LIMITS).open()


def test_leftovers_of_a_killed_server_are_removed(tmp_path):
    (tmp_path / ".incoming" / "upload-x" / "ready").mkdir(parents=True)
    accepting = Submissions(tmp_path, Submitters(tmp_path, Token(SECRET)), LIMITS)
    accepting.open()
    accepting.close()
    assert [path.name for path in (tmp_path / ".incoming").iterdir()] == ["lock"]


def test_tokens_come_from_a_file_or_the_environment_and_are_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("OODSCOPE_TOKEN", SECRET)
    token = read_token(None)
    assert token.allows(f"bearer {SECRET}") and SECRET not in repr(token)
    assert read_token(None) is None  # the environment has forgotten it, and so have processes started later
    (tmp_path / "token").write_text(f"{SECRET}-2\n")
    assert read_token(tmp_path / "token").allows(f"Bearer {SECRET}-2")
    for bad in ("short", "with space in the middle", "ümlaut-ümlaut-ümlaut"):
        with pytest.raises(OodscopeError, match="16 or more") as caught:
            Token(bad)
        assert bad not in str(caught.value)
    with pytest.raises(OodscopeError, match="no token can be read"):
        read_token(tmp_path / "missing")

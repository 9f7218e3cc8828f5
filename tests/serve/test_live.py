"""A real server: many readers beside a writer, slow and rude clients, and a kill at the worst moment."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from base64 import b64encode
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import pytest

from oodscope.base.errors import OodscopeError
from oodscope.cli.serve import serve
from oodscope.leaderboard.records.keeping import RECEIVED
from oodscope.serve.submissions import keep
from tests.serve.live import SECRET, Live
from tests.serve.load import load
from tests.serve.world import files_of, make_entry, upload

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    make_entry(folder / "board", "first", 1)
    server = Live(folder, "--submissions")
    yield server
    server.stop()
    assert SECRET not in server.log


def entries(live: Live) -> set[str]:
    """Those of the folder; printed tables come with the package."""
    return {each["id"] for each in json.loads(live.ask("GET", "/api/entries")[2]) if each["tier"] != "reported"}


def test_two_hundred_readers_and_a_writer(live, tmp_path, capsys):
    paths = ["/", "/methods/index.html", "/models/index.html", "/downloads.html", "/methods/method_1.html"]
    paths += ["/benchmarks/small@1/standard.html", "/data/everything.json", "/api/entries", "/site.css"]
    paths += ["/api/state"] * 3 + ["/running/", "/runs/"]

    def submit(number: int) -> tuple[int, dict, bytes]:
        return live.submit(upload(tmp_path / f"{number}", f"loaded-{number}", 100 + number))

    seen, accepted, took = asyncio.run(load(live.port, paths, readers=200, seconds=6.0, submit=submit))
    with capsys.disabled():
        print(
            f"\n200 readers: {len(seen.seconds)} pages, {seen.bytes / 2**20:.0f} MiB, "
            f"median {seen.quantile(0.5):.0f} ms, 95 % {seen.quantile(0.95):.0f} ms, worst {seen.quantile(1):.0f} ms; "
            f"{len(accepted)} submissions, worst {max(took):.1f} s"
        )
    assert seen.wrong == []
    assert len(seen.seconds) > 400 and accepted
    assert entries(live) == {"first", *accepted}, "a submission was lost"
    for entry in accepted:
        line = json.loads(live.ask("GET", f"/api/entries/{entry}")[2])
        page = live.ask("GET", line["page"].partition("#")[0])[2].decode()
        assert line["page"].partition("#")[2] in page and line["measurements"]
        scores = live.ask("GET", f"/entries/{entry}/scores.parquet")
        assert scores[2] == (live.board / entry / "scores.parquet").read_bytes()
        assert scores[1]["content-digest"] == f"sha-256=:{b64encode(sha256(scores[2]).digest()).decode()}:"


def answered(port: int, sent: bytes, seconds: float = 30.0) -> bytes:
    """What comes back on a raw connection until the server closes it."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(sent)
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


def test_an_upload_does_not_wait_for_what_it_will_refuse(live):
    head = b"POST /api/entries HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nContent-Type: application/zip\r\n"
    assert answered(live.port, head + b"\r\n" + b"x" * 1000).startswith(b"HTTP/1.1 401")
    known = f"Authorization: Bearer {SECRET}\r\n\r\n".encode()
    assert answered(live.port, head + known + b"x" * 1000).startswith(b"HTTP/1.1 413")


def test_a_head_has_no_body_and_a_chunked_upload_is_one_too(live, tmp_path):
    status, headers, body = live.ask("HEAD", "/")
    assert status == 200 and body == b"" and int(headers["content-length"]) > 1000
    sent = upload(tmp_path, "chunked", 55)
    head = (
        "POST /api/entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\nTransfer-Encoding: chunked\r\n"
        f"Connection: close\r\nAuthorization: Bearer {SECRET}\r\n\r\n"
    )
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (sent[:1000], sent[1000:])) + b"0\r\n\r\n"
    assert answered(live.port, head.encode() + pieces, 120).startswith(b"HTTP/1.1 201")
    assert "chunked" in entries(live)


def test_a_change_of_the_folder_is_seen_without_a_request_for_it(live):
    before = json.loads(live.ask("GET", "/api/state")[2])["board"]
    make_entry(live.board, "by-hand", 60)
    until = time.monotonic() + 60
    while "by-hand" not in entries(live):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert json.loads(live.ask("GET", "/api/state")[2])["board"] != before


def test_a_folder_that_is_no_entry_does_not_take_the_board_away(live):
    (live.board / "broken").mkdir()
    (live.board / "broken" / "entry.json").write_text("{")
    until = time.monotonic() + 60
    while not (refused := json.loads(live.ask("GET", "/api/refused")[2])):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert list(refused) == ["broken"] and "first" in entries(live) and "broken" not in entries(live)
    (live.board / "broken" / "entry.json").unlink()
    (live.board / "broken").rmdir()


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.soak)])
def test_a_kill_during_submissions_leaves_no_half_entry(live, tmp_path, kills):
    for kill in range(kills):
        kill_during_submissions(
            live, tmp_path, [f"killed-{kills}-{kill}-{n}" for n in range(2)], 200 * kills + 2 * kill
        )


def kill_during_submissions(live, folder, names, seed):
    """Two entries are on their way when the server dies; afterwards each is there whole, or can be handed in again."""
    known = entries(live)
    bodies = [upload(folder / name, name, seed + n) for n, name in enumerate(names)]
    # one is in the middle of its upload, one is being checked
    halfway = socket.create_connection(("127.0.0.1", live.port))
    head = (
        f"POST /api/entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\nAuthorization: Bearer {SECRET}\r\n"
    )
    halfway.sendall(f"{head}Content-Length: {len(bodies[0])}\r\n\r\n".encode() + bodies[0][: len(bodies[0]) // 2])
    checked = socket.create_connection(("127.0.0.1", live.port))
    checked.sendall(f"{head}Content-Length: {len(bodies[1])}\r\n\r\n".encode() + bodies[1])
    incoming = live.board / ".incoming"
    until = time.monotonic() + 30
    while len(list(incoming.glob("upload-*"))) < 2:
        assert time.monotonic() < until
        time.sleep(0.005)
    live.kill()
    halfway.close()
    checked.close()
    there = {path.name for path in live.board.iterdir() if not path.name.startswith(".")} - {RECEIVED}
    assert known <= there <= {*known, names[1]}
    for name in there:
        assert set(files_of(live.board / name)) == {"entry.json", "scores.parquet"}
    live.start()
    assert list(incoming.glob("upload-*")) == []
    assert entries(live) == there
    for name, body in zip(names, bodies):
        assert live.submit(body)[0] == (409 if name in there else 201)
    assert entries(live) == {*known, *names}


def kept_until(step: int, ready: Path, place: Path) -> None:
    """Keep an entry, and die before the given step of it."""
    left = step

    def count(event: str, _) -> None:
        nonlocal left
        if event in ("open", "os.rename", "os.listdir", "os.scandir"):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    keep(ready, place)
    os._exit(0)


def test_at_whatever_step_the_keeping_is_killed_the_entry_is_whole_or_not_there(tmp_path):
    files = files_of(make_entry(tmp_path / "made", "mine", 3))
    outcomes = []
    for step in range(20):
        ready, board = tmp_path / f"ready-{step}" / "mine", tmp_path / f"board-{step}"
        ready.mkdir(parents=True)
        board.mkdir()
        for name, content in files.items():
            (ready / name).write_bytes(content)
        process = get_context("fork").Process(target=kept_until, args=(step, ready, board / "mine"))
        process.start()
        process.join(30)
        assert process.exitcode in (0, -signal.SIGKILL)
        whole = (board / "mine").exists()
        assert not whole or files_of(board / "mine") == files
        outcomes.append((process.exitcode, whole))
        if process.exitcode == 0:
            break
    assert outcomes[0] == (-signal.SIGKILL, False) and outcomes[-1] == (0, True)
    assert (-signal.SIGKILL, True) in outcomes, "a kill after the rename leaves all of it"


def test_what_cannot_be_served_is_one_line(live, tmp_path, monkeypatch):
    monkeypatch.delenv("OODSCOPE_TOKEN", raising=False)
    with pytest.raises(OodscopeError, match="cannot listen on 127.0.0.1, port .*: Address already in use"):
        serve(port=live.port, board=tmp_path)
    with pytest.raises(OodscopeError, match="set OODSCOPE_TOKEN, or give --token-file"):
        serve(submissions=True)
    with pytest.raises(OodscopeError, match="--token-file is for --submissions"):
        serve(token_file=tmp_path / "token")


def test_a_missing_extra_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("oodscope.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(OodscopeError, match=r"pip install 'oodscope\[serve\]'"):
        serve()

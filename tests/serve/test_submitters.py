"""Submitters have tokens of their own; every submission leaves a line; nobody keeps others out."""

import asyncio
import json
import threading
import time
from datetime import UTC, datetime
from functools import partial

import pytest

from oodscope.base.errors import OodscopeError
from oodscope.leaderboard.records.keeping import Stamp, write_stamp
from oodscope.results.store.store import ResultStore
from oodscope.serve.app import Leaderboard
from oodscope.serve.audit import DAY, STRANGERS, Audit, DailyQuota
from oodscope.serve.board import LiveBoard
from oodscope.serve.building import Built
from oodscope.serve.rates import Buckets
from oodscope.serve.receiving import Limits
from oodscope.serve.store import WatchedStore
from oodscope.serve.submissions import Submissions, keep
from oodscope.serve.submitters import Submitters
from oodscope.serve.token import Token
from oodscope.serve.worker import WorkerError
from tests.serve.asking import ask, asked
from tests.serve.world import changed, files_of, make_entry, upload, zipped

pytestmark = pytest.mark.slow

LIMITS = Limits(size=300_000, idle_seconds=0.5, upload_seconds=5.0, at_once=8, each=1, per_day=2)


def zip_of(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/zip"}


def trail(entries):
    return [json.loads(line) for line in (entries / ".server" / "audit.jsonl").read_text().splitlines()]


class TestTokens:
    def test_each_has_its_own_and_only_its_hash_is_kept(self, tmp_path):
        known = Submitters(tmp_path)
        ada, eve = known.add("ada"), known.add("eve")
        assert known.who(f"Bearer {ada}") == "ada" and known.who(f"bearer {eve}") == "eve"
        assert ada not in known.path.read_text() and known.path.stat().st_mode & 0o077 == 0
        for bad in ("", "Bearer", "Bearer ", f"Basic {ada}", f"Bearer {ada}x", f"Bearer {known.names()['ada'].hash}"):
            assert known.who(bad) is None

    def test_a_revoked_one_counts_no_longer(self, tmp_path):
        known = Submitters(tmp_path)
        token = known.add("ada")
        Submitters(tmp_path).revoke("ada")
        assert known.who(f"Bearer {token}") is None
        with pytest.raises(OodscopeError, match="no submitter 'ada'"):
            known.revoke("ada")
        again = known.add("ada")
        assert again != token and known.who(f"Bearer {again}") == "ada"

    @pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "keeper", "x" * 300, "a\x1bb"])
    def test_names_are_plain(self, tmp_path, name):
        with pytest.raises(OodscopeError):
            Submitters(tmp_path).add(name)

    def test_a_server_that_nobody_can_submit_to_does_not_start(self, tmp_path):
        with pytest.raises(OodscopeError, match="token add"):
            Submitters(tmp_path).check()
        Submitters(tmp_path, Token("correct-horse-battery")).check()

    def test_a_damaged_file_is_refused_by_name(self, tmp_path):
        known = Submitters(tmp_path)
        known.add("ada")
        known.path.write_text("{")
        with pytest.raises(OodscopeError, match="submitters.json"):
            known.who("Bearer x")


@pytest.fixture
def world(tmp_path):
    """A board whose pages are really built."""
    entries = tmp_path / "board"
    make_entry(entries, "first", 1)
    submitters = Submitters(entries)
    tokens = {name: submitters.add(name) for name in ("ada", "eve")}
    submissions = Submissions(entries, submitters, LIMITS)
    submissions.open()
    board = LiveBoard(entries)
    app = Leaderboard(board, WatchedStore(ResultStore(tmp_path / "none.db")), submissions).application()
    yield entries, tokens, app, board
    board.close()
    submissions.close()


def test_an_accepted_entry_is_stamped_logged_and_shown(world, tmp_path):
    entries, tokens, app, board = world
    answer = ask(app, "POST", "/api/entries", zip_of(tokens["ada"]), [upload(tmp_path / "a", "mine", 5)])
    assert answer.status == 201, answer.body
    stamp = json.loads((entries / "received" / "mine.json").read_text())
    assert stamp["submitter"] == "ada" and not stamp["received"].startswith("2026-03-01T12")
    assert board.snapshot.find("api/entries/mine") is not None, "built before it was kept"
    last = trail(entries)[-1]
    assert (last["submitter"], last["status"], last["entry"]) == ("ada", 201, "mine")
    assert tokens["ada"] not in json.dumps(trail(entries))


def test_what_cannot_be_built_is_not_kept(world, tmp_path, monkeypatch):
    """A newcomer that no page can be made with leaves the board as it was, and the next one is accepted."""
    entries, tokens, app, board = world
    real = board._worker.call

    def failing(work, *args, seconds):
        if any(each.name == "bad" for each in args[1]):
            raise OodscopeError("no page can be made with it")
        return real(work, *args, seconds=seconds)

    monkeypatch.setattr(board._worker, "call", failing)
    answer = ask(app, "POST", "/api/entries", zip_of(tokens["ada"]), [upload(tmp_path / "a", "bad", 5)])
    assert answer.status == 422 and b"no page" in answer.body
    assert not (entries / "bad").exists() and not (entries / "received" / "bad.json").exists()
    assert ask(app, "POST", "/api/entries", zip_of(tokens["eve"]), [upload(tmp_path / "b", "good", 6)]).status == 201


def test_a_published_id_is_refused(world, tmp_path):
    entries, tokens, app, _ = world
    files = changed(files_of(make_entry(tmp_path / "made", "x", 5)), id="openood-v1.5-cifar10-knn")
    answer = ask(app, "POST", "/api/entries", zip_of(tokens["ada"]), [zipped(files)])
    assert answer.status == 422 and b"published table" in answer.body


def test_a_sender_can_ask_how_far_it_is(world, tmp_path):
    _, tokens, app, _ = world
    headers = zip_of(tokens["ada"]) | {"Prefer": "respond-async"}

    async def all_of_it():
        first = await asked(app, "POST", "/api/entries", headers, [upload(tmp_path / "a", "mine", 5)])
        assert first.status == 202
        for _ in range(600):
            told = json.loads((await asked(app, "GET", first.headers["location"])).body)
            if told["stage"] in ("accepted", "refused"):
                return told
            await asyncio.sleep(0.1)
        raise AssertionError("never done")

    told = asyncio.run(all_of_it())
    assert told["stage"] == "accepted" and told["entry"] == "mine"


def test_a_slow_sender_keeps_nobody_else_out(world, tmp_path):
    _, tokens, app, _ = world
    body = upload(tmp_path / "a", "mine", 5)

    async def both():
        slow = asyncio.ensure_future(
            asked(app, "POST", "/api/entries", zip_of(tokens["eve"]), [b"P"] * 4, pause=0.4, ends=False)
        )
        await asyncio.sleep(0.2)
        again = await asked(app, "POST", "/api/entries", zip_of(tokens["eve"]), [body])
        honest = await asked(app, "POST", "/api/entries", zip_of(tokens["ada"]), [body])
        await slow
        return again.status, honest.status

    assert asyncio.run(both()) == (429, 201)


def test_what_is_being_examined_counts_too(world, tmp_path, monkeypatch):
    """Whoever sends entries that take long to examine waits for them, and others do not wait for all of them."""
    entries, tokens, app, _ = world
    released = threading.Event()

    def slow(self, upload, ready):
        released.wait(20)
        raise OodscopeError("enough")

    monkeypatch.setattr(Submissions, "_check", slow)

    async def both():
        first = asyncio.ensure_future(asked(app, "POST", "/api/entries", zip_of(tokens["eve"]), [b"PK"]))
        await asyncio.sleep(0.3)
        second = await asked(app, "POST", "/api/entries", zip_of(tokens["eve"]), [b"PK"])
        released.set()
        return (await first).status, second.status

    assert asyncio.run(both()) == (422, 429)


def test_the_deadline_grows_with_the_size():
    limits = Limits()
    assert (
        limits.deadline("1000")
        < 31
        < limits.deadline(str(100 << 20))
        < limits.deadline("")
        == limits.deadline("9" * 30)
    )


def test_quotas():
    quota = DailyQuota(2)
    for _ in range(2):
        assert not quota.full("ada")
        quota.count("ada")
    assert quota.full("ada") and not quota.full("eve")


def test_a_quota_is_of_the_last_day():
    now = 0.0
    quota = DailyQuota(2, lambda: now)
    for _ in range(2):
        quota.count("ada")
    now = DAY + 1
    quota.count("ada", when=0.5)
    assert not quota.full("ada"), "what is older than a day does not count"
    quota.count("ada", when=2.0)
    quota.count("ada", when=now + 3600)
    assert quota.full("ada")


def test_a_quota_survives_a_restart_and_a_kill(tmp_path):
    """One acceptance stands in the trail, damaged lines beside it; of the other a kill left the stamp alone."""
    entries, now = tmp_path / "board", datetime.now(UTC).isoformat(timespec="seconds")
    for number, (name, received) in enumerate({"a": now, "b": now, "old": "2026-01-01T00:00:00+00:00"}.items()):
        make_entry(entries, name, number)
        write_stamp(entries, Stamp(entry=name, received=received, submitter="ada"))
    make_entry(entries, "of-the-keeper", 4)
    audit = Audit(entries)
    audit.write("ada", "::1", 201, "a", 1.0)
    with audit.path.open("ab") as file:
        file.write(
            b'{"status": 201}\n{"status": 201, "entry": "x", "submitter": "y", "time": "never"}\n\xff"status": 201\n'
        )
    for _ in range(2):
        submissions = Submissions(entries, Submitters(entries, Token("correct-horse-battery")), LIMITS)
        submissions.open()
        submissions.close()
        assert submissions._quota.full("ada") and not submissions._quota.full("y")
        kept = sorted(audit.accepted())
        assert [(entry, who) for entry, who, _ in kept] == [("a", "ada"), ("b", "ada"), ("old", "ada")]


def test_refusals_leave_a_line_too(world):
    entries, _, app, _ = world
    assert ask(app, "POST", "/api/entries", zip_of("nobody's"), [b"x"]).status == 401
    assert trail(entries)[-1]["status"] == 401


def test_requests_without_a_token_do_not_fill_the_trail(tmp_path):
    audit = Audit(tmp_path)
    audit._strangers = Buckets(STRANGERS, lambda: now)
    now = 0.0
    for _ in range(1000):
        audit.write("", "::1", 401, "", 0.0)
    assert len(trail(tmp_path)) == STRANGERS.burst
    audit.write("ada", "::1", 422, "", 0.0)
    now = 3600.0
    audit.write("", "::1", 401, "", 0.0)
    assert len(trail(tmp_path)) == STRANGERS.burst + 2, "of submitters every line is kept"
    assert trail(tmp_path)[-1]["left_out"] == 1000 - STRANGERS.burst


class TestABurst:
    """Entries that come while the board is built are built together; each keeps its own fate."""

    @pytest.fixture
    def board(self, tmp_path):
        (tmp_path / "board").mkdir()
        board = LiveBoard(tmp_path / "board")
        board.calls = []

        def called(work, entries, newcomers, seconds):
            names = [each.name for each in newcomers]
            board.calls.append(names)
            time.sleep(0.05)
            if "deadly" in names:
                raise WorkerError("the process that did it ended without an answer")
            shown = {each.name for each in entries.iterdir()} | set(names) - {"odd"}
            return Built(dict.fromkeys(shown, b""), {name: "no page" for name in names if name == "odd"})

        board._worker.call = called
        return board

    def admit(self, board, tmp_path, names, taken=()):
        async def one(name):
            folder = tmp_path / "ready" / name
            folder.mkdir(parents=True)
            (folder / "entry.json").write_text("{}")
            if name in taken:
                (board.entries / name).mkdir()
                (board.entries / name / "of-the-keeper").write_text("")
            await board.admit(folder, partial(keep, folder, board.entries / name))

        async def all_of_them():
            return await asyncio.gather(*map(one, names), return_exceptions=True)

        return dict(zip(names, asyncio.run(all_of_them()), strict=True))

    def test_costs_two_builds(self, board, tmp_path):
        names = [f"n{number}" for number in range(20)]
        assert set(self.admit(board, tmp_path, names).values()) == {None}
        assert set(board.snapshot.pages) == set(names) == {path.name for path in board.entries.iterdir()}
        assert sum(map(len, board.calls)) == 20 and len(board.calls) <= 2

    def test_one_that_no_page_can_be_made_with_costs_itself(self, board, tmp_path):
        found = self.admit(board, tmp_path, ["a", "odd", "b"])
        assert found["a"] is found["b"] is None and "no page" in str(found["odd"])
        assert set(board.snapshot.pages) == {"a", "b"} == {path.name for path in board.entries.iterdir()}

    def test_one_that_brings_the_builder_down_costs_itself(self, board, tmp_path):
        found = self.admit(board, tmp_path, ["a", "deadly", "b"])
        assert found["a"] is found["b"] is None and isinstance(found["deadly"], WorkerError)
        assert set(board.snapshot.pages) == {"a", "b"}

    def test_a_place_that_was_taken_meanwhile_is_shown_as_it_is(self, board, tmp_path):
        found = self.admit(board, tmp_path, ["a", "taken", "b"], taken=["taken"])
        assert found["a"] is found["b"] is None and found["taken"].status == 409
        assert board.calls[-1] == [], "built again, from what is there"
        assert set(board.snapshot.pages) == {"a", "b", "taken"}

    def test_what_the_keeper_changes_during_a_build_is_shown(self, board, tmp_path):
        real = board._worker.call

        def called(work, entries, newcomers, seconds):
            built = real(work, entries, newcomers, seconds=seconds)
            (entries / "by-hand").mkdir(exist_ok=True)
            (entries / "by-hand" / "entry.json").touch()
            return built

        board._worker.call = called
        self.admit(board, tmp_path, ["a"])
        assert set(board.snapshot.pages) == {"a", "by-hand"}


def test_errors_are_pages_for_browsers_and_json_for_programs(world):
    *_, app, _ = world
    page = ask(app, "GET", "/no/such/page", {"Accept": "text/html"})
    assert (
        page.status == 404 and page.headers["content-type"].startswith("text/html") and b"../../index.html" in page.body
    )
    assert json.loads(ask(app, "GET", "/api/nothing", {"Accept": "text/html"}).body)["error"]
    assert ask(app, "GET", "/runs").headers["location"] == "/runs/"

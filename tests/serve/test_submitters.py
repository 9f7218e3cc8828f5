"""Submitters have tokens of their own; every submission leaves a line; nobody keeps others out."""

import asyncio
import json

import pytest

from oodscope.base.errors import OodscopeError
from oodscope.results.store.store import ResultStore
from oodscope.serve.app import Leaderboard
from oodscope.serve.audit import DailyQuota
from oodscope.serve.board import LiveBoard
from oodscope.serve.receiving import Limits
from oodscope.serve.store import WatchedStore
from oodscope.serve.submissions import Submissions
from oodscope.serve.submitters import Submitters
from oodscope.serve.token import Token
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


def test_refusals_leave_a_line_too(world):
    entries, _, app, _ = world
    assert ask(app, "POST", "/api/entries", zip_of("nobody's"), [b"x"]).status == 401
    assert trail(entries)[-1]["status"] == 401


def test_errors_are_pages_for_browsers_and_json_for_programs(world):
    *_, app, _ = world
    page = ask(app, "GET", "/no/such/page", {"Accept": "text/html"})
    assert (
        page.status == 404 and page.headers["content-type"].startswith("text/html") and b"../../index.html" in page.body
    )
    assert json.loads(ask(app, "GET", "/api/nothing", {"Accept": "text/html"}).body)["error"]
    assert ask(app, "GET", "/runs").headers["location"] == "/runs/"

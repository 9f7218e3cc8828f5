"""Nobody asks without end: a bucket per address, and an answer that says when to come back."""

import asyncio
import json

import pytest

from oodscope.results.store.store import ResultStore
from oodscope.serve.answers import ALWAYS
from oodscope.serve.app import Leaderboard
from oodscope.serve.board import LiveBoard
from oodscope.serve.rates import Buckets, Rate
from oodscope.serve.snapshot import Snapshot
from oodscope.serve.store import WatchedStore
from tests.results.factory import make_result
from tests.serve.asking import Answer, asked


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_then_the_rate_and_never_more_than_the_burst():
    clock = Clock()
    buckets = Buckets(Rate(per_second=2, burst=5), clock)
    assert [buckets.take("192.0.2.1") for _ in range(5)] == [0.0] * 5
    assert buckets.take("192.0.2.1") == pytest.approx(0.5)
    assert buckets.take("192.0.2.2") == 0, "another address has its own"
    clock.now += 0.5
    assert buckets.take("192.0.2.1") == 0 and buckets.take("192.0.2.1") > 0
    clock.now += 1000
    assert [buckets.take("192.0.2.1") > 0 for _ in range(6)] == [False] * 5 + [True]


def test_who_is_refused_waits_no_longer_for_asking_on():
    clock = Clock()
    buckets = Buckets(Rate(per_second=1, burst=1), clock)
    buckets.take("192.0.2.1")
    assert {buckets.take("192.0.2.1") for _ in range(100)} == {1.0}
    clock.now += 1
    assert buckets.take("192.0.2.1") == 0


def test_addresses_of_one_network_count_together_and_what_is_remembered_is_bounded():
    buckets = Buckets(Rate(per_second=1, burst=1, addresses=10), Clock())
    assert buckets.take("2001:db8:0:1::1") == 0
    assert buckets.take("2001:db8:0:1:ffff::2") > 0, "one host has all 2^64 of them"
    assert buckets.take("2001:db8:0:2::1") == 0
    assert buckets.take("192.0.2.9") == 0 and buckets.take("::ffff:192.0.2.9") > 0
    for number in range(256):
        buckets.take(f"198.51.100.{number}")
    assert len(buckets) == 10


def application(tmp_path, rate: Rate | None = None):
    board = LiveBoard(tmp_path / "board")
    board.snapshot = Snapshot.of({"index.html": b"<!doctype html></html>"})
    store = ResultStore(tmp_path / "runs" / "results.db", wait_seconds=1)
    return Leaderboard(board, WatchedStore(store), None, rate).application(), store


def ask_from(app, address: str, method: str = "GET", path: str = "/") -> Answer:
    async def of_address(scope, receive, send):
        await app(scope | {"client": (address, 1)}, receive, send)

    return asyncio.run(asked(of_address, method, path))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_server_refuses_with_the_time_to_wait_and_safe_headers(tmp_path, method):
    app, _ = application(tmp_path, Rate(per_second=0.1, burst=3))
    assert 429 not in {ask_from(app, "192.0.2.1", method).status for _ in range(3)}
    answer = ask_from(app, "192.0.2.1", method)
    assert answer.status == 429 and 1 <= int(answer.headers["retry-after"]) <= 10
    assert "your address" in json.loads(answer.body)["error"]
    assert answer.headers.items() >= ALWAYS.items() and "content-security-policy" in answer.headers
    assert ask_from(app, "192.0.2.2").status == 200


def test_loopback_is_free_and_the_default_is_generous(tmp_path):
    app, _ = application(tmp_path, Rate(per_second=0.1, burst=1))
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert {ask_from(app, address).status for _ in range(5)} == {200}
    app, _ = application(tmp_path)
    assert {ask_from(app, "192.0.2.1").status for _ in range(300)} == {200}


def test_pages_of_runs_say_where_they_are_and_name_protocols_by_their_titles(tmp_path):
    app, store = application(tmp_path)
    result = make_result()
    store.add(result)
    (run,) = json.loads(ask_from(app, "127.0.0.1", path="/api/runs").body)
    page = ask_from(app, "127.0.0.1", path=f"/runs/{run['name']}/").body.decode()
    assert f"Runs</a> / {result.record.benchmark}: {result.record.model}</p>" in page
    listing = ask_from(app, "127.0.0.1", path="/runs/").body.decode()
    cells = [cell.partition("<")[0] for cell in listing.split('<td class="text">')]
    assert any(cell.startswith("Standard") for cell in cells), cells
    assert not set(cells) & set(result.record.protocols), "names that only programs use"

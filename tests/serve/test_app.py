"""Every address answers what it should, with safe headers, whatever the request says."""

import base64
import json
from hashlib import sha256
from html.parser import HTMLParser
from time import time

import pytest

from oodscope.results.store.store import ResultStore, Running
from oodscope.serve.app import Leaderboard
from oodscope.serve.board import LiveBoard
from oodscope.serve.runpages import report_policy
from oodscope.serve.snapshot import Page, Snapshot
from oodscope.serve.store import WatchedStore
from tests.results.factory import make_result
from tests.results.test_result_store import small
from tests.serve.asking import ask

CONTENTS = {
    "index.html": b"<!doctype html><p>front</p></html>",
    "methods/index.html": b"<!doctype html>methods</html>",
    "data/everything.json": b"[]",
    "site.css": b"a{}",
    "api/entries": b'[{"id": "one"}]',
}


def make_app(tmp_path, submissions=None):
    board = LiveBoard(tmp_path / "board")
    board.snapshot = Snapshot.of(CONTENTS)
    store = ResultStore(tmp_path / "runs" / "results.db", wait_seconds=1)
    return Leaderboard(board, WatchedStore(store), submissions).application(), store


@pytest.fixture
def app(tmp_path):
    return make_app(tmp_path)[0]


class Numbers(HTMLParser):
    def __init__(self):
        super().__init__()
        self.values = []

    def handle_starttag(self, tag, attributes):
        self.values += [value for name, value in attributes if name == "data-value"]


def test_pages_come_whole_with_their_digest_and_type(app):
    kinds = {
        "/": ("index.html", "text/html; charset=utf-8"),
        "/methods/": ("methods/index.html", "text/html; charset=utf-8"),
        "/methods/index.html": ("methods/index.html", "text/html; charset=utf-8"),
        "/data/everything.json": ("data/everything.json", "application/json"),
        "/site.css": ("site.css", "text/css; charset=utf-8"),
        "/api/entries": ("api/entries", "application/json"),
    }
    for path, (name, kind) in kinds.items():
        answer = ask(app, "GET", path)
        assert (answer.status, answer.body, answer.headers["content-type"]) == (200, CONTENTS[name], kind)
        digest = base64.b64encode(sha256(answer.body).digest()).decode()
        assert answer.headers["content-digest"] == f"sha-256=:{digest}:"


def test_a_copy_that_is_still_good_is_not_sent_again(app):
    tag = ask(app, "GET", "/").headers["etag"]
    again = ask(app, "GET", "/", {"If-None-Match": tag})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert ask(app, "GET", "/methods/", {"If-None-Match": tag}).status == 200


PATHS = ("/", "/nope", "/runs/", "/running/", "/api/", "/api/state", "/live.js", "/api/entries", "/runs/x/report.html")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_every_answer_is_safe_and_only_what_is_offered_is_done(app, path, method):
    answer = ask(app, method, path, {"Host": "evil.example"})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    known = path not in ("/nope", "/runs/x/report.html")
    expected = (200 if known else 404) if method in ("GET", "HEAD") else 405
    assert answer.status == expected
    if expected == 405:
        assert "GET" in answer.headers["allow"]
    assert "evil" not in str(answer.headers) and b"evil" not in answer.body
    if answer.status >= 400:
        assert list(json.loads(answer.body)) == ["error"] and b"\n" not in answer.body


def test_nothing_is_redirected_to_a_host_that_the_request_names(app):
    for path in ("/methods", "/api", "//evil.example/", "//evil.example/runs"):
        answer = ask(app, "GET", path, {"Host": "evil.example"})
        assert answer.status == 404 and "location" not in answer.headers
    for path in ("/runs", "/running"):  # to the folder itself, by its path alone
        answer = ask(app, "GET", path, {"Host": "evil.example"})
        assert answer.status == 308 and answer.headers["location"] == f"{path}/"


def test_read_only_says_why(app):
    answer = ask(app, "POST", "/api/entries", {"Authorization": "Bearer x"}, [b"x"])
    assert answer.status == 405 and "--submissions" in json.loads(answer.body)["error"]


def test_files_outside_the_snapshot_do_not_exist(app):
    for path in ("/../pyproject.toml", "/%2e%2e/x", "/etc/passwd", "/methods/../index.html", "/\x00", "/index.html/"):
        assert ask(app, "GET", path).status == 404


def test_runs_are_shown_with_every_number_of_the_store(tmp_path):
    app, store = make_app(tmp_path)
    result = make_result()
    store.add(result)
    assert b"glyphs-small_cnn-0" in ask(app, "GET", "/runs/").body
    (line,) = json.loads(ask(app, "GET", "/api/runs").body)
    assert line["id"] == line["name"] == result.record.id
    answer = json.loads(ask(app, "GET", f"/api/runs/{line['name']}").body)
    assert answer["record"] == result.record.model_dump(mode="json")
    assert answer["measurements"] == [vars(row) for row in result.measurements]
    page = ask(app, "GET", f"/runs/{line['name']}/")
    assert page.status == 200 and page.body.rstrip().endswith(b"</html>") and b"report.html" not in page.body
    numbers = Numbers()
    numbers.feed(page.body.decode())
    stored = {repr(row.value) for row in result.measurements}
    assert len(numbers.values) > 50 and all(value in stored or value.isdigit() for value in numbers.values)
    assert ask(app, "GET", f"/runs/{line['name']}/report.html").status == 404


def test_ids_that_no_address_can_hold_are_found_and_escaped(tmp_path):
    app, store = make_app(tmp_path)
    store.add(small("<script>alert(1)</script>/../x", rows=3))
    (line,) = json.loads(ask(app, "GET", "/api/runs").body)
    assert "/" not in line["name"] and "<" not in line["name"]
    for path in ("/runs/", f"/runs/{line['name']}/"):
        body = ask(app, "GET", path).body
        assert b"<script>alert" not in body and b"&lt;script&gt;alert" in body


REPORT = (
    '<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="{}"></head><body></body></html>'
)


def test_the_report_of_a_run_is_served_under_its_own_policy(tmp_path):
    app, store = make_app(tmp_path)
    folder = tmp_path / "runs" / "somewhere"
    store.add(small("one", rows=3), folder)
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    assert ask(app, "GET", "/runs/one/report.html").status == 404
    report = REPORT.format("default-src 'none'; script-src 'sha256-abc='")
    (folder / "report.html").write_text(report)
    answer = ask(app, "GET", "/runs/one/report.html")
    assert answer.body.decode() == report
    expected = "default-src 'none'; script-src 'sha256-abc='; frame-ancestors 'none'"
    assert answer.headers["content-security-policy"] == expected
    assert b"report.html" in ask(app, "GET", "/runs/one/").body


@pytest.mark.parametrize(
    "policy",
    ["script-src *", "default-src *; default-src 'none'", "default-src 'none'\r\nX-Evil: 1", "default-src 'none'; ü"],
)
def test_a_report_cannot_loosen_the_policy_or_add_a_header(policy):
    found = report_policy(REPORT.format(policy).encode())
    assert "script-src 'self'" in found and "X-Evil" not in found


def test_running_evaluations_are_shown_with_their_progress_and_stale_ones_as_such(tmp_path):
    app, store = make_app(tmp_path)
    shared = {"host": "here", "process": 7, "stage": "<b>extract</b>", "done": 25, "total": 100}
    store.report_progress(Running(id="a", what="evaluate a", started=time() - 60, updated=time(), **shared))
    store.report_progress(Running(id="b", what="evaluate b", started=time() - 60, updated=time() - 40, **shared))
    first, second = json.loads(ask(app, "GET", "/api/running").body)
    assert (first["id"], first["stale"], first["share"]) == ("a", False, 0.25)
    assert (second["id"], second["stale"], round(second["seconds"])) == ("b", True, 20)
    state = json.loads(ask(app, "GET", "/api/state").body)
    assert [each["id"] for each in state["running"]] == ["a", "b"] and state["runs"] == 0
    page = ask(app, "GET", "/running/").body.decode()
    assert page.count("data-id=") == 2 and page.count(">stale<") == 1 and page.count(">running<") == 1
    assert "<b>extract" not in page and "&lt;b&gt;extract" in page and "hidden" in page


def test_without_a_store_there_are_no_runs_and_a_broken_one_is_told(tmp_path):
    app, _ = make_app(tmp_path)
    assert ask(app, "GET", "/api/runs").body == b"[]"
    assert b"Nothing runs now" in ask(app, "GET", "/running/").body
    assert not (tmp_path / "runs").exists(), "a reader creates nothing"
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "results.db").write_text("not a database" * 100)
    app, _ = make_app(tmp_path)
    answer = ask(app, "GET", "/api/runs")
    assert answer.status == 503 and "not a database" in json.loads(answer.body)["error"]
    assert ask(app, "GET", "/").status == 200, "the board does not need the store"


def test_snapshots_tell_their_states_apart():
    assert Snapshot.of(CONTENTS).version == Snapshot.of(dict(reversed(CONTENTS.items()))).version
    assert Snapshot.of(CONTENTS | {"x": b""}).version != Snapshot.of(CONTENTS).version
    assert Snapshot.of({"a": b"1"}).version != Snapshot.of({"b": b"1"}).version
    assert Snapshot.of({"a": b"1", "b": b"2"}).version != Snapshot.of({"a": b"2", "b": b"1"}).version
    assert Page.of("page", b"x").kind == "application/octet-stream"

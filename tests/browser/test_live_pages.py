"""Pages of a server renew themselves: progress is drawn again, and new results are announced."""

from time import time

import pytest

from oodscope.leaderboard.site.render import render_pages
from oodscope.results.store.store import ResultStore, Running
from oodscope.serve.app import Leaderboard
from oodscope.serve.board import LiveBoard
from oodscope.serve.snapshot import Snapshot
from oodscope.serve.store import WatchedStore
from tests.leaderboard.board_factory import make_board
from tests.results.factory import make_result
from tests.serve.asking import listen

pytestmark = pytest.mark.browser


def line(**changes) -> Running:
    told = {"id": "a", "what": "evaluate <i>r18</i>", "host": "here", "process": 7, "started": time() - 9}
    return Running(**(told | {"updated": time(), "stage": "extract", "done": 25, "total": 100} | changes))


def rendered(entries: int) -> Snapshot:
    return Snapshot.of({path: text.encode() for path, text in render_pages(make_board(entries), live=True)})


def test_progress_and_news_come_by_themselves(browser, tmp_path):
    board = LiveBoard(tmp_path / "board")

    async def leave() -> None:
        """The snapshot is set by hand."""

    board.refresh = leave
    board.snapshot = rendered(3)
    store = ResultStore(tmp_path / "results.db")
    store.add(make_result())
    store.report_progress(line())
    with listen(Leaderboard(board, WatchedStore(store), None).application()) as port:
        running = browser.open(f"http://127.0.0.1:{port}/running/", width=390)
        front = browser.open(f"http://127.0.0.1:{port}/")
        run = browser.open(f"http://127.0.0.1:{port}/runs/{make_result().record.id}/", width=390)
        assert running.locator("#running tbody tr").inner_text().startswith("evaluate <i>r18</i>")
        store.report_progress(line(done=80, stage="<b>score</b>"))
        running.locator("#running td[data-value='80']").wait_for()
        assert "<b>score</b>" in running.locator("#running tbody tr").inner_text()
        assert running.locator("#running progress").evaluate("bar => bar.value") == 0.8
        store.forget("a")
        running.locator("#idle").wait_for(state="visible")
        assert front.locator("#news").count() == 0
        board.snapshot = rendered(4)
        front.locator("#news").wait_for()
        for page in (running, front, run):
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
            page.close()

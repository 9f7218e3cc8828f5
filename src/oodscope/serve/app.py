"""The application: which address answers what. Nothing changes anything but a submission."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from oodscope.leaderboard.records.folder import ENTRY, SCORES
from oodscope.leaderboard.site.addresses import safe_name
from oodscope.serve.answers import RefusedError, SafeHeaders
from oodscope.serve.board import LiveBoard
from oodscope.serve.rates import Rate, RateLimit
from oodscope.serve.runpages import RunPages, error_page, report_policy
from oodscope.serve.snapshot import Page
from oodscope.serve.store import WatchedStore
from oodscope.serve.submissions import Submissions

_LOOK_SECONDS = 1.0
_READING = ["GET"]  # starlette adds HEAD
API = ("entries", "entries/ID", "benchmarks", "runs", "runs/NAME", "running", "state")


class Leaderboard:
    """Answers requests from three things: the board's pages, the store, and the submissions if it takes any."""

    def __init__(
        self, board: LiveBoard, store: WatchedStore, submissions: Submissions | None, rate: Rate | None = None
    ) -> None:
        self.rate = rate or Rate()
        self.board = board
        self.store = store
        self.submissions = submissions
        self.pages = RunPages(store.store.name)
        self._finishing: set[asyncio.Future[str]] = set()
        self._script = Page.of("live.js", self.pages.script())

    def application(self) -> Starlette:
        routes = [
            Route("/live.js", self.script, methods=_READING),
            Route("/runs/", self.runs_page, methods=_READING),
            Route("/runs/index.html", self.runs_page, methods=_READING),
            Route("/runs/{run}/", self.run_page, methods=_READING),
            Route("/runs/{run}/index.html", self.run_page, methods=_READING),
            Route("/runs/{run}/report.html", self.report, methods=_READING),
            Route("/running/", self.running_page, methods=_READING),
            Route("/running/index.html", self.running_page, methods=_READING),
            Route("/api/", self.api, methods=_READING),
            Route("/api/state", self.state, methods=_READING),
            Route("/api/running", self.running, methods=_READING),
            Route("/api/runs", self.runs, methods=_READING),
            Route("/api/runs/{run}", self.run, methods=_READING),
            Route("/api/entries", self.entries, methods=["GET", "POST"]),
            Route("/api/submissions/{name}", self.submission, methods=_READING),
            Route("/runs", self.below, methods=_READING),
            Route("/running", self.below, methods=_READING),
            Route("/entries/{name}/scores.parquet", self.scores, methods=_READING),
            Route("/{path:path}", self.page, methods=_READING),
        ]
        return Starlette(
            routes=routes,
            middleware=[Middleware(SafeHeaders), Middleware(RateLimit, self.rate)],
            exception_handlers={RefusedError: _refused, HTTPException: _http_error, Exception: _failed},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(self.board.watch(_LOOK_SECONDS))
        try:
            yield
        finally:
            watching.cancel()
            self.board.close()
            if self.submissions is not None:
                self.submissions.close()

    async def page(self, request: Request) -> Response:
        page = self.board.snapshot.find(request.path_params["path"])
        if page is None:
            raise RefusedError(404, "no such page")
        return _answer(request, page)

    async def scores(self, request: Request) -> Response:
        record = self.board.snapshot.find(f"entries/{request.path_params['name']}/{ENTRY}")
        entry = {} if record is None else json.loads(record.content)
        if entry.get("scores") is None:
            raise RefusedError(404, "no such page")
        # the id is of an entry that was verified, never a part of the address
        digest = b64encode(bytes.fromhex(entry["scores"]["sha256"])).decode()
        headers = {"content-digest": f"sha-256=:{digest}:"}
        path = self.board.entries / entry["id"] / SCORES
        return FileResponse(path, media_type="application/vnd.apache.parquet", headers=headers)

    async def script(self, request: Request) -> Response:
        return _answer(request, self._script)

    async def entries(self, request: Request) -> Response:
        if request.method != "POST":
            return _answer(request, self.board.snapshot.pages["api/entries"])
        if self.submissions is None:
            reason = "this server is read-only; entries are accepted where it was started with --submissions"
            raise RefusedError(405, reason, {"allow": "GET, HEAD"})
        ticket, folder = await self.submissions.receive(request)
        finishing = asyncio.ensure_future(self.submissions.finish(ticket, folder, self.board.admit))
        if "respond-async" in request.headers.get("prefer", ""):
            self._finishing.add(finishing)
            finishing.add_done_callback(self._finished)
            where = f"/api/submissions/{ticket.name}"
            return JSONResponse(ticket.described(), 202, {"location": where})
        entry = await finishing
        shown = self.board.snapshot.find(f"api/entries/{entry}")
        reply = {"id": entry, "api": f"/api/entries/{entry}"}
        if shown is None:  # it is kept, and the pages will show it when they can be made again
            return JSONResponse(reply | {"note": self.board.trouble}, 201, {"location": reply["api"]})
        line = json.loads(shown.content)
        reply |= {"page": line["page"], "tier": line["tier"], "flags": line["flags"]}
        return JSONResponse(reply, 201, {"location": line["page"]})

    def _finished(self, finishing: "asyncio.Future[str]") -> None:
        self._finishing.discard(finishing)
        if not finishing.cancelled():
            finishing.exception()  # the ticket says it, and the audit trail

    async def submission(self, request: Request) -> Response:
        ticket = None if self.submissions is None else self.submissions.ticket(request.path_params["name"])
        if ticket is None:
            raise RefusedError(404, "no such submission")
        return _answer_json(request, ticket.described())

    async def below(self, request: Request) -> Response:
        return RedirectResponse(f"{request.url.path}/", 308)

    async def runs_page(self, request: Request) -> Response:
        return _answer(request, Page.of("page.html", self.pages.listing(await self.store.runs())))

    async def run_page(self, request: Request) -> Response:
        run = await self._named(request)
        record, measurements = await self.store.run(run)
        has_report = await self.store.report(run) is not None
        content = await asyncio.to_thread(self.pages.run, record, measurements, has_report)
        return _answer(request, Page.of("page.html", content))

    async def report(self, request: Request) -> Response:
        report = await self.store.report(await self._named(request))
        if report is None:
            raise RefusedError(404, "the folder of this run is not known here, or holds no report")
        answer = _answer(request, Page.of("page.html", report))
        answer.headers["content-security-policy"] = report_policy(report)
        return answer

    async def running_page(self, request: Request) -> Response:
        return _answer(request, Page.of("page.html", self.pages.running(await self.store.running())))

    async def api(self, request: Request) -> Response:
        return _answer_json(request, [f"/api/{name}" for name in API])

    async def state(self, request: Request) -> Response:
        reply = {
            "board": self.board.snapshot.version,
            "runs": len(await self.store.runs()),
            "running": await self.store.running(),
            "submissions": self.submissions is not None,
            "trouble": self.board.trouble,
        }
        return _answer_json(request, reply)

    async def running(self, request: Request) -> Response:
        return _answer_json(request, await self.store.running())

    async def runs(self, request: Request) -> Response:
        records = await self.store.runs()
        named = [{"name": safe_name(run), **_summary(record)} for run, record in records.items()]
        return _answer_json(request, named)

    async def run(self, request: Request) -> Response:
        record, measurements = await self.store.run(await self._named(request))
        rows = [vars(row) for row in measurements]
        return _answer_json(request, {"record": record.model_dump(mode="json"), "measurements": rows})

    async def _named(self, request: Request) -> str:
        """The run whose name in addresses this is; ids may hold what addresses cannot."""
        wanted = request.path_params["run"]
        for run in await self.store.runs():
            if safe_name(run) == wanted:
                return run
        raise RefusedError(404, "no such run")


def _summary(record: Any) -> dict[str, Any]:
    fields = {"id", "created", "benchmark", "benchmark_version", "model", "protocols", "seed", "oodscope_version"}
    summary: dict[str, Any] = record.model_dump(mode="json", include=fields)
    return summary


def _answer(request: Request, page: Page) -> Response:
    headers = {"etag": page.etag, "content-digest": page.content_digest}
    if request.headers.get("if-none-match") == page.etag:
        return Response(status_code=304, headers={"etag": page.etag})
    return Response(page.content, media_type=page.kind, headers=headers)


def _answer_json(request: Request, content: Any) -> Response:
    return _answer(request, Page.of("api/", json.dumps(content, allow_nan=False).encode()))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _shown(request, error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _shown(request, RefusedError(error.status_code, str(error.detail).lower(), dict(error.headers or {})))


async def _failed(request: Request, error: Exception) -> Response:
    return _shown(request, RefusedError(500, "the server failed at this; its log says how"))


def _shown(request: Request, error: RefusedError) -> Response:
    """A page for a browser, JSON for programs."""
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return error.answer()
    page = error_page(error.status, error.line, depth=request.url.path.count("/") - 1)
    return HTMLResponse(page, error.status, {**error.headers, "connection": "close"})

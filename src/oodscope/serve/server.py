"""The server: one process that answers, with helpers for building and for checking."""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from oodscope.base.errors import OodscopeError
from oodscope.results import ResultStore
from oodscope.serve.app import Leaderboard
from oodscope.serve.board import LiveBoard
from oodscope.serve.connection import Timely
from oodscope.serve.receiving import Limits
from oodscope.serve.store import WatchedStore
from oodscope.serve.submissions import Submissions
from oodscope.serve.token import Token

_STORE_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 10
_FAREWELL_SECONDS = 20


@dataclass(frozen=True)
class Settings:
    """What a server shows, and where.

    Parameters
    ----------
    store : file or URL of the result store.
    entries : folder of the board's entries.
    token : of those who may hand entries in; nobody may without one.
    """

    store: Path | str
    entries: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token: Token | None = None
    limits: Limits = field(default_factory=Limits)


def serve(settings: Settings) -> None:
    """Answer until interrupted."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    store = WatchedStore(ResultStore(settings.store, wait_seconds=_STORE_SECONDS))
    submissions = None
    if settings.token is not None:
        submissions = Submissions(settings.entries, settings.token, settings.limits)
        submissions.open()
    board = LiveBoard(settings.entries)
    # whole from the first answer on: nobody sees a board without its pages
    await board.refresh()
    if board.trouble:
        board.close()
        raise OodscopeError(f"{settings.entries}: {board.trouble}")
    config = uvicorn.Config(
        Leaderboard(board, store, submissions).application(),
        host=settings.host,
        port=settings.port,
        http=Timely,
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_FAREWELL_SECONDS,
    )
    server = uvicorn.Server(config)
    await server.serve()

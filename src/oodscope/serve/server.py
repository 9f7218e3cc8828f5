"""The server: one process that answers, with helpers for building and for checking."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from socket import AI_PASSIVE, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket

import uvicorn

from oodscope.base.errors import OodscopeError
from oodscope.results.store.store import ResultStore
from oodscope.serve.app import Leaderboard
from oodscope.serve.board import LiveBoard
from oodscope.serve.connection import Timely
from oodscope.serve.rates import Rate
from oodscope.serve.receiving import Limits
from oodscope.serve.store import WatchedStore
from oodscope.serve.submissions import Submissions
from oodscope.serve.submitters import Submitters

_STORE_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 30
_FAREWELL_SECONDS = 20


@dataclass(frozen=True)
class Settings:
    """What a server shows, and where.

    Parameters
    ----------
    store : file or URL of the result store.
    entries : folder of the board's entries.
    submitters : who may submit entries; without them the server is read-only.
    rate : of requests of one address.
    """

    store: Path | str
    entries: Path
    host: str = "127.0.0.1"
    port: int = 8000
    submitters: Submitters | None = None
    limits: Limits = field(default_factory=Limits)
    rate: Rate = field(default_factory=Rate)


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Answer until interrupted.

    Parameters
    ----------
    ready : called with the address once the pages are there.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("oodscope.serve").setLevel(logging.INFO)  # a line for every submission
    with bound(settings.host, settings.port) as listener:
        asyncio.run(_serve(settings, listener, ready))


async def _serve(settings: Settings, listener: socket, ready: Callable[[str], None]) -> None:
    store = WatchedStore(ResultStore(settings.store, wait_seconds=_STORE_SECONDS))
    submissions = None
    if settings.submitters is not None:
        submissions = Submissions(settings.entries, settings.submitters, settings.limits)
        submissions.open()
    board = LiveBoard(settings.entries)
    # whole from the first answer on: nobody sees a board without its pages
    await board.refresh()
    if board.trouble:
        board.close()
        if submissions is not None:
            submissions.close()
        raise OodscopeError(f"{settings.entries}: {board.trouble}")
    config = uvicorn.Config(
        Leaderboard(board, store, submissions, settings.rate).application(),
        http=Timely,
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_FAREWELL_SECONDS,
    )
    host, port = listener.getsockname()[:2]
    listener.listen()  # who reads the address may connect at once, and waits for an answer instead of being refused
    ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
    await uvicorn.Server(config).serve(sockets=[listener])


def bound(host: str, port: int) -> socket:
    """A socket of the address, or one line that says why not; before any work, so that nobody waits for it."""
    try:
        family, kind, number, _, address = getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_PASSIVE)[0]
        listener = socket(family, kind, number)
        try:
            listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise OodscopeError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error
    return listener

"""Timely: a connection that is given up if no request comes, and refused if there are too many."""

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from oodscope.serve.answers import safe

HEAD_SECONDS = 15.0
LINGER_SECONDS = 1.0
MOST_CONNECTIONS = 1000


class Timely(H11Protocol):
    """uvicorn's connection, for strangers.

    uvicorn closes a connection that is idle after an answer, and waits for ever for the rest of a request's head. Here
    a head has to come whole within ``HEAD_SECONDS`` of the connection, or of its own first byte, so that a few slow
    clients cannot hold all connections. Its own answers carry the headers of all others.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > 2 * MOST_CONNECTIONS:
            transport.abort()
        elif len(self.connections) > MOST_CONNECTIONS:
            self._refuse(503, "too many connections; try again later")
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._unwatch()
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._unwatch()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _watch(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _unwatch(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if self.cycle is None or self.cycle.response_complete:
            self._refuse(408, "no whole request came in time")

    def _refuse(self, status: int, line: str) -> None:
        self._unwatch()
        if self.transport.is_closing() or self._refused:
            return
        self._refused = True
        if self.cycle is not None and not self.cycle.response_complete:
            # in the middle of an answer there is nothing more to say
            self.transport.close()
            return
        body = f"{line}\n".encode()
        head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        lines = (b"%s: %s\r\n" % header for header in safe([*head, (b"connection", b"close")]))
        words = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
        self.transport.write(words + b"".join(lines) + b"\r\n" + body)
        self.transport.write_eof()
        # closed at once, what is still on its way here would make the system take the answer back
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

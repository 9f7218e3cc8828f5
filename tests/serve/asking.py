"""Requests without a network: what an application answers to one. And a server in a thread, for those that need one."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from oodscope.serve.connection import Timely


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def ask(app, method: str, path: str, headers: dict[str, str] | None = None, body: list[bytes] | None = None) -> Answer:
    return asyncio.run(asked(app, method, path, headers, body))


async def asked(app, method, path, headers=None, body=None, *, ends: bool = True, pause: float = 0.0) -> Answer:
    """One request, its body in pieces; ``ends=False`` hangs up after them, ``pause`` waits before each."""
    pieces = list(body or [])
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    answer = Answer(0, {}, b"")

    async def receive():
        if pause:
            await asyncio.sleep(pause)
        if pieces:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces) or not ends}
        return {"type": "http.disconnect"} if not ends else {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            assert len(answer.headers) == len(message["headers"]), "a header twice"
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer


@contextmanager
def listen(app) -> Iterator[int]:
    """The port on loopback at which an application answers, over our own connections."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http=Timely, ws="none", log_level="critical", timeout_keep_alive=5))
    thread = threading.Thread(target=asyncio.run, args=(server.serve(sockets=[listener]),))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()

"""Slow and numerous clients do not hold a server's connections."""

import asyncio
import socket
import time

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from oodscope.serve import connection
from tests.serve.asking import listen


async def slowly(_):
    await asyncio.sleep(0.8)
    return PlainTextResponse("done")


def listening():
    return listen(Starlette(routes=[Route("/", lambda _: PlainTextResponse("hello")), Route("/slowly", slowly)]))


def until_closed(client: socket.socket) -> bytes:
    found = b""
    while piece := client.recv(65536):
        found += piece
    return found


def get(path: str = "/", close: bool = True) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{'Connection: close' if close else 'X: y'}\r\n\r\n".encode()


@pytest.mark.slow
def test_a_head_that_does_not_come_is_given_up(monkeypatch):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.4)
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.1)
    with listening() as port:
        for sent in (b"", b"GET / HTTP/1.1\r\nHost:"):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                started = time.monotonic()
                client.sendall(sent)
                answer = until_closed(client)
                assert answer.startswith(b"HTTP/1.1 408 ") and b"nosniff" in answer
                assert 0.3 < time.monotonic() - started < 10
        # bytes that trickle in do not help
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(b"GET / HTTP/1.1\r\n")
            started, broken = time.monotonic(), False
            while time.monotonic() - started < 10 and not broken:
                time.sleep(0.1)
                try:
                    client.sendall(b"X: y\r\n")
                except OSError:
                    broken = True
            assert broken


def test_an_answer_may_take_longer_than_a_head(monkeypatch):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    with listening() as port, socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(get("/slowly"))
        assert until_closed(client).endswith(b"done")


@pytest.mark.slow
def test_a_second_request_over_one_connection_has_its_own_time(monkeypatch):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 1.5)
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.1)
    with listening() as port, socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        for _ in range(3):
            time.sleep(0.6)
            client.sendall(get(close=False))
            answer = b""
            while not answer.endswith(b"hello"):
                answer += client.recv(65536)
                assert b" 200 OK" in answer
        client.sendall(b"GET /")
        assert until_closed(client).startswith(b"HTTP/1.1 408 ")


def test_too_many_connections_are_refused_and_the_others_served(monkeypatch):
    monkeypatch.setattr(connection, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.1)
    with listening() as port:
        held = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(3)]
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as fourth:
            answer = until_closed(fourth)
            assert answer.startswith(b"HTTP/1.1 503 ") and b"frame-ancestors 'none'" in answer
        held[0].sendall(get())
        assert until_closed(held[0]).endswith(b"hello")
        for client in held:
            client.close()


@pytest.mark.parametrize(
    "sent", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n"]
)
def test_what_is_not_http_gets_a_safe_answer_and_no_more(monkeypatch, sent):
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.2)
    with listening() as port, socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(sent)
        head, _, body = until_closed(client).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"frame-ancestors 'none'" in head and b"nosniff" in head
    assert body.count(b"\n") == 1

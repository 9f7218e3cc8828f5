"""Many readers and a writer at once, and what they saw: for a test that is short and for a measurement that is not."""

import asyncio
import json
import random
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass
class Seen:
    """What the readers saw."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    states: set[str] = field(default_factory=set)
    reopened: int = 0
    bytes: int = 0

    def quantile(self, share: float) -> float:
        """Milliseconds that a share of the answers took at most."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class ClosedError(Exception):
    """The server closed an idle connection before an answer began, as it may; every client then opens another."""


async def fetch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> tuple[int, dict, bytes]:
    """One request over an open connection, told by the length that the answer states."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await writer.drain()
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        raise ClosedError from error
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


def whole(path: str, status: int, headers: dict, body: bytes) -> str:
    """What is wrong with an answer; empty if nothing is."""
    if status != 200:
        return f"{path}: status {status}"
    if headers.get("content-digest") != f"sha-256=:{b64encode(sha256(body).digest()).decode()}:":
        return f"{path}: the digest is of something else"
    if headers["content-type"].startswith("text/html") and not body.rstrip().endswith(b"</html>"):
        return f"{path}: ends in the middle"
    if headers["content-type"] == "application/json":
        try:
            json.loads(body)
        except ValueError:
            return f"{path}: not JSON"
    return ""


async def read_on(port: int, paths: list[str], seen: Seen, until: float, seed: int) -> None:
    """One reader: page after page over connections that stay open."""
    rng = random.Random(seed)
    while time.monotonic() < until:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for _ in range(50):
                if time.monotonic() >= until:
                    break
                path = rng.choice(paths)
                started = time.monotonic()
                async with asyncio.timeout(60):
                    status, headers, body = await fetch(reader, writer, path)
                seen.seconds.append(time.monotonic() - started)
                seen.bytes += len(body)
                if fault := whole(path, status, headers, body):
                    seen.wrong.append(fault)
                elif path == "/api/state":
                    seen.states.add(json.loads(body)["board"])
        except ClosedError:
            seen.reopened += 1
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
            seen.wrong.append(f"a connection broke: {error!r}")
        finally:
            writer.close()


async def load(
    port: int, paths: list[str], readers: int, seconds: float, submit: Callable[[int], tuple[int, dict, bytes]]
) -> tuple[Seen, list[str], list[float]]:
    """Readers for some seconds and a writer beside them; what was seen, the ids accepted, and how long each took.

    The writer stops handing in when the time is over, and is waited for.
    """
    seen, accepted, took = Seen(), [], []
    until = time.monotonic() + seconds

    async def write() -> None:
        number = 0
        while time.monotonic() < until:
            started = time.monotonic()
            status, _, body = await asyncio.to_thread(submit, number)
            took.append(time.monotonic() - started)
            if status == 201:
                accepted.append(json.loads(body)["id"])
            else:
                seen.wrong.append(f"submission {number}: {status} {body[:200]!r}")
            number += 1

    await asyncio.gather(write(), *(read_on(port, paths, seen, until, seed) for seed in range(readers)))
    return seen, accepted, took

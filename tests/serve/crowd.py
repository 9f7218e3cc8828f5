"""Many submitters at once beside the readers: most are quick, some slow, one hostile. And what became of each."""

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from oodscope.serve.submitters import Submitters
from tests.serve.live import Live
from tests.serve.load import Seen, read_on
from tests.serve.world import changed, files_of, make_entry, zipped

PATIENCE = 600.0
"""Seconds that a submitter waits for an answer: longer than anything should take."""


@dataclass
class Outcome:
    """What became of the submissions.

    Parameters
    ----------
    accepted : ids that an honest submitter was answered 201 for, by submitter.
    refused : answers to honest submitters that were anything else.
    seconds : from the first byte of a quick submission to its answer.
    hostile : answers to the hostile one, by status; 0 where the connection was closed without one.
    """

    accepted: dict[str, list[str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    hostile: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Honest submissions that were accepted."""
        return sum(map(len, self.accepted.values()))


def post(port: int, token: str, body: bytes, pause: float = 0.0, stated: int | None = None) -> tuple[int, bytes]:
    """Send an upload, in 30 pieces where there is a pause between them; status (0 without one) and answer."""
    head = (
        "POST /api/entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(body) if stated is None else stated}\r\n\r\n"
    )
    size = max(1, len(body) // 30) if pause else max(1, len(body))
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        try:
            connection.sendall(head.encode())
            for start in range(0, len(body), size):
                connection.sendall(body[start : start + size])
                time.sleep(pause)
            while piece := connection.recv(65536):
                answer += piece
        except OSError:
            return 0, b""
    first, _, content = answer.partition(b"\r\n\r\n")
    return (int(first.split()[1]) if first else 0), content


class Crowd:
    """Submitters with tokens of their own over one live server."""

    def __init__(self, live: Live, folder: Path, quick: int, slow: int, hostile: int, seconds: float) -> None:
        self.live, self.folder, self.outcome = live, folder, Outcome()
        self.names = {
            **{f"quick-{n}": self.quick for n in range(quick)},
            **{f"slow-{n}": self.slow for n in range(slow)},
            **{f"hostile-{n}": self.hostile for n in range(hostile)},
        }
        keeper = Submitters(live.board)
        self.tokens = {name: keeper.add(name) for name in self.names}
        self.seconds = seconds

    def run(self, paths: list[str], readers: int) -> Seen:
        """Everybody at once for some seconds; who has begun a submission then is waited for."""
        return asyncio.run(self._run(paths, readers))

    async def _run(self, paths: list[str], readers: int) -> Seen:
        seen, loop = Seen(), asyncio.get_running_loop()
        self.until = time.monotonic() + self.seconds
        with ThreadPoolExecutor(len(self.names)) as threads:
            senders = [loop.run_in_executor(threads, work, name) for name, work in self.names.items()]
            reading = (read_on(self.live.port, paths, seen, self.until, seed) for seed in range(readers))
            await asyncio.gather(*senders, *reading)
        self._look()
        return seen

    def quick(self, name: str) -> None:
        """One submission after the other."""
        self._submit(name, 0.0)

    def slow(self, name: str) -> None:
        """The same over a line that takes ten seconds for each."""
        self._submit(name, 1 / 3)

    def _submit(self, name: str, pause: float) -> None:
        number, accepted = 0, self.outcome.accepted.setdefault(name, [])
        while number == 0 or time.monotonic() < self.until:
            entry = f"{name}-{number}"
            body = zipped(files_of(make_entry(self.folder / entry, entry, crc32(entry.encode()))))
            started = time.monotonic()
            status, answer = post(self.live.port, self.tokens[name], body, pause)
            if not pause:
                self.outcome.seconds.append(time.monotonic() - started)
            if status == 201:
                accepted.append(json.loads(answer)["id"])
            else:
                self.outcome.refused.append(f"{entry}: {status} {answer[:200]!r}")
            number += 1

    def hostile(self, name: str) -> None:
        """Uploads that never end, garbage, forged and taken names, false lengths and tokens, as fast as it can."""
        port, token = self.live.port, self.tokens[name]
        files = files_of(make_entry(self.folder / name, name, 7))
        hanging = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for connection in hanging:
            connection.sendall(
                f"POST /api/entries HTTP/1.1\r\nHost: x\r\nContent-Type: application/zip\r\nAuthorization: Bearer "
                f"{token}\r\nContent-Length: 100000000\r\n\r\nPK".encode()
            )
        attacks: list[Callable[[], tuple[int, bytes]]] = [
            lambda: post(port, token, b"PK" + b"x" * 5000),
            lambda: post(port, token, zipped(changed(files, id="quick-0-0"))),
            lambda: post(port, token, zipped(changed(files, id="errata.json"))),
            lambda: post(port, token, zipped(changed(files, id="../../escaped"))),
            lambda: post(port, token, zipped(files), stated=10**12),
            lambda: post(port, "not-a-token-of-anybody", zipped(files)),
            lambda: post(port, token, zipped({**files, "run.sh": b"rm -rf /"})),
        ]
        while time.monotonic() < self.until:
            for attack in attacks:
                self.outcome.hostile[attack()[0]] += 1
        for connection in hanging:
            connection.close()

    def _look(self) -> None:
        """What the board shows afterwards, against what was answered."""
        outcome, board = self.outcome, self.live.board
        answered = [entry for entries in outcome.accepted.values() for entry in entries]
        shown = Counter(each["id"] for each in json.loads(self.live.ask("GET", "/api/entries")[2]))
        outcome.lost = [entry for entry in answered if not shown[entry] or not (board / entry).is_dir()]
        trail = map(json.loads, (board / ".server" / "audit.jsonl").read_text().splitlines())
        kept = Counter(each["entry"] for each in trail if each["status"] == 201)
        outcome.twice = [entry for entry in answered if shown[entry] > 1 or kept[entry] != 1]

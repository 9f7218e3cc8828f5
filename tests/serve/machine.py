"""A board under everything that happens to one: submissions, revocations, kills and restarts, in any order."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from shutil import rmtree
from threading import Thread
from typing import Any

from oodscope.serve.receiving import Limits
from oodscope.serve.submitters import Submitters
from tests.hostile.mutating import damaged
from tests.serve.live import Live
from tests.serve.world import files_of, make_entry, zipped

BENCHMARK = "small@1"
TABLE = f"/benchmarks/{BENCHMARK}/standard.html"
BROKEN = (ConnectionError, OSError)
MANY = 25


class Machine:
    """What must be true of a server, and steps at random that may not change it.

    ``accepted`` holds every entry that the server said it keeps, with its bytes, but for those that its keeper removed:
    after every step the folder holds these, the server shows these, and nothing else. Every step is of one of the kinds
    below, chosen by the seed alone.
    """

    def __init__(self, live: Live, folder: Path, seed: int) -> None:
        self.live, self.folder, self.random = live, folder, Random(seed)
        self.submitters = Submitters(live.board)
        self.tokens: dict[str, str] = {}
        self.revoked: list[str] = []
        self.accepted: dict[str, dict[str, bytes]] = {}
        self.removed: list[str] = []
        self.accepted_of: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.made = 0
        self.add()

    @classmethod
    def resumed(cls, live: Live, folder: Path, seed: int, state: dict[str, Any]) -> "Machine":
        """One that goes on from the state of another; a fresh one where there is none."""
        if not state:
            return cls(live, folder, seed)
        machine = cls.__new__(cls)
        machine.live, machine.folder, machine.submitters = live, folder, Submitters(live.board)
        vars(machine).update(state)
        return machine

    def state(self) -> dict[str, Any]:
        """What a later machine needs to go on where this one is."""
        return {name: value for name, value in vars(self).items() if name not in ("live", "folder", "submitters")}

    def step(self) -> None:
        """Do one thing, then check everything."""
        kinds: list[tuple[int, Callable[[], None]]] = [
            *((40, self.submit), (8, self.submit_again), (8, self.submit_damaged), (8, self.submit_revoked)),
            *((10, self.add), (8, self.revoke), (6, self.read), (5, self.kill_during_a_submission)),
            *((4, self.kill), (3, self.restart)),
            # pages of many entries take long to build, and say no more about this than those of some
            (60 if len(self.accepted) > MANY else 2, self.remove),
        ]
        (kind,) = self.random.choices([each for _, each in kinds], [weight for weight, _ in kinds])
        self.do(kind)

    def do(self, kind: Callable[[], None]) -> None:
        """One step of a kind."""
        kind()
        self.taken[kind.__name__] += 1
        self.check()

    def make(self) -> tuple[str, dict[str, bytes]]:
        """An entry that nobody has seen."""
        self.made += 1
        name = f"entry-{self.made}"
        return name, files_of(make_entry(self.folder / str(self.made), name, self.made))

    def send(self, body: bytes, token: str) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}", "Content_Type": "application/zip"}
        status, _, answer = self.live.ask("POST", "/api/entries", body, **headers)
        return status, answer

    def someone(self) -> tuple[str, str]:
        """A submitter whose quota is not used up."""
        known = [name for name in self.tokens if self.accepted_of[name] < Limits.per_day]
        if not known:
            self.add()
            known = [list(self.tokens)[-1]]
        name = self.random.choice(known)
        return name, self.tokens[name]

    def submit(self) -> None:
        (name, files), (submitter, token) = self.make(), self.someone()
        status, answer = self.send(zipped(files), token)
        assert status == 201, answer
        self.accepted[name] = files
        self.accepted_of[submitter] += 1

    def submit_again(self) -> None:
        if self.accepted:
            files = self.accepted[self.random.choice(list(self.accepted))]
            assert self.send(zipped(files), self.someone()[1])[0] == 409

    def submit_damaged(self) -> None:
        name, files = self.make()
        files["entry.json"] = damaged(files["entry.json"], self.random)
        submitter, token = self.someone()
        status, answer = self.send(zipped(files), token)
        assert status == 201 or 400 <= status < 500, answer
        if status == 201:  # the damage hit a text that may be anything
            self.accepted[json.loads(answer)["id"]] = files
            self.accepted_of[submitter] += 1

    def submit_revoked(self) -> None:
        token = self.random.choice(self.revoked) if self.revoked else "nobody-has-this-token"
        assert self.send(zipped(self.make()[1]), token)[0] == 401

    def add(self) -> None:
        name = f"submitter-{len(self.tokens) + len(self.revoked)}"
        self.tokens[name] = self.submitters.add(name)

    def revoke(self) -> None:
        name = self.random.choice(list(self.tokens))
        self.submitters.revoke(name)
        self.revoked.append(self.tokens.pop(name))
        if not self.tokens:
            self.add()

    def read(self) -> None:
        for path in ("/", "/methods/index.html", "/data/everything.json"):
            assert self.live.ask("GET", path)[0] == 200

    def remove(self) -> None:
        """The keeper takes an entry away; the server notices it by itself."""
        if not self.accepted:
            return
        name = self.random.choice(list(self.accepted))
        gone = self.live.board / f".{name}"
        (self.live.board / name).rename(gone)
        rmtree(gone)
        del self.accepted[name]
        self.removed.append(name)
        until = time.monotonic() + 120
        while self.one_state() != set(self.accepted):
            assert time.monotonic() < until, "the server still shows what its keeper removed"
            time.sleep(0.1)

    def kill(self) -> None:
        self.live.kill()
        self._start()

    def restart(self) -> None:
        self.live.stop()
        self._start()

    def kill_during_a_submission(self) -> None:
        """The entry is there whole afterwards, or can be submitted again; readers saw one state at any time."""
        (name, files), (submitter, token) = self.make(), self.someone()
        told: list[int] = []

        def submit() -> None:
            with suppress(*BROKEN):
                told.append(self.send(zipped(files), token)[0])

        sending = Thread(target=submit)
        sending.start()
        until = self.random.choice((0.0, 0.02, 0.1, 0.3, 0.6, 1.0))
        sending.join(until)
        with suppress(*BROKEN):
            self.one_state()
        self.live.kill()
        sending.join(60)
        there = (self.live.board / name).is_dir()
        assert there or told != [201], "it was accepted, and is lost"
        self._start()
        status, answer = self.send(zipped(files), token)
        assert status == (409 if there else 201), answer
        self.accepted[name] = files
        self.accepted_of[submitter] += 1

    def _start(self) -> None:
        self.live.start()
        assert not list((self.live.board / ".incoming").glob("upload-*"))

    def one_state(self) -> set[str] | None:
        """The entries that answers of one state show; nothing where the state changed between two answers."""
        before = json.loads(self.live.ask("GET", "/api/state")[2])["board"]
        lines = json.loads(self.live.ask("GET", "/api/entries")[2])
        page = self.live.ask("GET", TABLE)[2].decode()
        if json.loads(self.live.ask("GET", "/api/state")[2])["board"] != before:
            return None
        sent = [each for each in lines if each["tier"] != "reported"]
        rows = set(re.findall(r'<tr id="e-([^"]+)"', page))
        assert rows == {each["id"] for each in sent if each["benchmark"] == BENCHMARK}, "a mixture of two states"
        return {each["id"] for each in sent}

    def check(self) -> None:
        """The folder and the server hold what was accepted, whole, and nothing else."""
        for name, files in self.accepted.items():
            assert files_of(self.live.board / name) == files, f"{name} is not what was accepted"
        assert self.one_state() == set(self.accepted)

    def check_trail(self) -> None:
        """Every accepted entry stands in the audit trail, and once, whatever was killed when."""
        lines = (self.live.board / ".server" / "audit.jsonl").read_text().splitlines()
        kept = Counter(each["entry"] for each in map(json.loads, lines) if each["status"] == 201)
        assert kept == Counter([*self.accepted, *self.removed])

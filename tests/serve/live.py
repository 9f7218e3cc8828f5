"""A real server, as ``oodscope serve`` starts it: a process of its own that listens on loopback."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

SECRET = "correct-horse-battery"
START_SECONDS = 600


class Live:
    """One server over a board and a store; it can be killed and started again."""

    def __init__(self, folder: Path, *options: str, store: str = "") -> None:
        self.board = folder / "board"
        self.store = store or str(folder / "runs" / "results.sqlite")
        self.options = options
        self.log = ""
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "oodscope", "serve", "--port", "0", *self.options]
        command += ["--board", str(self.board), "--store", self.store]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OODSCOPE_TOKEN": SECRET}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        watchdog = time.monotonic() + START_SECONDS
        reader = Thread(target=self._read, daemon=True)
        self.address = ""
        reader.start()
        while not self.address:
            assert self.process.poll() is None and time.monotonic() < watchdog, f"the server did not start: {self.log}"
            time.sleep(0.05)

    def _read(self) -> None:
        for line in self.process.stderr:
            self.log += line
            if found := re.match(r"http://\S+", line):
                self.address = found.group()

    @property
    def port(self) -> int:
        return urlsplit(self.address).port

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def submit(self, body: bytes) -> tuple[int, dict, bytes]:
        return self.ask("POST", "/api/entries", body, Authorization=f"Bearer {SECRET}", Content_Type="application/zip")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

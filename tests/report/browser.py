"""A headless browser that a test can talk to: it opens a page, waits, acts and answers with values."""

import json
import os
import select
import subprocess
import time
from itertools import count

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--hide-scrollbars",
)


class Browser:
    """Chromium over its debugging pipe: it reads commands from descriptor 3 and answers on descriptor 4."""

    def __init__(self, profile):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def connect():
            # copies far above, so that neither lands where the other still is
            first, second = os.dup2(to_browser, 100), os.dup2(from_browser, 101)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._process = subprocess.Popen(
            ["chromium", *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=connect,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers, self._rest, self._session = count(1), b"", None
        self.complaints = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Log.enable")

    def open(self, url, width, height=1200):
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._ask("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression):
        """What an expression of JavaScript is worth; a promise is waited for."""
        answer = self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=30):
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < end, f"not within {seconds} s: {expression}"
            time.sleep(0.05)

    def close(self):
        self._process.terminate()
        self._process.wait(10)
        os.close(self._write)
        os.close(self._read)

    def _ask(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("method") == "Log.entryAdded":
                self.complaints.append(answer["params"]["entry"]["text"])
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], 60)
            assert ready, "the browser does not answer"
            self._rest += os.read(self._read, 2**16)
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

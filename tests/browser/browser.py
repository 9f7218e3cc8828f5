"""A browser as tests use it: it opens pages, remembers what they asked for and what went wrong in them."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import playwright.sync_api as playwright

Scheme = Literal["light", "dark"]

WAIT = 60_000
"""Milliseconds that anything may take: far more than it does, because CI has two busy cores."""

_HERE = {"file", "data", "blob", "about"}


class Browser:
    """Opens pages in one fresh profile.

    Attributes
    ----------
    requests : every address asked for.
    errors : errors on the console (a breach of the page's policy is one) and exceptions nobody caught.
    """

    def __init__(self, chromium: playwright.Browser) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._context = chromium.new_context()
        self._context.set_default_timeout(WAIT)

    def open(
        self, place: Path | str, width: int = 1400, scheme: Scheme = "light", height: int = 900
    ) -> playwright.Page:
        """The page, loaded, in a window of this width, for a reader who prefers this colour scheme."""
        page = self._context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._note)
        page.goto(place.resolve().as_uri() if isinstance(place, Path) else place)
        return page

    @property
    def outside(self) -> list[str]:
        """What was asked of other machines."""
        return [address for address in self.requests if not _is_here(address)]

    def check(self) -> None:
        """Fail if a page complained or asked another machine for anything."""
        assert not self.errors, f"errors on the console: {self.errors}"
        assert not self.outside, f"asked the network for {self.outside}"

    def close(self) -> None:
        """Forget the profile."""
        self._context.close()

    def _note(self, message: playwright.ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)


def _is_here(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in _HERE or parts.hostname in ("127.0.0.1", "localhost")

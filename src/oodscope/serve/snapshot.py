"""Snapshot: all pages of one state of the board, whole and unchangeable."""

import mimetypes
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".csv": "text/csv; charset=utf-8",
    ".bib": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True)
class Page:
    """The bytes of one address, their media type and their SHA-256."""

    content: bytes
    kind: str
    digest: bytes

    @classmethod
    def of(cls, path: str, content: bytes) -> "Page":
        """A page whose media type follows from the ending of its path; what is for programs is JSON."""
        ending = ".json" if path.startswith("api/") else PurePosixPath(path).suffix
        kind = _KINDS.get(ending) or mimetypes.guess_type(path)[0] or "application/octet-stream"
        return cls(content, kind, sha256(content).digest())

    @property
    def etag(self) -> str:
        """For a browser that asks whether its copy is still good."""
        return f'"{self.digest.hex()[:32]}"'

    @property
    def content_digest(self) -> str:
        """RFC 9530: whoever reads the page can check whether it is whole."""
        return f"sha-256=:{b64encode(self.digest).decode()}:"


@dataclass(frozen=True)
class Snapshot:
    """Pages by path. It is replaced, never changed, so all that a reader fetches from one is of one state."""

    pages: Mapping[str, Page]
    version: str

    @classmethod
    def of(cls, contents: Mapping[str, bytes]) -> "Snapshot":
        pages = {path: Page.of(path, content) for path, content in contents.items()}
        everything = sha256()
        for path in sorted(pages):
            everything.update(path.encode() + b"\0" + pages[path].digest)
        return cls(pages, everything.hexdigest()[:32])

    def find(self, path: str) -> Page | None:
        """The page of an address; a folder shows its ``index.html``."""
        return self.pages.get(f"{path}index.html" if path == "" or path.endswith("/") else path)

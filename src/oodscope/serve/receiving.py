"""Receiving: the bytes of a submission, from the network to a folder, no more and no slower than allowed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from oodscope.leaderboard.records.folder import ENTRY, SCORES
from oodscope.serve.answers import RefusedError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

ARCHIVES = {
    "application/zip": "upload.zip",
    "application/x-zip-compressed": "upload.zip",
    "application/gzip": "upload.tar.gz",
    "application/x-gzip": "upload.tar.gz",
    "application/x-tar+gzip": "upload.tar.gz",
}
"""How an archive is called here, by its media type."""

PARTS = {"entry": ENTRY, "scores": SCORES}
"""The fields of a form, and the files that they become."""

_MOST_HEADER = 4096


@dataclass(frozen=True)
class Limits:
    """What a submission may take.

    Parameters
    ----------
    size : most bytes of an upload, counted as they come: what ``Content-Length`` says is a hint at best.
    idle_seconds : between two pieces of an upload.
    upload_seconds, slowest : for all of it: so many seconds, one more for every ``slowest`` bytes that it states or
        may have where it states none. A slow sender has the time of a small upload, not that of the largest.
    check_seconds : for unpacking and verifying it.
    memory : most bytes that the process may hold which does so.
    unpacked : most bytes of the files in an archive.
    at_once : uploads that are received at the same time.
    each : submissions of one submitter that are received, examined or built at the same time: so nobody can keep
        others out.
    per_day, entries : entries that are accepted from one submitter in 24 hours, and that a board may have.
    """

    size: int = 256 << 20
    idle_seconds: float = 30.0
    upload_seconds: float = 30.0
    slowest: int = 256 << 10
    check_seconds: float = 300.0
    memory: int = 4 << 30
    unpacked: int = 1 << 30
    at_once: int = 64
    each: int = 4
    per_day: int = 100
    entries: int = 10_000

    def deadline(self, stated: str) -> float:
        """Seconds for an upload of the length that its head states."""
        size = min(int(stated), self.size) if _is_length(stated) else self.size
        return self.upload_seconds + size / self.slowest


async def receive(request: Request, folder: Path, limits: Limits) -> None:
    """Put an upload into ``folder``: an archive under the name of its kind, or the files of a form.

    Names that the client gives are used for nothing.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    media = kind.decode("latin-1")
    try:
        async with asyncio.timeout(limits.deadline(request.headers.get("content-length", ""))):
            if media in ARCHIVES:
                with (folder / ARCHIVES[media]).open("xb") as archive:
                    async for chunk in _bounded(request, limits):
                        archive.write(chunk)
            elif media == "multipart/form-data" and options.get(b"boundary"):
                await _receive_form(request, folder, options[b"boundary"], limits)
            else:
                raise RefusedError(415, "send a zip, a tar.gz, or a multipart form with the fields entry and scores")
    except TimeoutError as error:
        raise RefusedError(408, "the upload stopped, or took too long") from error
    except ClientDisconnect as error:
        raise RefusedError(400, "the upload ended before it was whole") from error


def _is_length(stated: str) -> bool:
    """Whether it is a number as HTTP writes them; digits of other scripts and superscripts are none."""
    return stated.isascii() and stated.isdigit() and len(stated) < 20


async def _bounded(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    too_much = RefusedError(413, f"a submission may have {limits.size >> 20} MiB at most")
    stated = request.headers.get("content-length", "")
    if _is_length(stated) and int(stated) > limits.size:
        raise too_much
    left = limits.size
    pieces = request.stream()
    while True:
        async with asyncio.timeout(limits.idle_seconds):
            chunk = await anext(pieces, None)
        if chunk is None:
            return
        left -= len(chunk)
        if left < 0:
            raise too_much
        if chunk:
            yield chunk


async def _receive_form(request: Request, folder: Path, boundary: bytes, limits: Limits) -> None:
    with ExitStack() as open_files:
        form = _Form(folder, open_files)
        try:
            parser = MultipartParser(boundary, form.callbacks())
            async for chunk in _bounded(request, limits):
                parser.write(chunk)
            parser.finalize()
        except FormParserError as error:
            raise RefusedError(400, f"not a multipart form: {error}") from error
    if not form.ended:
        raise RefusedError(400, "the form ends in the middle")
    if "entry" not in form.seen:
        raise RefusedError(400, "the form has no field 'entry'")


class _Form:
    """Two files, written as the parser finds them."""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        self.folder = folder
        self.files = files
        self.seen: set[str] = set()
        self.ended = False
        self._file: IO[bytes] | None = None
        self._name, self._value, self._disposition = bytearray(), bytearray(), b""

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._field,
            "on_header_value": self._content,
            "on_header_end": self._header,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_end": self._end,
        }

    def _begin(self) -> None:
        self._disposition, self._file = b"", None

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._grow(self._name, data[start:end])

    def _content(self, data: bytes, start: int, end: int) -> None:
        self._grow(self._value, data[start:end])

    def _grow(self, text: bytearray, piece: bytes) -> None:
        text += piece
        if len(text) > _MOST_HEADER:
            raise RefusedError(400, "a header of the form is too long")

    def _header(self) -> None:
        if bytes(self._name).lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name", b"").decode("latin-1")
        if name not in PARTS or name in self.seen:
            again = name in self.seen
            raise RefusedError(
                400, f"the form has the field {name[:40]!r}{' twice' * again}; it takes entry and scores"
            )
        self.seen.add(name)
        self._file = self.files.enter_context((self.folder / PARTS[name]).open("xb"))

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])

    def _end(self) -> None:
        self.ended = True

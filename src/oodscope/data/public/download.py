"""Download one file: resumed where it stopped, checked before it gets its name."""

import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from oodscope.base.errors import DataError, StorageError
from oodscope.base.files import storage_errors
from oodscope.execution.progress import SILENT, Progress

_CHUNK = 1 << 20
_SECONDS = 60


def download(url: str, target: Path, md5: str | None = None, progress: Progress = SILENT) -> Path:
    """Fetch ``url`` into ``target``; a file that is there already and has the right checksum is left alone.

    Bytes go to ``target`` + ``.part``. If that exists, only the rest is asked for; a server that cannot do that
    sends everything, and the file is written anew. Only a whole file with the right checksum is renamed to
    ``target``; one with another checksum is deleted, so that the next attempt starts afresh.
    """
    if target.is_file() and (md5 is None or md5_of(target) == md5):
        return target
    part = target.with_name(target.name + ".part")
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _receive(url, part, progress)
        except urllib.error.HTTPError as error:
            raise DataError(f"cannot download {url}: the server says {error.code} {error.reason}") from error
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            have = part.stat().st_size if part.exists() else 0
            reason = getattr(error, "reason", None) or error
            raise DataError(
                f"download of {url} broke off after {have:,} bytes ({reason}); run the same command again to go on"
            ) from error
        if md5 is not None and (actual := md5_of(part)) != md5:
            part.unlink()
            raise DataError(f"{url}: the file that came has the MD5 {actual}, not {md5}; it was deleted, try again")
        part.replace(target)
    return target


def _receive(url: str, part: Path, progress: Progress) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        # nothing is left to send, or the file behind the address became shorter: the checksum will show
        if _total(error.headers.get("Content-Range")) == have:
            return
        part.unlink()
        _receive(url, part, progress)
        return
    with answer:
        if answer.headers.get_content_type() == "text/html" and not part.stem.endswith((".html", ".htm")):
            raise DataError(f"{url} gave a web page, not {part.stem}: its quota is spent, or the file has moved")
        resumed = answer.status == 206 and _start(answer.headers.get("Content-Range")) == have
        done = have if resumed else 0
        length = int(answer.headers.get("Content-Length") or 0)
        _require_space(part.parent, length)
        with part.open("ab" if resumed else "wb") as stream, progress.stage(part.stem, done + length) as advance:
            advance(done)
            while chunk := answer.read(_CHUNK):
                stream.write(chunk)
                advance(len(chunk))
    if length and part.stat().st_size != done + length:
        raise http.client.IncompleteRead(b"", done + length - part.stat().st_size)


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise StorageError(f"{folder}: {needed:,} bytes are needed and {free:,} are free; free some or choose --root")


def _start(content_range: str | None) -> int | None:
    """The first byte of ``bytes 100-199/200``."""
    first = (content_range or "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else None


def _total(content_range: str | None) -> int | None:
    """The whole length in ``bytes */200``."""
    last = (content_range or "").rpartition("/")[2]
    return int(last) if last.isdigit() else None


def md5_of(path: Path) -> str:
    """The MD5 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()

"""Place: where published bytes lie. What is published under a name is whole, and never changes."""

import errno
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from oodscope.base.errors import OodscopeError, StorageError
from oodscope.base.files import atomic_file, cache_root, storage_errors
from oodscope.base.hashing import fingerprint

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS}


class Stored(NamedTuple):
    """One file of a place: its name, its size, and when it was last read or written, in seconds since 1970."""

    name: str
    bytes: int
    used: float


class Place(ABC):
    """A folder of named bytes, here or elsewhere; names may hold ``/``."""

    @abstractmethod
    def create(self, name: str, content: bytes) -> bool:
        """Publish ``content``, whole or not at all; ``False`` if somebody was first, whose bytes then stand."""

    @abstractmethod
    def replace(self, name: str, content: bytes) -> None:
        """Publish ``content`` in the place of whatever had the name. Never for what is addressed by content."""

    @abstractmethod
    def read(self, name: str) -> bytes: ...

    @abstractmethod
    def exists(self, name: str) -> bool: ...

    @abstractmethod
    def remove(self, name: str) -> bool:
        """Whether the name is free now; ``False`` where this may not be changed."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[str]:
        """Names directly inside the folder ``prefix``, in sorted order; none where there is no such folder."""

    @abstractmethod
    def walk(self) -> Iterator[Stored]:
        """Every file, those that a killed writer left behind included."""

    @abstractmethod
    def local(self, name: str) -> Path:
        """A file on this machine with these bytes."""


class LocalPlace(Place):
    """A folder of this machine, or of a file system that it shares with others.

    ``create`` writes a temporary file, flushes it through the handle that wrote it, and links it to its name: of many
    writers one wins, and a reader sees all of its bytes. Where links are refused, the name is opened exclusively.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def __str__(self) -> str:
        return str(self.root)

    def create(self, name: str, content: bytes) -> bool:
        target = self.root / name
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
            try:
                _write(temporary, content)
                try:
                    os.link(temporary, target)
                except FileExistsError:
                    return False
                except (AttributeError, OSError) as error:  # some systems have no such function
                    if isinstance(error, OSError) and error.errno not in _NO_LINKS:
                        raise
                    return _write_exclusively(target, content)
            finally:
                temporary.unlink(missing_ok=True)
        return True

    def replace(self, name: str, content: bytes) -> None:
        with atomic_file(self.root / name) as stream:
            stream.write(content)

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def exists(self, name: str) -> bool:
        return (self.root / name).is_file()

    def remove(self, name: str) -> bool:
        try:
            (self.root / name).unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def list(self, prefix: str) -> Iterator[str]:
        try:
            names = sorted(entry.name for entry in os.scandir(self.root / prefix) if entry.name[0] != ".")
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (f"{prefix}/{name}" for name in names)

    def walk(self) -> Iterator[Stored]:
        for folder, _, names in os.walk(self.root):
            for name in sorted(names):
                path = Path(folder, name)
                try:
                    found = path.lstat()
                except OSError:  # somebody has removed it since
                    continue
                # file systems note reading about once a day, or never; writing always
                used = max(found.st_atime, found.st_mtime)
                yield Stored(path.relative_to(self.root).as_posix(), found.st_size, used)

    def local(self, name: str) -> Path:
        return self.root / name


class RemotePlace(Place):
    """A folder of an object store, by its URL: ``s3://bucket/folder``, ``gs://``, or whatever fsspec knows.

    ``create`` asks the store to refuse a name that exists (``If-None-Match`` on S3, ``ifGenerationMatch`` on Google's),
    so that of many writers one wins. Needs the extra ``cloud``.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            import fsspec

            # whether something exists is asked of the store each time: others write to it too
            self._system, root = fsspec.core.url_to_fs(self.url, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as error:
            raise OodscopeError(f"{url}: needs the extra 'cloud': pip install 'oodscope[cloud]' ({error})") from error
        except (ValueError, OSError) as error:
            raise OodscopeError(f"{url}: not a place that can be opened ({error})") from error
        self._root = str(root).rstrip("/")

    def __str__(self) -> str:
        return self.url

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def create(self, name: str, content: bytes) -> bool:
        try:
            with _remote_errors(self.url, name):
                self._system.pipe_file(self._path(name), content, mode="create")
        except FileExistsError:
            return False
        return True

    def replace(self, name: str, content: bytes) -> None:
        with _remote_errors(self.url, name):
            self._system.pipe_file(self._path(name), content, mode="overwrite")

    def read(self, name: str) -> bytes:
        with _remote_errors(self.url, name):
            return bytes(self._system.cat_file(self._path(name)))

    def exists(self, name: str) -> bool:
        with _remote_errors(self.url, name):
            return bool(self._system.isfile(self._path(name)))

    def remove(self, name: str) -> bool:
        try:
            self._system.rm_file(self._path(name))
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def list(self, prefix: str) -> Iterator[str]:
        try:
            with _remote_errors(self.url, prefix):
                found: Any = self._system.ls(self._path(prefix), detail=False)
        except FileNotFoundError:
            return
        names = sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)
        yield from (f"{prefix}/{name}" for name in names if name and name[0] != ".")

    def walk(self) -> Iterator[Stored]:
        with _remote_errors(self.url, ""):
            found: Any = self._system.find(self._root, detail=True)
        for path, about in sorted(found.items()):
            written = about.get("LastModified") or about.get("created") or about.get("updated")
            # a time that the store does not tell counts as now: nobody removes such a file for its age
            used = written.timestamp() if hasattr(written, "timestamp") else time.time()
            yield Stored(path[len(self._root) :].lstrip("/"), int(about["size"]), used)

    def local(self, name: str) -> Path:
        """A copy in the cache; what is published never changes, so that a copy of the right size is the file."""
        copy = LocalPlace(cache_root() / "remote" / fingerprint(self.url)[:24])
        with _remote_errors(self.url, name):
            size = int(self._system.info(self._path(name))["size"])
        path = copy.local(name)
        if not path.is_file() or path.stat().st_size != size:
            copy.replace(name, self.read(name))
        return path


def open_place(where: Path | str) -> Place:
    """A folder, or an object store by its URL."""
    return RemotePlace(where) if isinstance(where, str) and is_url(where) else LocalPlace(where)


def is_url(where: str) -> bool:
    """Whether a text names a place of fsspec rather than a folder."""
    scheme, sign, _ = where.partition("://")
    return bool(sign) and scheme.isalnum() and len(scheme) > 1


@contextmanager
def _remote_errors(url: str, name: str) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, FileNotFoundError):
        raise
    except (OSError, ValueError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise StorageError(f"{url}/{name}: {said}") from error


def _write(path: Path, content: bytes) -> None:
    # the ordinary mode of the user's files, so that others may read what their umask lets them
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _write_exclusively(target: Path, content: bytes) -> bool:
    try:
        _write(target, content)
    except FileExistsError:
        return False
    return True

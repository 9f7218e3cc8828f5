"""Place: where published bytes lie. What is published under a name is whole, and never changes."""

import errno
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from oodscope.base.files import atomic_file, storage_errors

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS}


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
    def local(self, name: str) -> Path:
        """A file on this machine with these bytes."""


class LocalPlace(Place):
    """A folder of this machine, or of a file system that it shares with others.

    ``create`` writes a temporary file, flushes it through the handle that wrote it, and links it to its name: of many
    writers one wins, and a reader sees all of its bytes. Where links are refused, the name is opened exclusively.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

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
                except OSError as error:
                    if error.errno not in _NO_LINKS:
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

    def local(self, name: str) -> Path:
        return self.root / name


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

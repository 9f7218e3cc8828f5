"""Images inside tar files, read where they lie."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from oodscope.data.sources.decoding import UnreadableImageError
from oodscope.data.sources.encoded import EncodedSource


@dataclass(frozen=True)
class Member:
    """One encoded image inside a tar file.

    Parameters
    ----------
    shard : the tar file.
    name : of the member; a name and nothing else, never a path that anything is written to.
    offset, size : where its bytes lie.
    digest : of its bytes.
    """

    shard: Path
    name: str
    offset: int
    size: int
    digest: bytes


class ShardSource(EncodedSource):
    """Members of tar files, in any order; nothing is extracted to disk."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)

    def __len__(self) -> int:
        return len(self.members)

    def encoded(self, index: int) -> BinaryIO:
        member = self.members[index]
        try:
            # opened each time: threads share no position in a file, and a thousand shards need no thousand handles
            with member.shard.open("rb") as stream:
                stream.seek(member.offset)
                content = stream.read(member.size)
        except OSError as error:
            raise UnreadableImageError(f"unreadable image {self.where(index)}: {error.strerror}") from error
        return io.BytesIO(content)

    def where(self, index: int) -> str:
        return f"{self.members[index].name!r} in {self.members[index].shard}"

    def name(self, index: int) -> str:
        return f"{self.members[index].shard.name}/{self.members[index].name}"

    def keeping(self, rows: Sequence[int]) -> "ShardSource":
        return ShardSource([self.members[row] for row in rows])

    def _digest_all(self) -> list[bytes]:
        return [member.digest for member in self.members]

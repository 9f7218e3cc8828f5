"""Paper: where a method comes from."""

from typing import NamedTuple


class Paper(NamedTuple):
    """The publication of a detector or of a training method."""

    title: str
    authors: str
    venue: str
